// expect: cannot bind non-const lvalue reference|non-const lvalue reference to type .* cannot bind
#include <holdfast/redis.hpp>

// What looks into a reply must not outlive it: of a temporary, the accessors return values.
holdfast::redis::reply ask();
const holdfast::redis::reply& keep(const holdfast::redis::reply& held) { return held.checked(); }

int main() {
#ifndef HOLDFAST_CONTROL
  auto& dangling = ask().checked();
  auto& problem = ask().problem();
  return dangling.is_nil() && problem.transient() ? 1 : 0;
#endif
  const auto& kept = ask().checked();
  const auto why = ask().problem();
  return kept.is_nil() && why.transient() && keep(kept).is_nil() ? 1 : 0;
}
