// CacheKit's auto mode: the keys that CacheKit for Python makes for its own functions.

#include <holdfast/key.hpp>

#include <iostream>
#include <vector>

namespace app {
int get_user(int id) { return id; }
}  // namespace app

int main() {
  namespace key = holdfast::key;

  // region explicit
  // get_user(42, active=True) in the Python module myapp.services, with the namespace users.
  const key::cachekit_keys get_user(
      {.ns = "users", .module = "myapp.services", .qualname = "get_user"});
  std::cout << get_user(42, key::kw("active", true)) << '\n';
  // endregion

  // region array
  // A vector is a list; key::array makes what a numpy array makes.
  const std::vector<double> weights{0.5, 0.25};
  std::cout << (get_user(weights) == get_user(key::array(weights)) ? "alike" : "two keys") << '\n';
  // endregion

  // region derived
  // A C++ function, named as it is in the source.
  std::cout << key::of<&app::get_user>(42) << '\n';
  // endregion
}
