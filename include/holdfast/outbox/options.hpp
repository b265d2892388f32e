#pragma once

/// \file
/// How an outbox is opened.

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

/// Where payloads go that are too big to travel inside (a claim check). Yours: a bucket, a table, a directory.
/// Thread-safety: every function may be called from any thread. What `put` throws leaves `publish`. What `get` throws is the failure of that
/// event: it is tried again after 5 seconds, while the others go on; a payload that was changed is parked.
class HOLDFAST_API payload_store {
 public:
  virtual ~payload_store();
  /// Keeps it, and gives the reference to it. Called again for the same id when publishing is repeated.
  [[nodiscard]] virtual std::string put(std::string_view event_id, std::string_view payload) = 0;
  [[nodiscard]] virtual std::string get(std::string_view reference) = 0;
  /// The event was delivered or discarded: nobody will ask again. May be missed when a process dies.
  virtual void drop(std::string_view reference) = 0;
};

struct outbox_options {
  /// Redis: of all keys, with a hash tag. SQL: what stands in braces names the outbox, without characters that a name cannot have.
  std::string prefix = "{identity:outbox}";
  std::size_t lanes = 1;  ///< a power of two up to 256; fixed when the outbox is made, refused when it differs later
  durability safe{};      ///< unless a call says otherwise; a server that cannot keep it is refused
  outbox_quota quota{};
  /// Bytes of a payload. A larger one needs a claim check. Without one `publish` refuses it, and a worker parks it.
  std::size_t inline_limit = std::size_t{256} << 10U;
  std::shared_ptr<payload_store> claim_check{};                      ///< for larger ones; null: they are refused (errc::too_large)
  std::chrono::milliseconds dedup_window = std::chrono::minutes(5);  ///< how long delivered ids are remembered; 0: not
  std::size_t dedup_limit = 100'000;                                 ///< and how many in each lane; the oldest is forgotten first
  std::uint32_t max_deliveries = 10;                                 ///< handed out so often without a word: parked, it kills its handlers
  park_policy poison = park_policy::skip;                            ///< for those, and for events that are too late
  bool allow_eviction = false;                                       ///< Redis: work on a server that may throw events away when it is full
  std::uint64_t lane_alarm = 100'000;  ///< events in a lane; more are warned about: moving such a lane stalls a Cluster
  bool create_schema = false;          ///< SQL: make the tables if they are not there
};

}  // namespace HOLDFAST_NAMESPACE
