// expect: long double has no portable form; pass a double or key::decimal
#include <holdfast/key/failover.hpp>

// 80, 64 or 128 bits, depending on where it is compiled.
namespace key = holdfast::key;

int main() {
#ifndef HOLDFAST_CONTROL
  (void)key::failover({.name = "p"}, 1.5L);
#endif
  (void)key::failover({.name = "p"}, 1.5);
}
