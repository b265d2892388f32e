// expect: the keys of a map must be text, integers, floats, booleans or bytes
#include <holdfast/key/interop.hpp>

#include <map>
#include <string>
#include <utility>

// MessagePack could carry them, but no other language of the format could look one up.
namespace key = holdfast::key;

int main() {
#ifndef HOLDFAST_CONTROL
  (void)key::interop("a", "b", std::map<std::pair<int, int>, int>{});
#endif
  (void)key::interop("a", "b", std::map<std::string, int>{});
}
