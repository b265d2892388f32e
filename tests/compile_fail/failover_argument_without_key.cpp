// expect: a pointer is not a key|holdfast_key
#include <holdfast/failover.hpp>
#include <holdfast/store/memory.hpp>

struct session {
  int id = 0;
};

int main() {
  holdfast::engine engine(holdfast::make_memory_store());
#ifndef HOLDFAST_CONTROL
  (void)engine.protect("p", {}, [](const session&) { return std::string(); })(session{});
#endif
  (void)engine.protect("p", {}, [](int n) { return std::to_string(n); })(1);
}
