#pragma once

#include <holdfast/store.hpp>
#include <holdfast/version.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace HOLDFAST_NAMESPACE {

class memory_names;
struct memory_expiry_bucket;

/// Who an entry is, ready to be looked for: its hash is made once, outside of any lock.
struct memory_identity {
  place where;
  std::string_view key;
  std::size_t place_hash;
  std::size_t hash;

  memory_identity(place its_place, std::string_view its_key);
};

/// An entry as the memory store keeps it, and its links into everything that must find it. It belongs to one shard, whose lock protects it.
struct memory_node {
  // What it is. Name and realm are those of `names`: kept once for all of their entries.
  std::size_t hash = 0;
  std::string key{};
  std::string payload{};
  std::string payload_class{};
  timestamp as_of{};
  timestamp expire_on{};
  std::int64_t note = 0;  // what whoever keeps it wants to know about it
  std::size_t cost = 0;   // bytes, as they were counted when it was written
  bool tombstone = false;

  // Which of the queues it is in, and how often it was asked for since it came there (S3-FIFO).
  bool in_main = false;
  std::uint8_t used = 0;
  memory_node* older = nullptr;
  memory_node* newer = nullptr;

  // By identity; also the chain of those that are about to be freed.
  std::unique_ptr<memory_node> chained{};

  // By expiry.
  memory_expiry_bucket* bucket = nullptr;
  memory_node* before = nullptr;
  memory_node* behind = nullptr;

  // By name.
  memory_names* names = nullptr;
  std::size_t position = 0;

  [[nodiscard]] entry copy() const;
  /// Takes over what the entry says. Leaves everything as it was when memory runs out.
  void take(const entry& from, std::int64_t its_note);
  /// Counts one more request.
  void use() noexcept {
    constexpr std::uint8_t most = 3;
    if (used < most) ++used;
  }
};

/// What keeping an entry costs, in bytes: its texts, the node, and its share of the indexes and the allocator. Measured: the process grows by
/// 0.8 (empty payloads) to 1.0 of it, and by 1.1 where every entry has a name of its own.
[[nodiscard]] std::size_t memory_cost(const entry& e) noexcept;

/// Nodes on their way out: freed when this is, which is after the lock was let go.
class memory_leavers {
 public:
  memory_leavers() = default;
  memory_leavers(const memory_leavers&) = delete;
  memory_leavers& operator=(const memory_leavers&) = delete;
  ~memory_leavers() {
    // One by one: a chain that frees itself is a recursion as deep as it is long.
    while (first_) first_ = std::move(first_->chained);
  }
  void add(std::unique_ptr<memory_node> node) noexcept {
    node->chained = std::move(first_);
    first_ = std::move(node);
  }

 private:
  std::unique_ptr<memory_node> first_{};
};

}  // namespace HOLDFAST_NAMESPACE
