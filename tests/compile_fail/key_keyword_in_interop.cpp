// expect: keyword arguments exist only in CacheKit.s auto mode
#include <holdfast/key/interop.hpp>

// interop binds every argument to its position.
namespace key = holdfast::key;

int main() {
#ifndef HOLDFAST_CONTROL
  (void)key::interop("users", "get_user", key::kw("id", 42));
#endif
  (void)key::interop("users", "get_user", 42);
}
