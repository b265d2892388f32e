// expect: a pointer is not a key, its address changes from run to run; pass what it points to
#include <holdfast/key/interop.hpp>

#include <memory>

// Owning what it points to does not make an address stable.
namespace key = holdfast::key;

int main() {
#ifndef HOLDFAST_CONTROL
  (void)key::interop("users", "get_user", std::make_shared<int>(42));
#endif
  (void)key::interop("users", "get_user", *std::make_shared<int>(42));
}
