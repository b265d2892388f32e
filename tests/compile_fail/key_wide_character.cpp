// expect: this character type is not a whole character; pass char32_t, or text as UTF-8
#include <holdfast/key/failover.hpp>

// 16 or 32 bits, depending on where it is compiled.
namespace key = holdfast::key;

int main() {
#ifndef HOLDFAST_CONTROL
  (void)key::failover({.name = "p"}, L'x');
#endif
  (void)key::failover({.name = "p"}, U'x');
}
