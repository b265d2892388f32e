#pragma once

/// \file
/// What an outbox keeps: events, and how safely.

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

/// A promise: something that has to be delivered. Texts are UTF-8 of at most 256 bytes, values of headers of at most 4096; without control
/// characters (values may have tabs), line separators and characters that change the direction of text. Not so the payload.
struct event {
  std::string type{};     ///< what happened: `ticket.created`. Not empty
  std::string key{};      ///< events of one key are delivered in the order in which they were published; empty: in any order
  std::string payload{};  ///< any bytes; JSON, by its content type, at most 1024 deep
  std::string id{};       ///< a UUID in lower case; publishing it twice is publishing it once. Empty: `publish` makes one (version 7)
  std::string content_type = "application/json";
  std::map<std::string, std::string, std::less<>> headers{};  ///< for the receiver: `traceparent`, `tenant`... At most 64
  std::chrono::milliseconds delay{};                          ///< not before so much later, by the clock of the store
  /// Later than this it is not delivered any more, but parked; 0: never too late. One that is replayed is delivered all the same.
  std::chrono::milliseconds time_to_live{};
  std::string schema{};          ///< of the payload, as the receiver knows it
  std::string aggregate_type{};  ///< what the event is about: `ticket`
  std::string aggregate_id{};    ///< and which one: `7`
  /// Where a payload lies that was too big to travel inside (see outbox_options::claim_check). Set by the outbox; never by a publisher.
  std::string payload_ref{};
  std::string payload_sha256{};  ///< of the payload behind payload_ref, in hexadecimal digits
  std::uint64_t payload_size = 0;

  bool operator==(const event&) const = default;
};

/// A new id for an event: a UUID of version 7, larger than every one made before in this process.
[[nodiscard]] HOLDFAST_API std::string new_event_id();

/// The id of the event that a ticket becomes when it expires: a UUID of version 5 of the ticket and that time (milliseconds since 1970),
/// so that the same expiry is the same event, however often it fires. Namespace 6ba7b812-9dad-11d1-80b4-00c04fd430c8, name `ticket:time`.
[[nodiscard]] HOLDFAST_API std::string expiry_event_id(std::string_view ticket, timestamp expires_at);

/// When a call that writes may say that it is done. More is slower.
struct durability {
  enum class kind : std::uint8_t {
    memory,      ///< the server has it. On SQL it is committed
    aof,         ///< Redis has an append-only file, and wrote it there: survives the end of the process, not always of the machine. (With
                 ///< `appendfsync everysec` it answers before it writes while the disk is busy with a sync: then it has it in memory.)
    replicated,  ///< so many replicas have it, too (WAIT): survives the failover to one of them
    fsynced      ///< it is on the disk of the server and of so many replicas (WAITAOF, Redis 7.2): survives the end of the machine
  };
  kind level = kind::memory;
  std::size_t replicas = 0;                                     ///< for replicated and fsynced
  std::chrono::milliseconds timeout = std::chrono::seconds(1);  ///< how long to wait for them; then the result is in doubt

  [[nodiscard]] static constexpr durability memory() { return {}; }
  [[nodiscard]] static constexpr durability aof() { return {.level = kind::aof}; }
  [[nodiscard]] static constexpr durability replicated(std::size_t replicas, std::chrono::milliseconds timeout = std::chrono::seconds(1)) {
    return {.level = kind::replicated, .replicas = replicas, .timeout = timeout};
  }
  [[nodiscard]] static constexpr durability fsynced(std::size_t replicas = 0, std::chrono::milliseconds timeout = std::chrono::seconds(1)) {
    return {.level = kind::fsynced, .replicas = replicas, .timeout = timeout};
  }
  bool operator==(const durability&) const = default;
};
/// `memory`, `aof`, `replicated`, `fsynced`.
[[nodiscard]] HOLDFAST_API std::string_view to_string(durability::kind level) noexcept;

/// Grows with every claim and every lock: of two holders of the same thing, the later one has the larger fence. A receiver that keeps the
/// largest one it has seen can refuse what a late holder still sends.
using fence = std::int64_t;

}  // namespace HOLDFAST_NAMESPACE
