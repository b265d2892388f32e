#pragma once

#include "store/write_behind/held_operations.hpp"
#include "store/write_behind/operation.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::store {

/// The operations in flight. The entries are contiguous, as store::put expects them.
///
/// An operation that failed alone, for a reason that is not known, is a suspect: it stays in the
/// batch until the suspects are tried again, while other operations pass it. Operations of the same
/// key do not pass it; they are blocked. When a batch ends, its suspects and what they block become
/// the beginning of the next one.
///
/// The writer owns the batch. It reads without the lock and changes only digests without the lock;
/// other threads read with the lock. An entry does not change between the preparation of the batch
/// and its end.
class write_batch {
 public:
  using time = std::chrono::steady_clock::time_point;

  struct item {
    operation::kind action = operation::kind::none;
    bool done = false;
    bool was_held = false;        ///< must not be held again
    bool replaces_erase = false;  ///< see operation
    bool has_successor = false;   ///< another operation of the same key follows in this batch
    unsigned level = 0;           ///< number of operations of the same key before it in this batch
    std::uint64_t sequence = 0;
    std::size_t hash = 0;
    std::size_t bytes = 0;
    std::size_t digest = 0;
    time unsaved_since{};
    // Of a suspect:
    unsigned failures = 0;             ///< how often it failed alone for an unknown reason
    time failing_since{};              ///< the first of these failures
    std::uint64_t written_before = 0;  ///< operations written before the first failure
    std::uint64_t last_attempt = 0;    ///< the attempt to write the batch in which it failed last
  };

  [[nodiscard]] bool empty() const noexcept { return items_.empty(); }
  [[nodiscard]] std::size_t size() const noexcept { return items_.size(); }
  [[nodiscard]] const std::vector<item>& items() const noexcept { return items_; }
  [[nodiscard]] item& operator[](std::size_t i) noexcept { return items_[i]; }
  [[nodiscard]] const item& operator[](std::size_t i) const noexcept { return items_[i]; }
  [[nodiscard]] const entry& value(std::size_t i) const noexcept { return entries_[i]; }
  [[nodiscard]] std::span<const entry> values(std::size_t first, std::size_t last) const noexcept {
    return std::span(entries_).subspan(first, last - first);
  }

  [[nodiscard]] std::size_t unfinished() const noexcept { return unfinished_; }
  [[nodiscard]] std::size_t suspects() const noexcept { return suspects_; }
  /// Whether item i can be tried, if it is a new operation or a suspect. Blocked ones cannot.
  [[nodiscard]] bool is_new(std::size_t i) const noexcept;
  [[nodiscard]] bool is_suspect(std::size_t i) const noexcept;
  [[nodiscard]] bool has_new() const noexcept;
  /// Since when the suspect that is oldest has failed. Empty if there is none.
  [[nodiscard]] std::optional<time> failing_since() const noexcept;
  /// Returns the last unfinished operation of the same key.
  [[nodiscard]] std::optional<std::size_t> last_unfinished_of(const operation& op) const noexcept;
  /// Includes finished operations until the end of the batch.
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }
  [[nodiscard]] std::size_t unfinished_before(std::uint64_t sequence) const noexcept;
  /// Whether item i is an unfinished operation of this key.
  [[nodiscard]] bool is_unfinished_of(std::size_t i, std::size_t hash, place location,
                                      std::string_view key) const noexcept {
    return items_[i].hash == hash && !items_[i].done && has_key(entries_[i], location, key);
  }

  void reserve(std::size_t count);
  /// `may_have_predecessor`: the batch may contain an earlier operation of the same key.
  void append(operation&& op, bool was_held, bool may_have_predecessor);
  void compute_digests();
  /// Sorts by level, puts before other operations: this needs few statements and keeps the order of
  /// each key. Removes items without an action.
  void sort_for_writing();
  void finish(std::size_t i) noexcept;
  /// Item i failed alone in this attempt: it is a suspect. `written_before`: see item.
  void add_failure(std::size_t i, time now, std::uint64_t written_before,
                   std::uint64_t attempt) noexcept;

  /// Moves a put to the held operations. Keeps it if there is not enough memory.
  void hold(std::size_t i, held_operations& held, time due);

  /// Ends the batch. Keeps suspects and what they block. free_entries() then frees the entries of
  /// the others and does not need the lock.
  void remove_finished() noexcept;
  void free_entries() noexcept { cleared_entries_.clear(); }

 private:
  [[nodiscard]] bool is_blocked(std::size_t i) const noexcept;

  std::vector<item> items_{};
  std::vector<entry> entries_{};          // entries_[i] belongs to items_[i]
  std::vector<entry> cleared_entries_{};  // the memory is reused by the next batch but one
  std::size_t unfinished_ = 0;
  std::size_t suspects_ = 0;  // of the unfinished ones
  std::size_t bytes_ = 0;
};

}  // namespace HOLDFAST_NAMESPACE::detail::store
