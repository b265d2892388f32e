// expect: returns std::vector<std::optional<T>>
#include <holdfast/failover.hpp>
#include <holdfast/store/memory.hpp>

// A result for each id, which may be none: a bare vector could not say which is missing.
int main() {
  holdfast::engine engine(holdfast::make_memory_store());
#ifndef HOLDFAST_CONTROL
  (void)engine.protect_each(
      "p", {}, [](std::span<const int> ids) { return std::vector<std::string>(ids.size()); });
#endif
  (void)engine.protect_each("p", {}, [](std::span<const int> ids) {
    return std::vector<std::optional<std::string>>(ids.size());
  });
}
