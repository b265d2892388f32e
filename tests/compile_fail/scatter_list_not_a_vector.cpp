// expect: protect_list needs a callable that gives std::vector
#include <holdfast/failover.hpp>
#include <holdfast/store/memory.hpp>

#include <list>

// A list is recovered in its order, as a vector.
int main() {
  holdfast::engine engine(holdfast::make_memory_store());
  const auto id = [](const std::string& item) { return item; };
#ifndef HOLDFAST_CONTROL
  (void)engine.protect_list("p", {}, [](int) { return std::list<std::string>{}; }, id);
#endif
  (void)engine.protect_list("p", {}, [](int) { return std::vector<std::string>{}; }, id);
}
