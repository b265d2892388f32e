#include "serve/live/sequence_ends.hpp"

#include <holdfast/error.hpp>

#include "sequence/definition.hpp"
#include "sequence/id_range.hpp"

#include <algorithm>
#include <set>

namespace HOLDFAST_NAMESPACE::detail::serve {

void sequence_ends::ask(const std::vector<named_counter>& counters) {
  const auto now = std::chrono::steady_clock::now();
  for (const auto& name : unknown_names(counters, now)) {
    const auto limit = read_limit(name);
    const std::scoped_lock lock(mutex_);
    cached_[name] = {.limit = limit, .read = now};
  }
}

/// Forgets sequences that are not there any more.
std::vector<std::string> sequence_ends::unknown_names(const std::vector<named_counter>& counters,
                                                      steady_time now) {
  std::set<std::string> present;
  std::vector<std::string> names;
  const std::scoped_lock lock(mutex_);
  for (const auto& counter : counters) {
    present.insert(counter.name);
    const auto it = cached_.find(counter.name);
    const bool is_known = it != cached_.end() && now - it->second.read < lifetime;
    if (!is_known && names.size() < names_in_a_turn) names.push_back(counter.name);
  }
  std::erase_if(cached_, [&](const auto& entry) { return !present.contains(entry.first); });
  return names;
}

std::optional<std::int64_t> sequence_ends::read_limit(const std::string& name) const {
  const auto definition = blocks_->definition(name);
  try {
    auto options = defaults_;
    if (definition) sequence::read_definition(*definition, options);
    if (options.cycle) return std::nullopt;
    return sequence::id_range(options).limit();
  } catch (const error&) {
    return std::nullopt;
  }
}

std::optional<double> sequence_ends::part_remaining(const std::string& name,
                                                    std::int64_t last) const {
  const std::scoped_lock lock(mutex_);
  const auto it = cached_.find(name);
  if (it == cached_.end()) return std::nullopt;
  const auto limit = it->second.limit.value_or(0);
  if (limit <= 0) return std::nullopt;
  const auto remaining = limit - std::clamp(last, std::int64_t{0}, limit);
  return static_cast<double>(remaining) / static_cast<double>(limit);
}

}  // namespace HOLDFAST_NAMESPACE::detail::serve
