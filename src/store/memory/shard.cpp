#include "store/memory/shard.hpp"

#include <algorithm>
#include <utility>

namespace HOLDFAST_NAMESPACE::detail::store {

namespace {

/// As `==`, which is a function call that computes an order.
bool same_text(std::string_view a, std::string_view b) noexcept { return std::ranges::equal(a, b); }

}  // namespace

memory_shard::~memory_shard() {
  removed_nodes removed;
  for (link& head : chains_) {
    while (head) {
      link rest = std::move(head->next_in_chain);
      removed.add(std::move(head));
      head = std::move(rest);
    }
  }
}

memory_shard::link& memory_shard::find_link(const memory_identity& id) noexcept {
  link* current = &chains_[id.hash & (chains_.size() - 1)];
  while (*current) {
    const memory_node& node = **current;
    if (node.hash == id.hash && same_text(node.key, id.key) &&
        same_text(node.group->name(), id.location.name) &&
        same_text(node.group->realm(), id.location.realm))
      break;
    current = &(*current)->next_in_chain;
  }
  return *current;
}

memory_shard::link& memory_shard::request(const memory_identity& id) noexcept {
  link& node = find_link(id);
  ++(node ? hits_ : misses_);
  if (node) node->count_use();
  return node;
}

void memory_shard::grow() {
  if (size_ < chains_.size()) return;
  std::vector<link> larger(2 * chains_.size());
  for (link& head : chains_) {
    while (head) {
      link rest = std::move(head->next_in_chain);
      link& target = larger[head->hash & (larger.size() - 1)];
      head->next_in_chain = std::move(target);
      target = std::move(head);
      head = std::move(rest);
    }
  }
  chains_ = std::move(larger);
}

void memory_shard::put(const entry& e, const memory_identity& id, const memory_write& write,
                       memory_budget& budget) {
  removed_nodes removed;
  const std::scoped_lock lock(mutex_);
  const link& node = find_link(id);
  if (!node) return insert(e, id, write, budget, removed);
  if (write.replace == memory_write::rule::newer_wins && e.as_of < node->as_of &&
      node->as_of <= write.horizon)
    return;
  replace(*node, e, write, budget, removed);
}

void memory_shard::insert(const entry& e, const memory_identity& id, const memory_write& write,
                          memory_budget& budget, removed_nodes& removed) {
  auto node = std::make_unique<memory_node>();
  node->hash = id.hash;
  node->key = id.key;
  node->assign(e, write.note);
  grow();
  expiry_bucket& bucket = expiry_.bucket_of(e.expire_on);
  names_.add(*node, id);
  // Nothing can fail from here on.
  expiry_.add(*node, bucket);
  policy_.add(*node);
  ++size_;
  budget.entries.fetch_add(1, std::memory_order_relaxed);
  budget.bytes.fetch_add(node->cost, std::memory_order_relaxed);
  const memory_node* inserted = node.get();
  link& head = chains_[id.hash & (chains_.size() - 1)];
  node->next_in_chain = std::move(head);
  head = std::move(node);
  while (budget.exceeded() && evict_one(write.now, inserted, budget, removed));
}

void memory_shard::replace(memory_node& node, const entry& e, const memory_write& write,
                           memory_budget& budget, removed_nodes& removed) {
  expiry_bucket& bucket = expiry_.bucket_for(node, e.expire_on);
  const std::size_t previous_cost = node.cost;
  node.assign(e, write.note);
  expiry_.move(node, bucket);
  node.count_use();
  // Usually the cost does not change. Then the shared budget is not touched.
  if (node.cost == previous_cost) return;
  // If the cost shrinks, the unsigned difference wraps around, which adds up correctly.
  budget.bytes.fetch_add(node.cost - previous_cost, std::memory_order_relaxed);
  while (budget.exceeded() && evict_one(write.now, &node, budget, removed));
}

memory_shard::link memory_shard::remove(memory_node& node, memory_budget& budget) noexcept {
  expiry_.remove(node);
  policy_.remove(node);
  names_.remove(node);
  --size_;
  budget.entries.fetch_sub(1, std::memory_order_relaxed);
  budget.bytes.fetch_sub(node.cost, std::memory_order_relaxed);
  link* current = &chains_[node.hash & (chains_.size() - 1)];
  while (current->get() != &node) current = &(*current)->next_in_chain;
  link removed = std::move(*current);
  *current = std::move(removed->next_in_chain);
  return removed;
}

bool memory_shard::evict_one(timestamp now, const memory_node* keep, memory_budget& budget,
                             removed_nodes& removed) {
  if (memory_node* expired = expiry_.find_expired(now); expired != nullptr && expired != keep) {
    removed.add(remove(*expired, budget));
    ++expired_;
    return true;
  }
  memory_node* victim = policy_.choose_victim(keep);
  if (victim == nullptr) return false;
  removed.add(remove(*victim, budget));
  ++evicted_;
  return true;
}

bool memory_shard::evict(timestamp now, memory_budget& budget) {
  removed_nodes removed;
  const std::scoped_lock lock(mutex_);
  return evict_one(now, nullptr, budget, removed);
}

std::optional<entry> memory_shard::find(const memory_identity& id) {
  const std::scoped_lock lock(mutex_);
  const link& node = request(id);
  if (!node) return std::nullopt;
  return node->to_entry();
}

std::optional<noted_entry> memory_shard::find_noted(const memory_identity& id) {
  const std::scoped_lock lock(mutex_);
  const link& node = request(id);
  if (!node) return std::nullopt;
  return noted_entry{.value = node->to_entry(), .note = node->note};
}

std::optional<timestamp> memory_shard::version(const memory_identity& id) {
  const std::scoped_lock lock(mutex_);
  const link& node = find_link(id);
  return node ? std::optional(node->as_of) : std::nullopt;
}

bool memory_shard::set_note(const memory_identity& id, std::int64_t note) {
  const std::scoped_lock lock(mutex_);
  const link& node = find_link(id);
  if (node) node->note = note;
  return static_cast<bool>(node);
}

bool memory_shard::erase(const memory_identity& id, std::optional<timestamp> as_of,
                         memory_budget& budget) {
  removed_nodes removed;
  const std::scoped_lock lock(mutex_);
  const link& node = find_link(id);
  if (!node || (as_of && node->as_of != *as_of)) return false;
  removed.add(remove(*node, budget));
  return true;
}

std::size_t memory_shard::expire(timestamp before, std::size_t limit, memory_budget& budget) {
  removed_nodes removed;
  std::size_t count = 0;
  const std::scoped_lock lock(mutex_);
  expiry_.for_expired(before, [&](memory_node& node) {
    if (count == limit) return false;
    removed.add(remove(node, budget));
    ++count;
    return true;
  });
  expired_ += count;
  return count;
}

std::vector<entry> memory_shard::page(const memory_identity& id, std::size_t limit,
                                      std::string_view after, bool& more) {
  std::vector<entry> entries;
  more = false;
  const std::scoped_lock lock(mutex_);
  name_group* group = names_.find(id);
  if (group == nullptr) return entries;
  const auto nodes = group->sorted();
  auto it = std::upper_bound(
      nodes.begin(), nodes.end(), after,
      [](std::string_view key, const memory_node* node) { return key < node->key; });
  for (; it != nodes.end() && entries.size() < limit; ++it) entries.push_back((*it)->to_entry());
  more = it != nodes.end();
  return entries;
}

std::size_t memory_shard::count(const memory_identity& id) {
  const std::scoped_lock lock(mutex_);
  const name_group* group = names_.find(id);
  return group == nullptr ? 0 : group->size();
}

void memory_shard::collect_names(std::string_view realm, std::string_view after, std::size_t limit,
                                 std::set<std::string>& names) {
  const std::scoped_lock lock(mutex_);
  names_.collect(realm, after, limit, names);
}

void memory_shard::add_to(memory_store::numbers& sum) {
  const std::scoped_lock lock(mutex_);
  sum.hits += hits_;
  sum.misses += misses_;
  sum.evicted += evicted_;
  sum.expired += expired_;
}

}  // namespace HOLDFAST_NAMESPACE::detail::store
