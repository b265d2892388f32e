// expect: overloaded|no matching function|unresolved|couldn't infer
#include <holdfast/key/cachekit.hpp>

// Which of the two is meant?
namespace key = holdfast::key;
namespace app {
int get_user(int id);
int get_user(const char* name);
int get_account(int id);
}  // namespace app

int main() {
#ifndef HOLDFAST_CONTROL
  (void)key::of<&app::get_user>(42);
#endif
  (void)key::of<&app::get_account>(42);
}
