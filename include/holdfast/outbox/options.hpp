#pragma once

/// \file
/// Options of an outbox.

#include <holdfast/log.hpp>
#include <holdfast/metrics.hpp>
#include <holdfast/outbox/event.hpp>
#include <holdfast/outbox/operations.hpp>
#include <holdfast/version.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace HOLDFAST_NAMESPACE {

/// Keeps payloads that are too large for the outbox (a claim check). Implement it on a bucket, a
/// table or a directory.
///
/// Errors: an exception of `put` leaves `publish`. An exception of `get` concerns that event only:
///
/// - errc::not_found, or a payload that was changed: the event is parked.
/// - another transient error (error::transient): the event is retried every 5 seconds, without
///   counting an attempt.
/// - any other exception: retried after 5, 10, 20, ... 320 seconds; the failure number
///   `max_deliveries` parks the event.
///
/// Thread-safety: every function may be called from any thread.
class HOLDFAST_API payload_store {
 public:
  virtual ~payload_store();
  /// Stores the payload and returns a reference to it. The name is different in each call, also
  /// when publishing is repeated: the id of the event, a dot and a UUID.
  [[nodiscard]] virtual std::string put(std::string_view name, std::string_view payload) = 0;
  /// Throws errc::not_found if the payload does not exist.
  [[nodiscard]] virtual std::string get(std::string_view reference) = 0;
  /// Called when the payload is not needed any more: its event was delivered, discarded, refused or
  /// a duplicate. The call is lost if the process ends first, if the publishing is in doubt and not
  /// kept, or if the caller rolls back the transaction of the event. Payloads that are older than
  /// every event may be removed.
  virtual void drop(std::string_view reference) = 0;
};

struct outbox_options {
  /// Name of the outbox, with a hash tag. On Redis it is the prefix of all keys. On SQL the text
  /// inside the braces becomes part of the table names. Empty: `{holdfast}`, or
  /// `{identity:outbox}`, the default of earlier versions, if only that outbox exists;
  /// outbox_backend::prefix tells which.
  std::string prefix{};
  /// A power of two, at most 256. Fixed when the outbox is created; opening it with another number
  /// is refused.
  std::size_t lanes = 1;
  /// Durability of calls that do not specify one. A server that cannot provide it is refused.
  durability safe{};
  outbox_quota quota{};
  /// Maximum size of a payload inside the outbox, in bytes. Without a claim check, a larger payload
  /// is refused when it is published, and parked when it is claimed.
  std::size_t inline_limit = std::size_t{256} << 10U;
  /// Keeps larger payloads. If null, they are refused (errc::too_large).
  std::shared_ptr<payload_store> claim_check{};
  /// How long the ids of delivered events are remembered. 0: not at all.
  std::chrono::milliseconds dedup_window = std::chrono::minutes(5);
  /// How many of them are remembered in each lane. The oldest is forgotten first. 0: no limit.
  std::size_t dedup_limit = 100'000;
  /// An event that was claimed this often without being settled is parked: it probably kills its
  /// handlers.
  std::uint32_t max_deliveries = 10;
  /// What the key does when such an event, or one that is too old, is parked.
  park_policy poison = park_policy::skip;
  /// Redis: accept a server that may evict events when its memory is full.
  bool allow_eviction = false;
  /// Logs a warning when a lane has more events: moving such a lane stalls a Redis Cluster. 0:
  /// never.
  std::uint64_t lane_alarm = 100'000;
  /// MySQL: accept a cluster with Galera (Percona XtraDB Cluster) of more than one node. Its nodes
  /// do not share row locks, so keys can get stuck. For an application that uses one node at a
  /// time. Clusters of MariaDB need no such option.
  bool allow_unsafe = false;
  /// SQL: create the tables if they do not exist.
  bool create_schema = false;
};

}  // namespace HOLDFAST_NAMESPACE
