#pragma once

/// \file
/// A block store keeps the counters of sequences. It grants blocks, and never forgets the last
/// number that it granted. To write your own, derive from `block_store` and run the contract suite
/// (tests/contract/sequence_contract.hpp) on it.
///
/// A store counts in ordinals: 1, 2, 3, ... up to 2^63 - 1. The sequence makes ids of them
/// (start + (ordinal - 1) * increment), so steps, limits and negative ids are the same on every
/// store.

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
/// The size of the largest block.
inline constexpr std::int64_t largest_block = std::int64_t{1} << 31U;

/// Asks for a block.
struct block_request {
  /// As `check_sequence_name` allows it, compared byte by byte. Refers to memory of the caller that
  /// must outlive the call.
  std::string_view name{};
  /// Ordinals in the block: 1 to `largest_block`.
  std::int64_t count = 1;
  /// No ordinal above this is granted; the last block before the limit may be shorter.
  std::int64_t limit = last_ordinal;
  /// Start again at 1 after the limit, in the next epoch.
  bool cycle = false;
  /// What all users of the counter must agree on: one line of `field=value` (see
  /// `block_store::definition`). Refers to memory of the caller. Empty: not checked.
  std::string_view definition{};
  /// The caller takes `block_grant::busy` for an answer. Set if other requests of the call must not
  /// wait for this one.
  bool accepts_busy = false;
};

/// The answer to a block_request.
struct block_grant {
  /// Ordinals, with step 1. Empty when the sequence is exhausted.
  sequence_block block{};
  /// Of the counter. Grows when the counter is reset or starts again; 0 if the store does not know
  /// it when it grants.
  std::int64_t epoch = 0;
  /// Why this request failed while others of the same call were granted: counters may be on
  /// different machines.
  std::optional<error> problem{};
  /// Nothing was granted, because this request could have kept the others of the same call waiting:
  /// another transaction has locked the counter, for example. Request it alone. Only for requests
  /// with `accepts_busy`, and not if a call has only one request.
  bool busy = false;
};

/// A counter as the store has it.
struct counter_state {
  /// The last ordinal granted to any process; 0 before the first grant.
  std::int64_t last = 0;
  /// Grows when the counter is reset or starts again.
  std::int64_t epoch = 1;
  bool operator==(const counter_state&) const = default;
};

/// A counter with its name.
struct named_counter {
  std::string name{};
  counter_state state{};
  bool operator==(const named_counter&) const = default;
};

/// Grants blocks. No ordinal is granted twice in one epoch: not to two threads, processes or
/// machines, not after a crash of the client or of the server.
///
/// Thread-safety: every function may be called from any thread. Calls take as long as the store's
/// own timeouts allow. After fork the child must not use it: open the database again.
///
/// Exception safety: a failed operation throws holdfast::error. If the error is in doubt, the
/// blocks may have been granted; the caller abandons them and asks again, which is always safe.
class HOLDFAST_API block_store {
 public:
  block_store() = default;
  block_store(const block_store&) = delete;
  block_store& operator=(const block_store&) = delete;
  virtual ~block_store();

  /// Grants a block for each request, in the order of the requests, in one round trip where the
  /// store can. Creates missing counters. A name must not occur twice in one call. The grants are
  /// durable when this returns; only then may their ordinals be used.
  [[nodiscard]] virtual std::vector<block_grant> allocate(
      std::span<const block_request> requests) = 0;

  /// Requests whose names have different failure domains are never sent in one call, and a call of
  /// a domain does not wait for calls of others. For stores that keep counters on several machines,
  /// or that cannot skip a locked counter: then the name itself is the domain. The default is the
  /// empty text, one domain for all names. Must not wait, and must not throw.
  [[nodiscard]] virtual std::string failure_domain(std::string_view name) const noexcept;

  /// Grants a block inside a transaction of the caller. The grant takes effect when that
  /// transaction commits; a rollback undoes it. Until then other requests for this counter wait.
  /// Throws errc::invalid_argument unless the store is an SQL database.
  [[nodiscard]] virtual block_grant allocate_in(join::transaction& transaction,
                                                const block_request& request);

  /// The last ordinal granted, and the epoch. Nothing if the counter does not exist.
  [[nodiscard]] virtual std::optional<counter_state> peek(std::string_view name) = 0;

  /// Raises the counter to `ordinal` if it is lower, and creates it if it does not exist. Never
  /// lowers it. Returns the new state.
  virtual counter_state ensure_at_least(std::string_view name, std::int64_t ordinal) = 0;

  /// Sets the counter to `ordinal` and adds 1 to its epoch, if its state is `expected`. Returns
  /// false, and changes nothing, if it is not. Ordinals that were granted before can be granted
  /// again.
  [[nodiscard]] virtual bool reset(std::string_view name, std::int64_t ordinal,
                                   counter_state expected) = 0;

  /// Gives back the ordinals after `last_used`, if the state of the counter is `granted`: no block
  /// was granted since. Returns false, and changes nothing, if it is not.
  [[nodiscard]] virtual bool give_back(std::string_view name, std::int64_t last_used,
                                       counter_state granted) = 0;

  /// At most `limit` counters whose names come after `after`, in the byte order of their names.
  [[nodiscard]] virtual std::vector<named_counter> list(std::size_t limit,
                                                        std::string_view after = {}) = 0;

  /// The definition of a counter: that of its first request, completed by the store with what all
  /// users of the store must agree on, such as a fence. A request with another one is refused with
  /// errc::invalid_argument, in `problem` or as the exception of a single request, and nothing is
  /// granted. Nothing if the counter has no definition, or if the store keeps none; the default.
  [[nodiscard]] virtual std::optional<std::string> definition(std::string_view name);

  /// The definition with what the store itself adds. The default adds nothing.
  [[nodiscard]] virtual std::string complete_definition(std::string_view definition) const;

  /// Changes the definition of a counter, and sets the counter to `ordinal`, which must not be
  /// lower than its last one. Returns false, and changes nothing, unless its state and its
  /// (complete) definition are the expected ones, or if the server is not the one that granted
  /// last: then use the counter once with the old definition. The default throws
  /// errc::unsupported_type.
  [[nodiscard]] virtual bool redefine(std::string_view name, std::string_view definition,
                                      std::int64_t ordinal, counter_state expected,
                                      std::string_view expected_definition);

  /// Why no block can be granted at all, one line for each reason: a table that is missing, or that
  /// has other columns. For `holdfast seq doctor`. The default returns nothing.
  [[nodiscard]] virtual std::vector<std::string> missing_objects();

  /// Checks the settings of the server. Each line is a reason why it could forget a block that it
  /// granted, and what to do about it. The first operation of a sequence refuses a store with such
  /// reasons, unless `allow_unsafe` is set.
  [[nodiscard]] virtual std::vector<std::string> unsafe_settings() = 0;
};

/// Throws errc::invalid_argument unless the name is 1 to 128 of the characters
/// `A-Z a-z 0-9 _ . : / -`.
HOLDFAST_API void check_sequence_name(std::string_view name);

/// Throws errc::invalid_argument if the name, the count or the limit is invalid. For
/// implementations of `allocate`.
HOLDFAST_API void check_block_request(const block_request& request);

/// Counters in the memory of this process, lost when it ends; for tests and for `memory:`.
[[nodiscard]] HOLDFAST_API std::shared_ptr<block_store> make_memory_block_store();

}  // namespace HOLDFAST_NAMESPACE
