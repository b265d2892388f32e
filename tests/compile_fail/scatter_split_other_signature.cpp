// expect: the splitter is for another signature than that of the callable
#include <holdfast/failover.hpp>
#include <holdfast/store/memory.hpp>

int main() {
  holdfast::engine engine(holdfast::make_memory_store());
  const holdfast::splitter<std::string(int), std::string, int> how{};
#ifndef HOLDFAST_CONTROL
  (void)engine.protect_split("p", {}, how, [](const std::string& text) { return text; });
#endif
  (void)engine.protect_split("p", {}, how, [](int n) { return std::to_string(n); });
}
