// expect: a pointer is not a key, its address changes from run to run; pass what it points to
#include <holdfast/key/failover.hpp>

// An address is another one in every run.
namespace key = holdfast::key;
static const int number = 42;

int main() {
#ifndef HOLDFAST_CONTROL
  (void)key::failover({.name = "p"}, &number);
#endif
  (void)key::failover({.name = "p"}, number);
}
