// expect: its callable must be callable as const
#include <holdfast/failover.hpp>
#include <holdfast/store/memory.hpp>

// Several threads would change it at once.
int main() {
  holdfast::engine engine(holdfast::make_memory_store());
#ifndef HOLDFAST_CONTROL
  (void)engine.protect("p", {}, [calls = 0](int n) mutable { return std::to_string(n + ++calls); });
#endif
  (void)engine.protect("p", {}, [](int n) { return std::to_string(n); });
}
