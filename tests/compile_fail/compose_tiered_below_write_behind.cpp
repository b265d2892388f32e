// expect: write_behind goes above sealed and below tiered and tenants
#include <holdfast/store/compose.hpp>

// A queue above the memory would hold entries back from it.
int main() {
#ifndef HOLDFAST_CONTROL
  auto wrong = holdfast::compose(holdfast::make_memory_store()).tiered().write_behind();
#endif
  auto right = holdfast::compose(holdfast::make_memory_store()).write_behind().tiered().build();
}
