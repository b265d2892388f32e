#include "store/memory_names.hpp"

#include <algorithm>
#include <iterator>

namespace HOLDFAST_NAMESPACE {

namespace {

bool by_key(const memory_node* a, const memory_node* b) { return a->key < b->key; }

}  // namespace

void memory_names::add(memory_node& node) {
  members_.push_back(&node);
  node.names = this;
  node.position = members_.size() - 1;
  ++live_;
}

void memory_names::remove(memory_node& node) noexcept {
  members_[node.position] = nullptr;
  --live_;
  // Gaps are closed when half of it is gaps: each removal pays for one step of that.
  constexpr std::size_t few = 16;
  if (members_.size() > 2 * live_ + few) close_gaps();
}

void memory_names::close_gaps() noexcept {
  std::size_t to = 0;
  std::size_t sorted = 0;
  for (std::size_t from = 0; from < members_.size(); ++from) {
    if (from == sorted_) sorted = to;
    memory_node* each = members_[from];
    if (each == nullptr) continue;
    each->position = to;
    members_[to++] = each;
  }
  sorted_ = sorted_ == members_.size() ? to : sorted;
  members_.resize(to);
}

std::span<memory_node* const> memory_names::ordered() {
  if (live_ != members_.size()) close_gaps();
  if (sorted_ != members_.size()) {
    const auto middle = members_.begin() + static_cast<std::ptrdiff_t>(sorted_);
    std::vector<memory_node*> fresh(middle, members_.end());
    std::sort(fresh.begin(), fresh.end(), by_key);
    std::vector<memory_node*> merged;
    merged.reserve(members_.size());
    std::merge(members_.begin(), middle, fresh.begin(), fresh.end(), std::back_inserter(merged), by_key);
    members_.swap(merged);
    for (std::size_t at = 0; at < members_.size(); ++at) members_[at]->position = at;
    sorted_ = members_.size();
  }
  return members_;
}

memory_names* memory_name_index::find(const memory_identity& of) {
  const auto [first, last] = groups_.equal_range(of.place_hash);
  for (auto at = first; at != last; ++at) {
    if (at->second->name() == of.where.name && at->second->realm() == of.where.realm) return at->second.get();
  }
  return nullptr;
}

void memory_name_index::add(memory_node& node, const memory_identity& of) {
  if (memory_names* known = find(of)) return known->add(node);
  auto made = std::make_unique<group>(of.where, of.place_hash);
  made->add(node);
  groups_.emplace(of.place_hash, std::move(made));
}

void memory_name_index::remove(memory_node& node) noexcept {
  memory_names* names = node.names;
  names->remove(node);
  if (names->size() != 0) return;
  const auto [first, last] = groups_.equal_range(static_cast<group*>(names)->hash);
  groups_.erase(std::find_if(first, last, [names](const auto& each) { return each.second.get() == names; }));
}

}  // namespace HOLDFAST_NAMESPACE
