#pragma once

#include <holdfast/store/memory.hpp>
#include <holdfast/version.hpp>

#include "store/memory/indexes.hpp"
#include "store/memory/node.hpp"
#include "store/memory/s3_fifo.hpp"

#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::store {

/// The limits and the usage of all shards together. Exact except for writes in progress.
struct memory_budget {
  std::size_t max_entries = 0;
  std::size_t max_bytes = 0;
  std::atomic<std::size_t> entries{0};
  std::atomic<std::size_t> bytes{0};

  [[nodiscard]] bool exceeded() const noexcept {
    return entries.load(std::memory_order_relaxed) > max_entries ||
           bytes.load(std::memory_order_relaxed) > max_bytes;
  }
};

/// An entry and the number stored with it.
struct noted_entry {
  entry value;
  std::int64_t note = 0;
};

struct memory_write {
  enum class rule : std::uint8_t {
    newer_wins,  ///< see store::put
    always       ///< replaces any version
  };
  rule replace = rule::newer_wins;
  timestamp now{};      ///< entries that expired before this are evicted first
  timestamp horizon{};  ///< stored versions beyond this can be replaced
  std::int64_t note = 0;
};

/// A part of the memory with its own lock. Thread-safety: every function takes the lock. Aligned to
/// a cache line, so that neighbours do not share one.
class alignas(64) memory_shard {
 public:
  memory_shard() = default;
  memory_shard(const memory_shard&) = delete;
  memory_shard& operator=(const memory_shard&) = delete;
  ~memory_shard();

  void put(const entry& e, const memory_identity& id, const memory_write& write,
           memory_budget& budget);
  [[nodiscard]] std::optional<entry> find(const memory_identity& id);
  [[nodiscard]] std::optional<noted_entry> find_noted(const memory_identity& id);
  /// Returns the version of an entry. Does not count as a request.
  [[nodiscard]] std::optional<timestamp> version(const memory_identity& id);
  /// Returns false if the entry does not exist.
  bool set_note(const memory_identity& id, std::int64_t note);
  /// Removes an entry if it has this version; without a version, any.
  bool erase(const memory_identity& id, std::optional<timestamp> as_of, memory_budget& budget);
  std::size_t expire(timestamp before, std::size_t limit, memory_budget& budget);
  /// Returns entries of a name with keys after `after`, sorted. `more`: whether further ones
  /// follow.
  [[nodiscard]] std::vector<entry> page(const memory_identity& id, std::size_t limit,
                                        std::string_view after, bool& more);
  [[nodiscard]] std::size_t count(const memory_identity& id);
  /// As name_index::collect.
  void collect_names(std::string_view realm, std::string_view after, std::size_t limit,
                     std::set<std::string>& names);
  /// Evicts an entry. Returns false if there is none.
  bool evict(timestamp now, memory_budget& budget);
  void add_to(memory_store::numbers& sum);

 private:
  using link = std::unique_ptr<memory_node>;

  /// Returns the link to the node, or the empty link at the end of its chain.
  [[nodiscard]] link& find_link(const memory_identity& id) noexcept;
  /// As find_link; counts a hit or a miss.
  [[nodiscard]] link& request(const memory_identity& id) noexcept;
  void grow();
  void insert(const entry& e, const memory_identity& id, const memory_write& write,
              memory_budget& budget, removed_nodes& removed);
  void replace(memory_node& node, const entry& e, const memory_write& write, memory_budget& budget,
               removed_nodes& removed);
  /// Removes a node from all structures.
  [[nodiscard]] link remove(memory_node& node, memory_budget& budget) noexcept;
  /// Returns false if there is no node but `keep`.
  bool evict_one(timestamp now, const memory_node* keep, memory_budget& budget,
                 removed_nodes& removed);

  // Every find writes to these, so they share a cache line.
  std::mutex mutex_{};
  std::uint64_t hits_ = 0;
  std::uint64_t misses_ = 0;

  // The hash table: chains of nodes. Its size is a power of two, at least the number of entries.
  std::vector<link> chains_ = std::vector<link>(16);
  std::size_t size_ = 0;
  s3_fifo policy_{};
  expiry_index expiry_{};
  name_index names_{};
  std::uint64_t evicted_ = 0;
  std::uint64_t expired_ = 0;
};

}  // namespace HOLDFAST_NAMESPACE::detail::store
