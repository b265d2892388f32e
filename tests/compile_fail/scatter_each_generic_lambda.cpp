// expect: this callable has no single signature
#include <holdfast/failover.hpp>
#include <holdfast/store/memory.hpp>

using results = std::vector<std::optional<std::string>>;

int main() {
  holdfast::engine engine(holdfast::make_memory_store());
#ifndef HOLDFAST_CONTROL
  (void)engine.protect_each("p", {}, [](const auto& ids) { return results(ids.size()); });
#endif
  (void)engine.protect_each("p", {},
                            [](const std::vector<int>& ids) { return results(ids.size()); });
}
