// expect: protect_each needs a callable that takes
#include <holdfast/failover.hpp>
#include <holdfast/store/memory.hpp>

using results = std::vector<std::optional<std::string>>;

// One id is a call of its own; ids come as a span or a vector.
int main() {
  holdfast::engine engine(holdfast::make_memory_store());
#ifndef HOLDFAST_CONTROL
  (void)engine.protect_each("p", {}, [](int) { return results{}; });
#endif
  (void)engine.protect_each("p", {}, [](std::span<const int> ids) { return results(ids.size()); });
}
