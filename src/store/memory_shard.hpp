#pragma once

#include <holdfast/store/memory.hpp>
#include <holdfast/version.hpp>

#include "store/memory_expiry.hpp"
#include "store/memory_names.hpp"
#include "store/memory_node.hpp"
#include "store/memory_queues.hpp"

#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

namespace HOLDFAST_NAMESPACE {

/// What all shards together may hold, and hold. Exact but for what is being written at this moment.
struct memory_budget {
  std::size_t max_entries = 0;
  std::size_t max_bytes = 0;
  std::atomic<std::size_t> entries{0};
  std::atomic<std::size_t> bytes{0};

  [[nodiscard]] bool exceeded() const noexcept {
    return entries.load(std::memory_order_relaxed) > max_entries || bytes.load(std::memory_order_relaxed) > max_bytes;
  }
};

/// An entry and the number that its keeper noted beside it.
struct noted_entry {
  entry value;
  std::int64_t note = 0;
};

/// How an entry is to be written.
struct memory_write {
  enum class rule : std::uint8_t {
    newer_wins,  ///< as store::put says
    always       ///< whatever is there
  };
  rule when = rule::newer_wins;
  timestamp now{};      ///< what expired before this leaves first when room is needed
  timestamp horizon{};  ///< stamps beyond this are not believed
  std::int64_t note = 0;
};

/// A part of the memory, with a lock. Thread-safety: every function takes the lock. On a line of its own, so that neighbours do not disturb
/// each other.
class alignas(64) memory_shard {
 public:
  memory_shard() = default;
  memory_shard(const memory_shard&) = delete;
  memory_shard& operator=(const memory_shard&) = delete;
  ~memory_shard();

  void put(const entry& e, const memory_identity& who, const memory_write& how, memory_budget& budget);
  [[nodiscard]] std::optional<entry> find(const memory_identity& who);
  [[nodiscard]] std::optional<noted_entry> find_noted(const memory_identity& who);
  /// Its version, without counting a request.
  [[nodiscard]] std::optional<timestamp> version(const memory_identity& who);
  /// Changes what is noted. False when it is not there.
  bool note(const memory_identity& who, std::int64_t note);
  /// Removes an entry, if it is that version; any, if none is given.
  bool erase(const memory_identity& who, std::optional<timestamp> as_of, memory_budget& budget);
  std::size_t expire(timestamp before, std::size_t limit, memory_budget& budget);
  /// Entries of a name with keys after `after`, in their order; `more` says whether others follow.
  [[nodiscard]] std::vector<entry> page(const memory_identity& of, std::size_t limit, std::string_view after, bool& more);
  [[nodiscard]] std::size_t count(const memory_identity& of);
  /// Makes one of its entries leave. False when it has none.
  bool evict(timestamp now, memory_budget& budget);
  void add_to(memory_store::numbers& sum);

 private:
  using link = std::unique_ptr<memory_node>;

  /// The link that holds the node; one that holds nothing when it is not there.
  [[nodiscard]] link& look(const memory_identity& who) noexcept;
  void grow();
  void insert(const entry& e, const memory_identity& who, const memory_write& how, memory_budget& budget, memory_leavers& leavers);
  void replace(memory_node& node, const entry& e, const memory_write& how, memory_budget& budget, memory_leavers& leavers);
  /// Unlinks a node from everything.
  [[nodiscard]] link take_out(memory_node& node, memory_budget& budget) noexcept;
  /// False when nobody but `keep` is left.
  bool evict_one(timestamp now, const memory_node* keep, memory_budget& budget, memory_leavers& leavers);

  // Written by every find, and therefore side by side: one line goes from one processor to the other, not two.
  std::mutex mutex_{};
  std::uint64_t hits_ = 0;
  std::uint64_t misses_ = 0;

  std::vector<link> table_ = std::vector<link>(16);  // by identity; as many as entries, at least, a power of two
  std::size_t size_ = 0;
  memory_queues queues_{};
  memory_expiry expiry_{};
  memory_name_index names_{};
  std::uint64_t evicted_ = 0;
  std::uint64_t expired_ = 0;
};

}  // namespace HOLDFAST_NAMESPACE
