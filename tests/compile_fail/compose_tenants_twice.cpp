// expect: tenants goes above all others, and only once
#include <holdfast/store/compose.hpp>

int main() {
#ifndef HOLDFAST_CONTROL
  auto wrong = holdfast::compose(holdfast::make_memory_store()).tenants({}).tenants({});
#endif
  auto right = holdfast::compose(holdfast::make_memory_store()).tenants({}).build();
}
