#pragma once

/// \file
/// Redis Cluster: which slot a key lands in, and prefixes whose hash tag keeps keys together.

#include <holdfast/version.hpp>

#include <cstdint>
#include <string>
#include <string_view>

namespace HOLDFAST_NAMESPACE::key {

/// CRC16/XMODEM of the key mod 16384, or of its hash tag: what stands between the first `{` and the first `}` after it, unless that is nothing.
[[nodiscard]] HOLDFAST_API std::uint16_t redis_slot(std::string_view key) noexcept;

/// A validated prefix: exactly one hash tag, not empty; no other brace, no control character or space; at most 200 bytes of UTF-8.
/// Every key that begins with it lands in one slot.
/// Thread-safety: immutable.
class HOLDFAST_API redis_prefix {
 public:
  /// Throws errc::invalid_argument and says what to change.
  explicit redis_prefix(std::string_view text = "{identity:outbox}");

  [[nodiscard]] const std::string& text() const noexcept { return text_; }
  /// What stands between the braces.
  [[nodiscard]] std::string_view tag() const noexcept;
  [[nodiscard]] std::uint16_t slot() const noexcept { return slot_; }

 private:
  std::string text_;
  std::uint16_t slot_;
};

/// The four keys of an outbox, all in one slot, so that one script may touch them all.
/// Thread-safety: immutable.
class HOLDFAST_API outbox_keys {
 public:
  explicit outbox_keys(const redis_prefix& prefix = redis_prefix());

  [[nodiscard]] const std::string& entries() const noexcept { return entries_; }        ///< hash: event id -> entry
  [[nodiscard]] const std::string& pending() const noexcept { return pending_; }        ///< sorted set: event id by next attempt
  [[nodiscard]] const std::string& expiry_due() const noexcept { return expiry_due_; }  ///< sorted set: ticket id by expiry
  [[nodiscard]] const std::string& lock() const noexcept { return lock_; }              ///< string: the poller's owner token
  [[nodiscard]] std::uint16_t slot() const noexcept { return slot_; }

 private:
  std::string entries_, pending_, expiry_due_, lock_;
  std::uint16_t slot_;
};

}  // namespace HOLDFAST_NAMESPACE::key
