#pragma once

/// \file
/// Events, and how safely an outbox keeps them.

#include <holdfast/clock.hpp>
#include <holdfast/version.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>

namespace HOLDFAST_NAMESPACE {

/// A message that must be delivered. Text fields are UTF-8 of at most 256 bytes, header values of
/// at most 4096. They have no control characters (header values may have tabs), no line separators
/// and no characters that change the direction of text. None of this applies to the payload.
struct event {
  /// What happened, for example `ticket.created`. Required.
  std::string type{};
  /// Events with the same key are delivered in the order of publishing. Events without a key are
  /// delivered in any order.
  std::string key{};
  /// Any bytes. If the content type is JSON, at most 1024 lists and objects inside each other.
  std::string payload{};
  /// A UUID in lower case. An outbox keeps one event per id, however often it is published. If
  /// empty, `publish` creates a UUID of version 7.
  std::string id{};
  std::string content_type = "application/json";
  /// For the receiver, for example `traceparent` or `tenant`. At most 64.
  std::map<std::string, std::string, std::less<>> headers{};
  /// Delay before the first delivery, measured by the clock of the store.
  std::chrono::milliseconds delay{};
  /// An older event is parked instead of delivered. 0: no limit. A replayed event is delivered
  /// whatever its age.
  std::chrono::milliseconds time_to_live{};
  /// Name of the schema of the payload, as the receiver knows it.
  std::string schema{};
  /// Type of the object that the event is about, for example `ticket`.
  std::string aggregate_type{};
  /// Id of that object, for example `7`.
  std::string aggregate_id{};
  /// Reference to a payload outside the outbox; see outbox_options::claim_check. The outbox sets
  /// this field and the next two. A publisher leaves them empty.
  std::string payload_ref{};
  /// SHA-256 of that payload, in hexadecimal digits.
  std::string payload_sha256{};
  /// Size of that payload in bytes.
  std::uint64_t payload_size = 0;

  bool operator==(const event&) const = default;
};

/// Returns a new event id: a UUID of version 7, larger than all that this process created before.
[[nodiscard]] HOLDFAST_API std::string new_event_id();

/// Returns the id of the event that a ticket becomes when it expires. The id depends only on the
/// ticket and the time, so a ticket that fires twice produces the same event.
///
/// It is a UUID of version 5 with the namespace 6ba7b812-9dad-11d1-80b4-00c04fd430c8 and the name
/// `<ticket>:<milliseconds since 1970>`.
[[nodiscard]] HOLDFAST_API std::string expiry_event_id(std::string_view ticket,
                                                       timestamp expires_at);

/// When a write may be reported as successful. Stronger levels are slower.
struct durability {
  enum class kind : std::uint8_t {
    /// The server has accepted it. On SQL: the transaction is committed.
    memory,
    /// Redis has an append-only file. With `appendfsync everysec`, the default of Redis, it replies
    /// before it writes while the disk is busy with a sync: the end of the server process loses
    /// what
    /// was accepted in the last seconds, and so does the end of the machine. The outbox logs a
    /// warning; use `always` to be sure.
    aof,
    /// `replicas` replicas have it as well (WAIT). It survives a failover to one of them.
    replicated,
    /// It is on the disks of the server and of `replicas` replicas (WAITAOF, Redis 7.2). It
    /// survives the end of the machine.
    fsynced,
    /// Redis has synced it to its append-only file before it replied (`appendfsync always`, any
    /// version). It survives the end of the machine. A server with another setting is refused.
    always
  };
  kind level = kind::memory;
  /// For `replicated` and `fsynced`.
  std::size_t replicas = 0;
  /// How long to wait for replicas and disks. After that the result is in doubt.
  std::chrono::milliseconds timeout = std::chrono::seconds(1);

  [[nodiscard]] static constexpr durability memory() { return {}; }
  [[nodiscard]] static constexpr durability aof() { return {.level = kind::aof}; }
  [[nodiscard]] static constexpr durability always() { return {.level = kind::always}; }
  [[nodiscard]] static constexpr durability replicated(
      std::size_t replicas, std::chrono::milliseconds timeout = std::chrono::seconds(1)) {
    return {.level = kind::replicated, .replicas = replicas, .timeout = timeout};
  }
  [[nodiscard]] static constexpr durability fsynced(
      std::size_t replicas = 0, std::chrono::milliseconds timeout = std::chrono::seconds(1)) {
    return {.level = kind::fsynced, .replicas = replicas, .timeout = timeout};
  }
  bool operator==(const durability&) const = default;
};
/// `memory`, `aof`, `replicated`, `fsynced`, `always`.
[[nodiscard]] HOLDFAST_API std::string_view to_string(durability::kind level) noexcept;

/// A number that grows with every claim and every lock. Of two holders of the same event or lock,
/// the later one has the larger fence. A receiver that remembers the largest fence it has seen can
/// refuse an earlier holder that is late.
using fence = std::int64_t;

}  // namespace HOLDFAST_NAMESPACE
