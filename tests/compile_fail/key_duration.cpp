// expect: a duration loses its unit in a key; pass its .count\(\)
#include <holdfast/key/cachekit.hpp>

#include <chrono>

// 60 s and 60 h would be one key.
namespace key = holdfast::key;
using namespace std::chrono_literals;

int main() {
#ifndef HOLDFAST_CONTROL
  (void)key::cachekit({.module = "app", .qualname = "f"}, 60s);
#endif
  (void)key::cachekit({.module = "app", .qualname = "f"}, (60s).count());
}
