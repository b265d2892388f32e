// expect: this callable has no single signature
#include <holdfast/failover.hpp>
#include <holdfast/store/memory.hpp>

// Which type would its key be made of?
int main() {
  holdfast::engine engine(holdfast::make_memory_store());
#ifndef HOLDFAST_CONTROL
  (void)engine.protect("p", {}, [](auto n) { return std::to_string(n); });
#endif
  (void)engine.protect("p", {}, [](int n) { return std::to_string(n); });
}
