// expect: keyword arguments exist only in CacheKit.s auto mode, and only as arguments of the call
// itself
#include <holdfast/key/cachekit.hpp>

#include <tuple>

// A keyword names an argument of the call; inside a list there is nothing to name.
namespace key = holdfast::key;

int main() {
#ifndef HOLDFAST_CONTROL
  (void)key::cachekit({.module = "app", .qualname = "f"}, std::tuple(key::kw("id", 42)));
#endif
  (void)key::cachekit({.module = "app", .qualname = "f"}, key::kw("id", 42));
}
