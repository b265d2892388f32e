#pragma once

/// \file
/// Where the counters of sequences are kept. A block store grants blocks and remembers, for ever, the last number it granted. Bring your own by
/// deriving from `block_store` and running the contract suite (tests/contract/sequence_contract.hpp) on it.
///
/// A store counts in ordinals: 1, 2, 3, ... up to 2^63 - 1, whatever the ids look like. The sequence makes the ids out of them
/// (start + (ordinal - 1) * increment), so that steps, limits and negative numbers are the same on every store.

#include <holdfast/error.hpp>
#include <holdfast/sequence/block.hpp>
#include <holdfast/version.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace HOLDFAST_NAMESPACE {

namespace join {
class transaction;
}

/// The largest ordinal.
inline constexpr std::int64_t last_ordinal = std::numeric_limits<std::int64_t>::max();
/// The largest block.
inline constexpr std::int64_t largest_block = std::int64_t{1} << 31U;

/// Asks for a block. The name refers to the caller's memory, which must outlive the call.
struct block_request {
  std::string_view name{};            ///< as `check_sequence_name` allows it; bytes, compared as bytes
  std::int64_t count = 1;             ///< how many; 1 to `largest_block`
  std::int64_t limit = last_ordinal;  ///< no ordinal above this is granted: the last block is as short as it must be
  bool cycle = false;                 ///< beyond the limit begin again at 1, with the next epoch
};

/// What came of a request.
struct block_grant {
  sequence_block block{};  ///< of ordinals, step 1; nothing in it: the sequence is exhausted
  std::int64_t epoch = 0;  ///< of the counter: grows when it is reset or begins again; 0 where the store does not say it with a block
  /// What went wrong with this request alone, where a store serves the others all the same: they may lie on different machines.
  std::optional<error> problem{};
};

/// A counter as the store has it.
struct counter_state {
  std::int64_t last = 0;   ///< the last ordinal granted to anybody; 0 when none was
  std::int64_t epoch = 1;  ///< grows when the counter is reset or begins again
  bool operator==(const counter_state&) const = default;
};

/// A counter with its name.
struct named_counter {
  std::string name{};
  counter_state state{};
  bool operator==(const named_counter&) const = default;
};

/// Grants blocks. No ordinal is granted twice in one epoch: not to two threads, processes or machines, not after a crash of either side.
///
/// Thread-safety: every function may be called from any thread. Calls take as long as the store's own timeouts let them.
/// Exception safety: a failed operation throws holdfast::error. After one that is in doubt the blocks may have been granted; the caller
/// abandons them and asks again, which is always safe.
class HOLDFAST_API block_store {
 public:
  block_store() = default;
  block_store(const block_store&) = delete;
  block_store& operator=(const block_store&) = delete;
  virtual ~block_store();

  /// Grants a block for each request, in the order of the requests, all of them in one round trip where the store can. A counter that is not there is made. No name
  /// comes twice in one call. When this returns, the grants are durable: only then may a number be used.
  [[nodiscard]] virtual std::vector<block_grant> allocate(std::span<const block_request> requests) = 0;

  /// Grants a block inside a transaction of the caller's: it is granted when they commit, and was never granted when they roll back. Until then nobody else
  /// is granted anything of this counter. Throws errc::invalid_argument where the store cannot; only SQL can.
  [[nodiscard]] virtual block_grant allocate_in(join::transaction& joined, const block_request& request);

  /// The last ordinal granted to anybody, and the epoch. Nothing: there is no such counter.
  [[nodiscard]] virtual std::optional<counter_state> peek(std::string_view name) = 0;

  /// Raises the counter to `ordinal` if it is lower, makes it if it is not there, and returns how it is then. Never lowers it.
  virtual counter_state ensure_at_least(std::string_view name, std::int64_t ordinal) = 0;

  /// Sets the counter to `ordinal`, and adds 1 to its epoch, if it is exactly as `expected`. False: it is not, and nothing was changed.
  /// Numbers granted before can be granted again.
  [[nodiscard]] virtual bool reset(std::string_view name, std::int64_t ordinal, counter_state expected) = 0;

  /// Gives back the ordinals after `last_used`, if the counter is exactly as `granted`: nobody was granted anything since.
  /// False: somebody was; nothing was changed.
  [[nodiscard]] virtual bool give_back(std::string_view name, std::int64_t last_used, counter_state granted) = 0;

  /// Some counters, in the byte order of their names, those after `after`, at most `limit`.
  [[nodiscard]] virtual std::vector<named_counter> list(std::size_t limit, std::string_view after = {}) = 0;

  /// Looks at the settings of the store: each line is a reason why it could forget a block that it granted, and what to do about it. None: it
  /// keeps what it grants. A sequence that is opened on a store with such reasons is refused, unless `allow_unsafe` says otherwise.
  [[nodiscard]] virtual std::vector<std::string> unsafe_settings() = 0;

  /// The same store for a child process, with connections of its own; called in the child after fork. Locks that other threads of the parent held stay
  /// locked for ever in the child, so this may use nothing but what never changes after construction. Throws errc::invalid_argument where
  /// a child cannot share the counters of its parent.
  [[nodiscard]] virtual std::shared_ptr<block_store> for_child() const = 0;
};

/// Names are 1 to 128 of `A-Z a-z 0-9 _ . : / -`. Throws errc::invalid_argument.
HOLDFAST_API void check_sequence_name(std::string_view name);

/// Throws errc::invalid_argument for a count or a limit that cannot be granted, and for a bad name. For implementations of `allocate`.
HOLDFAST_API void check_block_request(const block_request& request);

/// Counters in this process, gone with it; for tests, and for `memory:`. A child process cannot use those of its parent.
[[nodiscard]] HOLDFAST_API std::shared_ptr<block_store> make_memory_block_store();

}  // namespace HOLDFAST_NAMESPACE
