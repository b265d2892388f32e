// expect: auto mode refuses sets; pass a sorted std::vector
#include <holdfast/key/cachekit.hpp>

#include <set>
#include <vector>

// The format has no sets, so that nobody depends on how one would be sorted.
namespace key = holdfast::key;

int main() {
#ifndef HOLDFAST_CONTROL
  (void)key::cachekit({.module = "app", .qualname = "f"}, std::set<int>{2, 1});
#endif
  (void)key::cachekit({.module = "app", .qualname = "f"}, std::vector<int>{1, 2});
}
