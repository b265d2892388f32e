// expect: this type cannot be part of a key, it has no stable form
#include <holdfast/key/cachekit.hpp>

#include <string>
#include <tuple>

// Nobody but its author knows which members of a struct identify it.
namespace key = holdfast::key;
namespace app {
struct order {
  std::string id;
};
struct keyed_order {
  std::string id;
};
[[maybe_unused]] auto holdfast_key(const keyed_order& o) { return std::tuple(o.id); }
}  // namespace app

int main() {
#ifndef HOLDFAST_CONTROL
  (void)key::cachekit({.module = "app", .qualname = "f"}, app::order{"7"});
#endif
  (void)key::cachekit({.module = "app", .qualname = "f"}, app::keyed_order{"7"});
}
