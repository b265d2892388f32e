// expect: an expiry needs a unit; write 24h or std::chrono::hours\(24\)
#include <holdfast/failover.hpp>
#include <holdfast/store/memory.hpp>

#include <chrono>
#include <string>

int main() {
  holdfast::engine engine(holdfast::make_memory_store());
  const auto call = [](int n) { return std::to_string(n); };
#ifndef HOLDFAST_CONTROL
  (void)engine.protect("p", {.expiry = 24}, call);
#endif
  (void)engine.protect("p", {.expiry = std::chrono::hours(24)}, call);
}
