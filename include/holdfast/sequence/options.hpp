#pragma once

/// \file
/// Options of a sequence: ids, limits, blocks, and where the counter is.

#include <holdfast/sequence/fence.hpp>
#include <holdfast/version.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <variant>

namespace HOLDFAST_NAMESPACE {

/// Blocks of one size. The next block is requested when the current one is used up. The default
/// size is 20, as in the published design.
struct fixed_blocks {
  /// Ids in a block: 1 to 2^31.
  std::int64_t size = 20;
};

/// Blocks whose size follows the rate at which ids are used. The next block is requested before the
/// current one is used up. Recommended for servers.
struct adaptive_blocks {
  /// Size of a block when few ids are used.
  std::int64_t smallest = 20;
  /// The size never exceeds this. A process holds, and can lose, at most two blocks.
  std::int64_t largest = std::int64_t{1} << 20U;
  /// How long one block should last.
  std::chrono::milliseconds target = std::chrono::seconds(1);
};

using block_policy = std::variant<fixed_blocks, adaptive_blocks>;

/// Says that a sequence is near its end.
struct low_water_report {
  /// Name of the sequence.
  std::string name{};
  /// Ids that are not granted to any process yet.
  std::uint64_t remaining = 0;
  /// The same as a fraction of all ids of the sequence.
  double remaining_fraction = 0.0;
};

/// Where the counters are, and what their store must guarantee. All sequences of one database with
/// the same prefix share one table and one refiller; with super_blocks, one refiller for each
/// `source`, so open the source once and pass the same object. While a sequence is open, another
/// one of the same prefix with another fence, failover_skip or allow_unsafe is refused
/// (errc::invalid_argument).
struct sequence_store_options {
  /// Prefix of the table {prefix}SEQUENCES: letters, digits, `_`, and qualifiers with dots.
  std::string prefix{};
  /// Create the table if it does not exist.
  bool create_schema = false;
  /// Accept a store whose settings could make it forget a block, with a warning. Ids can then
  /// repeat.
  bool allow_unsafe = false;
  /// For databases whose standby may lack the last commits. When a counter is used on another
  /// server than before (PostgreSQL's system identifier and timeline, MySQL's server_uuid,
  /// MariaDB's server_uid), this many ordinals are skipped. Must be more than all processes
  /// together can be granted while a standby lags. 0 if no failover is expected, or if the standby
  /// is synchronous.
  std::int64_t failover_skip = 0;
  /// Required on Redis; see sequence/fence.hpp.
  sequence_fence fence{};
};

struct sequence_options {
  /// How many ids are leased at once, and when.
  block_policy blocks = fixed_blocks{};

  /// The first id. Start, increment and limits are stored at the first use. A process with others
  /// is refused; see sequence::redefine.
  std::int64_t start = 1;
  /// Difference between two ids; not 0. A negative increment counts down.
  std::int64_t increment = 1;
  /// The lowest id: the end of a descending sequence.
  std::int64_t min = std::numeric_limits<std::int64_t>::min();
  /// The highest id: the end of an ascending sequence.
  std::int64_t max = std::numeric_limits<std::int64_t>::max();
  /// Start again at `start` after the end. Ids then repeat, by design.
  bool cycle = false;

  /// How long next() waits for a block when the store is slow or unavailable.
  std::chrono::milliseconds wait = std::chrono::seconds(10);
  /// Give the unused ids back on close, if no other block was granted since; `peek` then goes back.
  bool give_back = false;
  /// `on_low_water` is called when at most this fraction of all ids remains.
  double low_water = 0.1;
  /// Called once, from the refill thread. It should be quick. What it throws is logged and dropped.
  std::function<void(const low_water_report&)> on_low_water{};

  /// The database's own block store.
  sequence_store_options store{};
};

}  // namespace HOLDFAST_NAMESPACE
