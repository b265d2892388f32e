// expect: there is no codec for this type
#include <holdfast/failover.hpp>
#include <holdfast/store/memory.hpp>

struct account {
  int balance = 0;
};

int main() {
  holdfast::engine engine(holdfast::make_memory_store());
#ifndef HOLDFAST_CONTROL
  (void)engine.protect("p", {}, [](int) { return account{}; });
#endif
  (void)engine.protect("p", {}, [](int n) { return std::to_string(n); });
}
