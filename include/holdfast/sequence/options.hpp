#pragma once

/// \file
/// How a sequence behaves.

#include <holdfast/sequence/fence.hpp>
#include <holdfast/version.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <variant>

namespace HOLDFAST_NAMESPACE {

/// Blocks of one size, each asked for when the one before is used up, and not earlier: the behaviour of the seed.
struct fixed_blocks {
  std::int64_t size = 20;  ///< ids in a block; 1 to 2^31
};

/// Blocks that follow the rate at which ids are used, each asked for before the one before is used up: recommended for servers.
struct adaptive_blocks {
  std::int64_t smallest = 20;                                  ///< what a block shrinks to when few ids are wanted
  std::int64_t largest = std::int64_t{1} << 20U;               ///< what it grows to; a process that dies loses at most two of these
  std::chrono::milliseconds target = std::chrono::seconds(1);  ///< how long one block should last
};

using block_policy = std::variant<fixed_blocks, adaptive_blocks>;

/// What is known when few ids are left before the end of a sequence.
struct low_water_report {
  std::string name{};          ///< of the sequence
  std::uint64_t left = 0;      ///< ids that were not granted to anybody yet
  double left_fraction = 0.0;  ///< the same, as a part of all
};

/// Where the counters are and what is demanded of their store. All sequences of one database with the same prefix share one table and one refiller (with
/// super_blocks, one for each block store they come from: open that once, and pass the same one); while one is open, others that ask for another fence, failover_skip or allow_unsafe are refused (errc::invalid_argument).
struct sequence_store_options {
  std::string prefix{};        ///< of the table {prefix}SEQUENCES: letters, digits, `_`, and qualifiers with dots
  bool create_schema = false;  ///< make the table if it is not there
  bool allow_unsafe = false;   ///< go on, with a warning, where the store's settings could make it forget a block: ids can then come twice
  /// For databases whose standby may lack the last commits: when the server's incarnation (PostgreSQL's timeline, MySQL's server_uuid,
  /// MariaDB's server_uid) is not the one that the counter was last used with, this many ordinals are left out. It must be more than all processes together
  /// can have been granted in the time that a standby lags. 0: no failover is expected, or the standby is synchronous.
  std::int64_t failover_skip = 0;
  sequence_fence fence{};  ///< on Redis, where it must be chosen; see sequence/fence.hpp
};

struct sequence_options {
  block_policy blocks = fixed_blocks{};  ///< how many ids are leased at once, and when

  std::int64_t start = 1;      ///< the first id. Start, increment and limits must be the same wherever the sequence is used
  std::int64_t increment = 1;  ///< from one id to the next; negative: downwards; not 0
  std::int64_t min = std::numeric_limits<std::int64_t>::min();  ///< no id is lower; where a descending sequence ends
  std::int64_t max = std::numeric_limits<std::int64_t>::max();  ///< no id is higher; where an ascending sequence ends
  bool cycle = false;                                           ///< after the end begin again at `start`: ids then come again, by design

  std::chrono::milliseconds wait = std::chrono::seconds(10);  ///< how long next() waits for a block when the store is slow or gone
  bool give_back = false;  ///< give the unused rest back on close, if nobody was granted a block since; `peek` then goes backwards
  double low_water = 0.1;  ///< the part of all ids that is left when `on_low_water` is called
  /// Called once, from the thread that refills, when no more than `low_water` of all ids are left. It should be quick. What it throws is dropped.
  std::function<void(const low_water_report&)> on_low_water{};

  sequence_store_options store{};  ///< of the database's own block store
};

}  // namespace HOLDFAST_NAMESPACE
