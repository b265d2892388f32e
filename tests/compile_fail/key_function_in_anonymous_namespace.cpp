// expect: this function has no name that every compiler prints alike
#include <holdfast/key/cachekit.hpp>

// Every file can have its own; and gcc and clang spell it differently.
namespace key = holdfast::key;
namespace {
[[maybe_unused]] int get_user(int id) { return id; }
}  // namespace
namespace app {
int get_account(int id);
}  // namespace app

int main() {
#ifndef HOLDFAST_CONTROL
  (void)key::of<&get_user>(42);
#endif
  (void)key::of<&app::get_account>(42);
}
