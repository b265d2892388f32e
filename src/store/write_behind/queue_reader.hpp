#pragma once

#include "store/write_behind/queue_state.hpp"

#include <optional>
#include <string_view>

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

 private:
  void apply(const pending_operations::change& change, std::optional<entry>& visible,
             timestamp horizon) const;

  queue_state& state_;
};

}  // namespace HOLDFAST_NAMESPACE::detail::store
