// expect: this enumeration has no text form, and its number is not what other services print
#include <holdfast/key/failover.hpp>

#include <string_view>

// Java prints the name of an enumerator, which C++ does not know.
namespace key = holdfast::key;
namespace app {
enum class colour { red };
enum class named_colour { red };
[[maybe_unused]] std::string_view holdfast_key(named_colour) { return "RED"; }
}  // namespace app

int main() {
#ifndef HOLDFAST_CONTROL
  (void)key::failover({.name = "p"}, app::colour::red);
#endif
  (void)key::failover({.name = "p"}, app::named_colour::red);
}
