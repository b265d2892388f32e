// expect: sealed goes right above the base store
#include <holdfast/store/compose.hpp>

// Encryption above the queue would hide from it what is unchanged.
int main() {
#ifndef HOLDFAST_CONTROL
  auto wrong = holdfast::compose(holdfast::make_memory_store()).write_behind().sealed({});
#endif
  auto right = holdfast::compose(holdfast::make_memory_store()).sealed({}).write_behind().tiered().tenants({}).build();
}
