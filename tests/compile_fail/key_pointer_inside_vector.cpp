// expect: a pointer is not a key, its address changes from run to run; pass what it points to
#include <holdfast/key/failover.hpp>

#include <vector>

// What a container holds is checked as strictly as the container.
namespace key = holdfast::key;

int main() {
#ifndef HOLDFAST_CONTROL
  (void)key::failover({.name = "p"}, std::vector<const int*>{nullptr});
#endif
  (void)key::failover({.name = "p"}, std::vector<int>{0});
}
