#include "store/doctor/database_facts.hpp"

#include <algorithm>

namespace HOLDFAST_NAMESPACE::detail::store {

bool index_facts::has_key_columns() const {
  return std::ranges::count(columns, "FAILOVER_NAME") == 1 &&
         std::ranges::count(columns, "FAILOVER_KEY") == 1;
}

bool index_facts::is_key() const { return unique && columns.size() == 2 && has_key_columns(); }

const server_setting* server_facts::find(std::string_view name) const noexcept {
  const auto it = std::ranges::find(settings, name, &server_setting::name);
  return it == settings.end() ? nullptr : &*it;
}

}  // namespace HOLDFAST_NAMESPACE::detail::store
