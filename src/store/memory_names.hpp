#pragma once

#include <holdfast/version.hpp>

#include "store/memory_node.hpp"

#include <cstddef>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

namespace HOLDFAST_NAMESPACE {

/// The entries of one name in one realm (and one shard). Writers only append: the order of the keys is made when somebody wants to see it,
/// and kept until somebody writes. Thread-safety: that of its shard.
class memory_names {
 public:
  memory_names(std::string name, std::string realm) : name_(std::move(name)), realm_(std::move(realm)) {}

  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  [[nodiscard]] const std::string& realm() const noexcept { return realm_; }
  [[nodiscard]] std::size_t size() const noexcept { return live_; }

  void add(memory_node& node);
  void remove(memory_node& node) noexcept;
  /// All of them, in the byte order of their keys.
  [[nodiscard]] std::span<memory_node* const> ordered();

 private:
  void close_gaps() noexcept;

  std::string name_;
  std::string realm_;
  std::vector<memory_node*> members_{};  // null where one was removed
  std::size_t sorted_ = 0;               // so many of the first are in order
  std::size_t live_ = 0;
};

/// All names of a shard; one without entries is gone.
class memory_name_index {
 public:
  /// Null when the name has no entries.
  [[nodiscard]] memory_names* find(const memory_identity& of);
  /// Adds the node under its name. Leaves everything as it was when memory runs out.
  void add(memory_node& node, const memory_identity& of);
  void remove(memory_node& node) noexcept;

 private:
  /// The hash is known already; the same hash twice is rare, and then they are told apart by their texts.
  struct known_hash {
    std::size_t operator()(std::size_t hash) const noexcept { return hash; }
  };
  struct group : memory_names {
    group(place where, std::size_t its_hash) : memory_names(std::string(where.name), std::string(where.realm)), hash(its_hash) {}
    std::size_t hash;
  };
  std::unordered_multimap<std::size_t, std::unique_ptr<group>, known_hash> groups_{};
};

}  // namespace HOLDFAST_NAMESPACE
