#pragma once

/// \file
/// Redis Cluster slots, and key prefixes with a hash tag that keeps their keys in one slot.

#include <holdfast/version.hpp>

#include <cstdint>
#include <string>
#include <string_view>

namespace HOLDFAST_NAMESPACE::key {

/// The slot of a key: CRC16/XMODEM mod 16384 of its hash tag, or of the whole key if it has none.
/// The hash tag is the text between the first `{` and the first `}` after it, if not empty.
[[nodiscard]] HOLDFAST_API std::uint16_t redis_slot(std::string_view key) noexcept;

/// A valid prefix: at most 200 bytes of UTF-8, exactly one hash tag, which is not empty, and no
/// other brace, control character or space. All keys that begin with it are in one slot.
/// Thread-safety: immutable.
class HOLDFAST_API redis_prefix {
 public:
  /// Throws errc::invalid_argument; the message says what to change.
  explicit redis_prefix(std::string_view text = "{identity:outbox}");

  [[nodiscard]] const std::string& text() const noexcept { return text_; }
  /// The text between the braces.
  [[nodiscard]] std::string_view tag() const noexcept;
  [[nodiscard]] std::uint16_t slot() const noexcept { return slot_; }

 private:
  std::string text_;
  std::uint16_t slot_;
};

/// The four keys of an outbox. They are in one slot, so that one script can use all of them.
/// Thread-safety: immutable.
class HOLDFAST_API outbox_keys {
 public:
  explicit outbox_keys(const redis_prefix& prefix = redis_prefix());

  /// Hash: event id to entry.
  [[nodiscard]] const std::string& entries() const noexcept { return entries_; }
  /// Sorted set: event ids by time of the next attempt.
  [[nodiscard]] const std::string& pending() const noexcept { return pending_; }
  /// Sorted set: expiry tickets by time. A ticket that is not cancelled in time becomes an event.
  [[nodiscard]] const std::string& expiry_due() const noexcept { return expiry_due_; }
  /// String: the token of the poller that owns the lane.
  [[nodiscard]] const std::string& lock() const noexcept { return lock_; }
  [[nodiscard]] std::uint16_t slot() const noexcept { return slot_; }

 private:
  std::string entries_, pending_, expiry_due_, lock_;
  std::uint16_t slot_;
};

}  // namespace HOLDFAST_NAMESPACE::key
