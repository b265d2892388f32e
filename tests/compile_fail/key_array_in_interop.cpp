// expect: interop/v1 has no numeric arrays; pass the vector itself, which is a list
#include <holdfast/key/interop.hpp>

#include <vector>

// The digest form of an array is auto mode's own; other languages would not find the key.
namespace key = holdfast::key;

int main() {
#ifndef HOLDFAST_CONTROL
  const std::vector<double> rates{0.5};
  (void)key::interop("a", "b", key::array(rates));
#endif
  (void)key::interop("a", "b", std::vector<double>{0.5});
}
