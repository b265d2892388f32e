#include "store/memory/table.hpp"

#include <algorithm>
#include <bit>
#include <queue>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::store {

namespace {

constexpr std::size_t max_shards = 1024;

std::size_t shard_count_for(const memory_store_options& options) {
  const auto refuse = [](const std::string& option, const std::string& requirement) {
    throw error(errc::invalid_argument, option + " must be " + requirement, {.path = option});
  };
  if (options.max_entries == 0) refuse("max_entries", "at least 1");
  if (options.max_bytes == 0) refuse("max_bytes", "at least 1");
  if (options.shards > max_shards || (options.shards != 0 && !std::has_single_bit(options.shards)))
    refuse("shards", "a power of two, at most " + std::to_string(max_shards));
  if (options.shards != 0) return options.shards;
  // Small shards evict poorly; many shards reduce contention.
  constexpr std::size_t min_entries_per_shard = 64;
  constexpr std::size_t max_default_shards = 64;
  return std::clamp<std::size_t>(std::bit_floor(options.max_entries / min_entries_per_shard), 1,
                                 max_default_shards);
}

/// The next entries of one shard, sorted by key.
struct shard_run {
  std::vector<entry> entries{};
  std::size_t next = 0;
  bool more = false;
  [[nodiscard]] const std::string& key() const { return entries[next].key; }
};

}  // namespace

memory_table::memory_table(const memory_store_options& options)
    : shard_count_(shard_count_for(options)),
      shift_(32U - static_cast<unsigned>(std::countr_zero(shard_count_))),
      shards_(new memory_shard[shard_count_]) {
  budget_.max_entries = options.max_entries;
  budget_.max_bytes = options.max_bytes;
}

void memory_table::check_size(const entry& e) const {
  const std::size_t cost = memory_cost(e);
  if (cost <= budget_.max_bytes) return;
  throw error(errc::too_large,
              "the entry takes " + std::to_string(cost) +
                  " bytes; all of the memory store may take " + std::to_string(budget_.max_bytes) +
                  " (max_bytes)",
              {.path = e.name + "/" + e.key});
}

void memory_table::put(const entry& e, const memory_write& write) {
  const memory_identity id(place(e), e.key);
  const std::size_t index = shard_index(id);
  shards_[index].put(e, id, write, budget_);
  if (budget_.exceeded()) evict_from_others(index, write.now);
}

/// Called if the shard of a write has no other entry to evict.
void memory_table::evict_from_others(std::size_t full_shard, timestamp now) {
  for (std::size_t i = 1; i < shard_count_ && budget_.exceeded(); ++i) {
    while (budget_.exceeded() && shards_[(full_shard + i) % shard_count_].evict(now, budget_));
  }
}

std::optional<entry> memory_table::find(place location, std::string_view key) {
  const memory_identity id(location, key);
  return shard_of(id).find(id);
}

std::optional<noted_entry> memory_table::find_noted(place location, std::string_view key) {
  const memory_identity id(location, key);
  return shard_of(id).find_noted(id);
}

std::optional<timestamp> memory_table::version(place location, std::string_view key) {
  const memory_identity id(location, key);
  return shard_of(id).version(id);
}

bool memory_table::set_note(place location, std::string_view key, std::int64_t note) {
  const memory_identity id(location, key);
  return shard_of(id).set_note(id, note);
}

bool memory_table::erase(place location, std::string_view key, std::optional<timestamp> as_of) {
  const memory_identity id(location, key);
  return shard_of(id).erase(id, as_of, budget_);
}

std::size_t memory_table::expire(timestamp before, std::size_t limit) {
  std::size_t removed = 0;
  for (std::size_t i = 0; i < shard_count_ && removed < limit; ++i)
    removed += shards_[i].expire(before, limit - removed, budget_);
  return removed;
}

/// Merges sorted runs of all shards. Each run has the shard's expected share of the page and a few
/// entries more; a run that is used up is read again.
entry_page memory_table::find_all(place location, std::size_t limit, std::string_view after) {
  entry_page page;
  if (limit == 0) return page;
  const memory_identity id(location, {});
  constexpr std::size_t extra = 8;
  const std::size_t run_size = limit / shard_count_ + extra;
  std::vector<shard_run> runs(shard_count_);
  const auto has_greater_key = [&runs](std::size_t a, std::size_t b) {
    return runs[a].key() > runs[b].key();
  };
  std::priority_queue<std::size_t, std::vector<std::size_t>, decltype(has_greater_key)>
      shards_by_key(has_greater_key);
  const auto read_run = [&](std::size_t shard, std::string_view after_key) {
    shard_run& run = runs[shard];
    run.entries = shards_[shard].page(id, run_size, after_key, run.more);
    run.next = 0;
    if (!run.entries.empty()) shards_by_key.push(shard);
  };
  for (std::size_t i = 0; i < shard_count_; ++i) read_run(i, after);
  while (!shards_by_key.empty()) {
    if (page.entries.size() == limit) {
      page.next = page.entries.back().key;
      break;
    }
    const std::size_t shard = shards_by_key.top();
    shards_by_key.pop();
    shard_run& run = runs[shard];
    page.entries.push_back(std::move(run.entries[run.next]));
    if (++run.next < run.entries.size()) shards_by_key.push(shard);
    else if (run.more) read_run(shard, page.entries.back().key);
  }
  return page;
}

std::uint64_t memory_table::count(place location) {
  const memory_identity id(location, {});
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < shard_count_; ++i) sum += shards_[i].count(id);
  return sum;
}

std::vector<std::string> memory_table::names(std::string_view realm, std::size_t limit,
                                             std::string_view after) {
  std::set<std::string> collected;
  if (limit == 0) return {};
  for (std::size_t i = 0; i < shard_count_; ++i)
    shards_[i].collect_names(realm, after, limit, collected);
  return {collected.begin(), collected.end()};
}

memory_store::numbers memory_table::stats() const {
  memory_store::numbers sum;
  for (std::size_t i = 0; i < shard_count_; ++i) shards_[i].add_to(sum);
  sum.entries = budget_.entries.load();
  sum.bytes = budget_.bytes.load();
  return sum;
}

}  // namespace HOLDFAST_NAMESPACE::detail::store
