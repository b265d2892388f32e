// expect: only a function has a name|this function has no name that every compiler prints alike
#include <holdfast/key/cachekit.hpp>

// A lambda has no name; each compiler invents another.
namespace key = holdfast::key;
namespace app {
int get_user(int id);
}  // namespace app

int main() {
#ifndef HOLDFAST_CONTROL
  (void)key::of<[](int id) { return id; }>(42);
#endif
  (void)key::of<&app::get_user>(42);
}
