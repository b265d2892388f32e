// expect: the callable returns nothing, so there is nothing to keep
#include <holdfast/failover.hpp>
#include <holdfast/store/memory.hpp>

int main() {
  holdfast::engine engine(holdfast::make_memory_store());
#ifndef HOLDFAST_CONTROL
  (void)engine.protect("p", {}, [](int) {});
#endif
  (void)engine.protect("p", {}, [](int n) { return std::to_string(n); });
}
