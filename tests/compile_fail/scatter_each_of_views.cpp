// expect: a call owns its ids; take std::string
#include <holdfast/failover.hpp>
#include <holdfast/store/memory.hpp>

using results = std::vector<std::optional<std::string>>;

// A call may outlive its caller, and a view what it looks at.
int main() {
  holdfast::engine engine(holdfast::make_memory_store());
#ifndef HOLDFAST_CONTROL
  (void)engine.protect_each(
      "p", {}, [](std::span<const std::string_view> ids) { return results(ids.size()); });
#endif
  (void)engine.protect_each("p", {},
                            [](std::span<const std::string> ids) { return results(ids.size()); });
}
