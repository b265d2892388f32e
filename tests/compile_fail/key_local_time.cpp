// expect: a local time is another moment in every time zone; pass a std::chrono::sys_time
#include <holdfast/key/interop.hpp>

#include <chrono>

// Two machines in two zones would make one key of two moments.
namespace key = holdfast::key;

int main() {
#ifndef HOLDFAST_CONTROL
  (void)key::interop("a", "b", std::chrono::local_seconds{});
#endif
  (void)key::interop("a", "b", std::chrono::sys_seconds{});
}
