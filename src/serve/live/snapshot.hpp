#pragma once

/// \file
/// What the server knows at one moment about points, stores, sequences, outboxes and instances.

#include <holdfast/breaker.hpp>
#include <holdfast/clock.hpp>
#include <holdfast/failover/status.hpp>
#include <holdfast/outbox/operations.hpp>
#include <holdfast/reporter.hpp>
#include <holdfast/sequence/block_store.hpp>
#include <holdfast/store.hpp>
#include <holdfast/store/probe.hpp>
#include <holdfast/version.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::serve {

/// The answer of a database to a question, or the last one that there was.
template <class Value>
struct answered {
  std::optional<Value> value{};
  /// When the database gave it.
  timestamp moment{};
  /// Why the last question failed, or that it is not answered yet. Empty: `value` is current.
  std::string problem{};
};

/// One point, summed over the engine of the server and the engines of all instances.
struct point_sample {
  std::string name{};
  std::size_t instances = 0;
  bool own = false;                               ///< the engine of the server has it
  breaker_state breaker = breaker_state::closed;  ///< open if it is open in an instance
  std::uint64_t running = 0;
  double rate = 0;  ///< calls a second
  /// Parts of the calls that ended, from 0 to 1.
  double stale_ratio = 0;
  double unserved_ratio = 0;
  std::uint64_t calls = 0;  ///< that ended, in the window of the rates
  std::uint64_t stale = 0;
  std::uint64_t unserved = 0;
  /// Of the engine of the server: the part of recent calls that kept answers could serve, and when
  /// the first and half of these answers expire. Empty if it is not known.
  std::optional<double> coverage{};
  std::optional<timestamp> first_expiry{};
  std::optional<timestamp> half_expiry{};
  /// Of the engine of the server: the age of the oldest kept answer that was served lately.
  std::optional<std::chrono::microseconds> oldest_served{};
};

struct store_sample {
  std::string name{};
  answered<store_health> health{};
  /// The number of findings of the doctor by severity. Empty: not known.
  std::optional<std::map<severity, std::uint64_t>> findings{};
};

struct sequence_sample {
  std::string name{};
  counter_state counter{};
  double rate = 0;  ///< granted ids a second
  /// The part of the ids that is left, from 0 to 1. Empty if it is not known, or has no end.
  std::optional<double> remaining{};
};

struct lane_sample {
  std::size_t lane = 0;
  std::uint64_t pending = 0;
  std::uint64_t parked = 0;
  std::string holder{};  ///< of its lock; empty if it is free
};

/// Sums over all lanes, and the first lanes.
struct outbox_numbers : outbox_stats {
  std::vector<lane_sample> lanes{};
};

struct outbox_sample {
  std::string name{};
  answered<outbox_numbers> stats{};
  double published_rate = 0;
  double acked_rate = 0;
  /// Deliveries fail, and none has succeeded since.
  bool failing = false;
};

struct instance_sample {
  std::string id{};
  std::string kind{};
  std::chrono::microseconds age{};
  bool silent = false;
  bool healthy = true;
  std::string problem{};
};

struct snapshot {
  timestamp moment{};
  std::vector<point_sample> points{};
  std::vector<store_sample> stores{};
  answered<std::vector<named_counter>> counters{};
  std::vector<sequence_sample> sequences{};
  std::vector<outbox_sample> outboxes{};
  std::vector<instance_sample> instances{};
};

}  // namespace HOLDFAST_NAMESPACE::detail::serve
