// expect: the order of a std::unordered_map would show in this key and differs between processes;
// pass a std::map
#include <holdfast/key/failover.hpp>

#include <map>
#include <string>
#include <unordered_map>

// Entries are printed in iteration order, which depends on the hash.
namespace key = holdfast::key;

int main() {
#ifndef HOLDFAST_CONTROL
  (void)key::failover({.name = "p"}, std::unordered_map<std::string, int>{{"a", 1}});
#endif
  (void)key::failover({.name = "p"}, std::map<std::string, int>{{"a", 1}});
}
