#include "store/memory/indexes.hpp"

#include <algorithm>
#include <iterator>

namespace HOLDFAST_NAMESPACE::detail::store {

namespace {

bool key_less(const memory_node* a, const memory_node* b) { return a->key < b->key; }

}  // namespace

expiry_bucket& expiry_index::bucket_of(timestamp expire_on) {
  const auto number = number_of(expire_on);
  // Most entries have the same lifetime, so their bucket is the last one.
  const auto hint = !buckets_.empty() && buckets_.rbegin()->first < number
                        ? buckets_.end()
                        : buckets_.lower_bound(number);
  return buckets_.try_emplace(hint, number, expiry_bucket{.number = number})->second;
}

void expiry_index::add(memory_node& node, expiry_bucket& bucket) noexcept {
  node.bucket = &bucket;
  node.previous_in_bucket = nullptr;
  node.next_in_bucket = bucket.first;
  if (bucket.first != nullptr) bucket.first->previous_in_bucket = &node;
  bucket.first = &node;
}

void expiry_index::move(memory_node& node, expiry_bucket& bucket) noexcept {
  if (node.bucket == &bucket) return;
  remove(node);
  add(node, bucket);
}

void expiry_index::remove(memory_node& node) noexcept {
  expiry_bucket& bucket = *node.bucket;
  memory_node* const previous = node.previous_in_bucket;
  memory_node* const next = node.next_in_bucket;
  (previous != nullptr ? previous->next_in_bucket : bucket.first) = next;
  if (next != nullptr) next->previous_in_bucket = previous;
  node.bucket = nullptr;
  if (bucket.first == nullptr) buckets_.erase(bucket.number);
}

void name_group::add(memory_node& node) {
  nodes_.push_back(&node);
  node.group = this;
  node.position = nodes_.size() - 1;
  ++size_;
}

void name_group::remove(memory_node& node) noexcept {
  nodes_[node.position] = nullptr;
  --size_;
  // Gaps are closed when half of the positions are gaps, so the amortized cost is constant.
  constexpr std::size_t tolerated = 16;
  if (nodes_.size() > 2 * size_ + tolerated) close_gaps();
}

void name_group::close_gaps() noexcept {
  std::size_t kept = 0;
  std::size_t sorted_kept = 0;
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    if (i == sorted_prefix_) sorted_kept = kept;
    memory_node* node = nodes_[i];
    if (node == nullptr) continue;
    node->position = kept;
    nodes_[kept++] = node;
  }
  sorted_prefix_ = sorted_prefix_ == nodes_.size() ? kept : sorted_kept;
  nodes_.resize(kept);
}

std::span<memory_node* const> name_group::sorted() {
  if (size_ != nodes_.size()) close_gaps();
  if (sorted_prefix_ != nodes_.size()) {
    const auto middle = nodes_.begin() + static_cast<std::ptrdiff_t>(sorted_prefix_);
    std::vector<memory_node*> appended(middle, nodes_.end());
    std::sort(appended.begin(), appended.end(), key_less);
    std::vector<memory_node*> merged;
    merged.reserve(nodes_.size());
    std::merge(nodes_.begin(), middle, appended.begin(), appended.end(), std::back_inserter(merged),
               key_less);
    nodes_.swap(merged);
    for (std::size_t i = 0; i < nodes_.size(); ++i) nodes_[i]->position = i;
    sorted_prefix_ = nodes_.size();
  }
  return nodes_;
}

name_group* name_index::find(const memory_identity& id) {
  const auto [first, last] = groups_.equal_range(id.location_hash);
  for (auto it = first; it != last; ++it) {
    if (it->second->name() == id.location.name && it->second->realm() == id.location.realm)
      return it->second.get();
  }
  return nullptr;
}

void name_index::add(memory_node& node, const memory_identity& id) {
  if (name_group* group = find(id)) return group->add(node);
  auto group = std::make_unique<name_group>(id);
  group->add(node);
  groups_.emplace(id.location_hash, std::move(group));
}

void name_index::collect(std::string_view realm, std::string_view after, std::size_t limit,
                         std::set<std::string>& names) const {
  for (const auto& [hash, group] : groups_) {
    if (group->realm() != realm || group->name() <= after) continue;
    if (names.size() >= limit && group->name() >= *names.rbegin()) continue;
    names.insert(group->name());
    if (names.size() > limit) names.erase(std::prev(names.end()));
  }
}

void name_index::remove(memory_node& node) noexcept {
  name_group* group = node.group;
  group->remove(node);
  if (group->size() != 0) return;
  const auto [first, last] = groups_.equal_range(group->hash());
  groups_.erase(
      std::find_if(first, last, [group](const auto& item) { return item.second.get() == group; }));
}

}  // namespace HOLDFAST_NAMESPACE::detail::store
