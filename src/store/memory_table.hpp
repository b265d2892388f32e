#pragma once

#include <holdfast/store/memory.hpp>
#include <holdfast/version.hpp>

#include "store/memory_shard.hpp"

#include <cstddef>
#include <memory>
#include <optional>
#include <string_view>

namespace HOLDFAST_NAMESPACE {

/// Bounded, sharded memory for entries: the memory store, and the front of the tiered one. It checks no texts.
/// Thread-safety: every function may be called from any thread; none holds more than one lock at a time.
class memory_table {
 public:
  /// Throws errc::invalid_argument for bounds or shards that cannot be meant.
  explicit memory_table(const memory_store_options& options);

  /// Throws errc::too_large for an entry that would not fit if it were alone.
  void check_size(const entry& e) const;
  /// Writes an entry (check_size comes first), and lets others leave when it gets too full.
  void put(const entry& e, const memory_write& how);
  [[nodiscard]] std::optional<entry> find(place where, std::string_view key);
  [[nodiscard]] std::optional<noted_entry> find_noted(place where, std::string_view key);
  [[nodiscard]] std::optional<timestamp> version(place where, std::string_view key);
  bool note(place where, std::string_view key, std::int64_t note);
  bool erase(place where, std::string_view key, std::optional<timestamp> as_of = std::nullopt);
  std::size_t expire(timestamp before, std::size_t limit);
  [[nodiscard]] entry_page find_all(place where, std::size_t limit, std::string_view after);
  [[nodiscard]] std::uint64_t count(place where);
  [[nodiscard]] memory_store::numbers stats() const;

 private:
  [[nodiscard]] std::size_t home_of(const memory_identity& who) const noexcept { return (who.hash >> 32U >> shift_) & (shards_ - 1); }
  void make_room(std::size_t except, timestamp now);

  std::size_t shards_;
  unsigned shift_;
  std::unique_ptr<memory_shard[]> shard_;
  memory_budget budget_{};
};

}  // namespace HOLDFAST_NAMESPACE
