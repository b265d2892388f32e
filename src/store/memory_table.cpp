#include "store/memory_table.hpp"

#include <algorithm>
#include <bit>
#include <queue>
#include <string>
#include <utility>
#include <vector>

namespace HOLDFAST_NAMESPACE {

namespace {

constexpr std::size_t most_shards = 1024;

std::size_t shards_for(const memory_store_options& options) {
  if (options.max_entries == 0) throw error(errc::invalid_argument, "max_entries must be at least 1", {.path = "max_entries"});
  if (options.max_bytes == 0) throw error(errc::invalid_argument, "max_bytes must be at least 1", {.path = "max_bytes"});
  if (options.shards != 0) {
    if (options.shards > most_shards || !std::has_single_bit(options.shards)) {
      throw error(errc::invalid_argument, "shards must be a power of two, at most " + std::to_string(most_shards), {.path = "shards"});
    }
    return options.shards;
  }
  // Few entries in each would make each choose badly who leaves; many shards keep threads apart.
  constexpr std::size_t entries_each = 64;
  constexpr std::size_t enough = 64;
  return std::clamp<std::size_t>(std::bit_floor(options.max_entries / entries_each), 1, enough);
}

/// What a shard has for a page, a run at a time.
struct run {
  std::vector<entry> entries{};
  std::size_t at = 0;
  bool more = false;
  [[nodiscard]] const std::string& key() const { return entries[at].key; }
};

}  // namespace

memory_table::memory_table(const memory_store_options& options)
    : shards_(shards_for(options)), shift_(32U - static_cast<unsigned>(std::countr_zero(shards_))), shard_(new memory_shard[shards_]) {
  budget_.max_entries = options.max_entries;
  budget_.max_bytes = options.max_bytes;
}

void memory_table::check_size(const entry& e) const {
  const std::size_t cost = memory_cost(e);
  if (cost <= budget_.max_bytes) return;
  throw error(errc::too_large,
              "the entry takes " + std::to_string(cost) + " bytes; all of the memory store may take " + std::to_string(budget_.max_bytes) +
                  " (max_bytes)",
              {.path = e.name + "/" + e.key});
}

void memory_table::put(const entry& e, const memory_write& how) {
  const memory_identity who(place(e), e.key);
  const std::size_t home = home_of(who);
  shard_[home].put(e, who, how, budget_);
  if (budget_.exceeded()) make_room(home, how.now);
}

void memory_table::make_room(std::size_t except, timestamp now) {
  // The shard that was written to has nobody else left; the others have.
  for (std::size_t i = 1; i < shards_ && budget_.exceeded(); ++i) {
    while (budget_.exceeded() && shard_[(except + i) % shards_].evict(now, budget_));
  }
}

std::optional<entry> memory_table::find(place where, std::string_view key) {
  const memory_identity who(where, key);
  return shard_[home_of(who)].find(who);
}

std::optional<noted_entry> memory_table::find_noted(place where, std::string_view key) {
  const memory_identity who(where, key);
  return shard_[home_of(who)].find_noted(who);
}

std::optional<timestamp> memory_table::version(place where, std::string_view key) {
  const memory_identity who(where, key);
  return shard_[home_of(who)].version(who);
}

bool memory_table::note(place where, std::string_view key, std::int64_t note) {
  const memory_identity who(where, key);
  return shard_[home_of(who)].note(who, note);
}

bool memory_table::erase(place where, std::string_view key, std::optional<timestamp> as_of) {
  const memory_identity who(where, key);
  return shard_[home_of(who)].erase(who, as_of, budget_);
}

std::size_t memory_table::expire(timestamp before, std::size_t limit) {
  std::size_t removed = 0;
  for (std::size_t i = 0; i < shards_ && removed < limit; ++i) removed += shard_[i].expire(before, limit - removed, budget_);
  return removed;
}

entry_page memory_table::find_all(place where, std::size_t limit, std::string_view after) {
  entry_page page;
  if (limit == 0) return page;
  // Each shard gives its share and a little more, in order; the runs are merged, and who comes to the end of its run gives another.
  const memory_identity of(where, {});
  constexpr std::size_t little = 8;
  const std::size_t share = limit / shards_ + little;
  std::vector<run> runs(shards_);
  const auto later = [&runs](std::size_t a, std::size_t b) { return runs[a].key() > runs[b].key(); };
  std::priority_queue<std::size_t, std::vector<std::size_t>, decltype(later)> next(later);
  const auto read = [&](std::size_t i, std::string_view from) {
    runs[i].entries = shard_[i].page(of, share, from, runs[i].more);
    runs[i].at = 0;
    if (!runs[i].entries.empty()) next.push(i);
  };
  for (std::size_t i = 0; i < shards_; ++i) read(i, after);
  while (!next.empty()) {
    if (page.entries.size() == limit) {
      page.next = page.entries.back().key;
      break;
    }
    const std::size_t i = next.top();
    next.pop();
    page.entries.push_back(std::move(runs[i].entries[runs[i].at]));
    if (++runs[i].at < runs[i].entries.size()) next.push(i);
    else if (runs[i].more) read(i, page.entries.back().key);
  }
  return page;
}

std::uint64_t memory_table::count(place where) {
  const memory_identity of(where, {});
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < shards_; ++i) sum += shard_[i].count(of);
  return sum;
}

memory_store::numbers memory_table::stats() const {
  memory_store::numbers sum;
  for (std::size_t i = 0; i < shards_; ++i) shard_[i].add_to(sum);
  sum.entries = budget_.entries.load();
  sum.bytes = budget_.bytes.load();
  return sum;
}

}  // namespace HOLDFAST_NAMESPACE
