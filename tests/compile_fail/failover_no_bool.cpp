// expect: could not convert|no viable conversion|cannot convert|is not contextually convertible
#include <holdfast/failover.hpp>
#include <holdfast/store/memory.hpp>

// "There is a value", or "it is live"? Nobody could guess.
int main() {
  holdfast::engine engine(holdfast::make_memory_store());
  const auto point = engine.protect("p", {}, [](int n) { return std::to_string(n); });
#ifndef HOLDFAST_CONTROL
  if (point(1)) return 1;
#endif
  if (point(1).live()) return 0;
}
