// expect: the order of a std::unordered_set would show in this key and differs between processes;
// pass a std::set
#include <holdfast/key/failover.hpp>

#include <set>
#include <unordered_set>

// Elements are joined in iteration order, which depends on the hash.
namespace key = holdfast::key;

int main() {
#ifndef HOLDFAST_CONTROL
  (void)key::failover({.name = "p"}, std::unordered_set<int>{2, 1});
#endif
  (void)key::failover({.name = "p"}, std::set<int>{2, 1});
}
