#pragma once

#include <holdfast/store/memory.hpp>
#include <holdfast/version.hpp>

#include "store/memory/shard.hpp"

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::store {

/// Bounded, sharded memory for entries, used by the memory store and the front of the tiered store.
/// Does not check names and keys.
/// Thread-safety: every function may be called from any thread; none holds more than one lock at a
/// time.
class memory_table {
 public:
  /// Throws errc::invalid_argument for limits of 0 and an invalid number of shards.
  explicit memory_table(const memory_store_options& options);

  /// Throws errc::too_large for an entry that is larger than the whole memory.
  void check_size(const entry& e) const;
  /// Writes an entry and evicts others if a limit is exceeded. Call check_size before.
  void put(const entry& e, const memory_write& write);

  // See memory_shard for these.
  [[nodiscard]] std::optional<entry> find(place location, std::string_view key);
  [[nodiscard]] std::optional<noted_entry> find_noted(place location, std::string_view key);
  [[nodiscard]] std::optional<timestamp> version(place location, std::string_view key);
  bool set_note(place location, std::string_view key, std::int64_t note);
  bool erase(place location, std::string_view key, std::optional<timestamp> as_of = std::nullopt);
  std::size_t expire(timestamp before, std::size_t limit);

  [[nodiscard]] entry_page find_all(place location, std::size_t limit, std::string_view after);
  [[nodiscard]] std::uint64_t count(place location);
  [[nodiscard]] std::vector<std::string> names(std::string_view realm, std::size_t limit,
                                               std::string_view after);
  [[nodiscard]] memory_store::numbers stats() const;

 private:
  [[nodiscard]] std::size_t shard_index(const memory_identity& id) const noexcept {
    return (id.hash >> 32U >> shift_) & (shard_count_ - 1);
  }
  [[nodiscard]] memory_shard& shard_of(const memory_identity& id) noexcept {
    return shards_[shard_index(id)];
  }
  void evict_from_others(std::size_t full_shard, timestamp now);

  std::size_t shard_count_;
  unsigned shift_;
  std::unique_ptr<memory_shard[]> shards_;
  memory_budget budget_{};
};

}  // namespace HOLDFAST_NAMESPACE::detail::store
