#pragma once

/// \file
/// An entry in memory, with the links of all structures of its shard:
///
///     hash table   find an entry by (realm, name, key)    memory_shard
///     s3_fifo      choose the entry to evict              s3_fifo
///     expiry       find expired entries                   expiry_index
///     names        list the entries of a name by key      name_index

#include <holdfast/store.hpp>
#include <holdfast/version.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace HOLDFAST_NAMESPACE::detail::store {

class name_group;
struct expiry_bucket;

/// The identity of an entry with its hashes, which are computed outside of any lock.
struct memory_identity {
  place location;
  std::string_view key;
  std::size_t location_hash;
  std::size_t hash;

  memory_identity(place entry_location, std::string_view entry_key);
};

/// Belongs to one shard, whose lock protects it.
struct memory_node {
  // The entry. Name and realm are in `group`, once for all entries of the name.
  std::size_t hash = 0;
  std::string key{};
  std::string payload{};
  std::string payload_class{};
  timestamp as_of{};
  timestamp expire_on{};
  std::int64_t note = 0;  // a number that the user of the table stores with the entry
  std::size_t cost = 0;   // memory_cost at the last write
  bool tombstone = false;

  // s3_fifo
  bool in_main = false;
  std::uint8_t uses = 0;  // requests since it entered its queue, at most 3
  memory_node* older = nullptr;
  memory_node* newer = nullptr;

  // Hash table; also the list of removed nodes
  std::unique_ptr<memory_node> next_in_chain{};

  // expiry_index
  expiry_bucket* bucket = nullptr;
  memory_node* previous_in_bucket = nullptr;
  memory_node* next_in_bucket = nullptr;

  // name_index
  name_group* group = nullptr;
  std::size_t position = 0;

  [[nodiscard]] entry to_entry() const;
  /// Replaces the content, but not the identity. Changes nothing if it throws.
  void assign(const entry& e, std::int64_t new_note);
  void count_use() noexcept {
    constexpr std::uint8_t max_uses = 3;
    if (uses < max_uses) ++uses;
  }
};

/// The memory of an entry in bytes: its texts, the node, and its share of the indexes and the
/// allocator. Measured: the process grows by 0.8 (empty payloads) to 1.0 times this cost, and
/// by 1.1 times if every entry has its own name.
[[nodiscard]] std::size_t memory_cost(const entry& e) noexcept;

/// Removed nodes. Its destructor frees them; declare it before the lock, so that this happens after
/// the lock was released.
class removed_nodes {
 public:
  removed_nodes() = default;
  removed_nodes(const removed_nodes&) = delete;
  removed_nodes& operator=(const removed_nodes&) = delete;
  ~removed_nodes() {
    // One at a time: a chain that destroys itself would recurse as deep as it is long.
    while (first_) first_ = std::move(first_->next_in_chain);
  }
  void add(std::unique_ptr<memory_node> node) noexcept {
    node->next_in_chain = std::move(first_);
    first_ = std::move(node);
  }

 private:
  std::unique_ptr<memory_node> first_{};
};

}  // namespace HOLDFAST_NAMESPACE::detail::store
