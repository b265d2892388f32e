#include <holdfast/store.hpp>

#include "store/checks.hpp"

#include <algorithm>

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

expiry_profile store::expiring(place location, std::span<const timestamp> times) {
  constexpr std::size_t page_size = 1000;
  constexpr std::size_t most_entries = 10'000;
  detail::store::check_expiry_times(times);
  expiry_profile profile{.counts = std::vector<std::uint64_t>(times.size())};
  std::string after;
  for (;;) {
    auto page = find_all(location, page_size, after);
    for (const auto& row : page.entries) {
      for (std::size_t i = 0; i < times.size(); ++i) {
        if (row.expire_on < times[i]) ++profile.counts[i];
      }
    }
    profile.entries += page.entries.size();
    if (!page.next) return profile;
    if (profile.entries + page_size > most_entries) break;
    after = *std::move(page.next);
  }
  profile.at_least = true;
  return profile;
}

}  // namespace HOLDFAST_NAMESPACE
