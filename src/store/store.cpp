#include <holdfast/store.hpp>

namespace HOLDFAST_NAMESPACE {

store::~store() = default;

name_listing::~name_listing() = default;

remembered_entry store::find_in_memory(place location, std::string_view key) {
  if (waits()) return {};
  return {.entry = find(location, key), .current = true};
}

holdfast::peer store::peer() const noexcept { return holdfast::peer::none; }

std::vector<std::optional<entry>> store::find_many(place location,
                                                   std::span<const std::string> keys) {
  std::vector<std::optional<entry>> rows;
  rows.reserve(keys.size());
  for (const auto& key : keys) rows.push_back(find(location, key));
  return rows;
}

}  // namespace HOLDFAST_NAMESPACE
