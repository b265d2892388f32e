#pragma once

#include "store/write_behind/queue_state.hpp"

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::store {

/// Reads entries through the queue: applies the pending operations of a key to the entry in the
/// store below.
class queue_reader {
 public:
  /// The state must outlive it.
  explicit queue_reader(queue_state& state) : state_(state) {}

  /// Returns the visible entry. If the store below fails, returns the queued entry if it is
  /// certainly the newest version and, if `required_version` is set, that version; otherwise throws
  /// the error of the store below.
  [[nodiscard]] std::optional<entry> find(
      place location, std::string_view key,
      std::optional<timestamp> required_version = std::nullopt) const;
  /// Returns what the queue and the memory of the store below know. If only the queue knows the
  /// key, its puts, and the erases that follow them, decide the answer unless this process has
  /// written or read a newer version.
  [[nodiscard]] remembered_entry find_in_memory(place location, std::string_view key) const;

  /// As find, for many keys, with one read of the store below.
  [[nodiscard]] std::vector<std::optional<entry>> find_many(
      place location, std::span<const std::string> keys) const;

 private:
  /// Returns whether the change is a put whose entry is visible now.
  bool apply(const pending_operations::change& change, std::optional<entry>& visible,
             timestamp horizon) const;

  queue_state& state_;
};

}  // namespace HOLDFAST_NAMESPACE::detail::store
