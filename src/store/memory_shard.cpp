#include "store/memory_shard.hpp"

#include <algorithm>
#include <utility>

namespace HOLDFAST_NAMESPACE {

memory_shard::~memory_shard() {
  memory_leavers leavers;
  for (link& each : table_) {
    while (each) {
      link rest = std::move(each->chained);
      leavers.add(std::move(each));
      each = std::move(rest);
    }
  }
}

memory_shard::link& memory_shard::look(const memory_identity& who) noexcept {
  link* at = &table_[who.hash & (table_.size() - 1)];
  while (*at) {
    const memory_node& node = **at;
    if (node.hash == who.hash && node.key == who.key && node.names->name() == who.where.name && node.names->realm() == who.where.realm)
      break;
    at = &(*at)->chained;
  }
  return *at;
}

void memory_shard::grow() {
  if (size_ < table_.size()) return;
  std::vector<link> larger(2 * table_.size());
  for (link& head : table_) {
    while (head) {
      link rest = std::move(head->chained);
      link& to = larger[head->hash & (larger.size() - 1)];
      head->chained = std::move(to);
      to = std::move(head);
      head = std::move(rest);
    }
  }
  table_ = std::move(larger);
}

void memory_shard::put(const entry& e, const memory_identity& who, const memory_write& how, memory_budget& budget) {
  memory_leavers leavers;
  const std::scoped_lock lock(mutex_);
  const link& found = look(who);
  if (!found) return insert(e, who, how, budget, leavers);
  if (how.when == memory_write::rule::newer_wins && e.as_of < found->as_of && found->as_of <= how.horizon) return;
  replace(*found, e, how, budget, leavers);
}

void memory_shard::insert(const entry& e, const memory_identity& who, const memory_write& how, memory_budget& budget,
                          memory_leavers& leavers) {
  auto node = std::make_unique<memory_node>();
  node->hash = who.hash;
  node->key = who.key;
  node->take(e, how.note);
  grow();
  memory_expiry_bucket& bucket = expiry_.bucket_of(e.expire_on);
  names_.add(*node, who);
  // Nothing fails from here on.
  expiry_.link(*node, bucket);
  queues_.add(*node);
  ++size_;
  budget.entries.fetch_add(1, std::memory_order_relaxed);
  budget.bytes.fetch_add(node->cost, std::memory_order_relaxed);
  const memory_node* kept = node.get();
  link& head = table_[who.hash & (table_.size() - 1)];
  node->chained = std::move(head);
  head = std::move(node);
  while (budget.exceeded() && evict_one(how.now, kept, budget, leavers));
}

void memory_shard::replace(memory_node& node, const entry& e, const memory_write& how, memory_budget& budget, memory_leavers& leavers) {
  memory_expiry_bucket& bucket = expiry_.bucket_of(e.expire_on);
  const std::size_t before = node.cost;
  node.take(e, how.note);
  expiry_.move(node, bucket);
  node.use();
  // Most replacements cost what they replace: then nobody else's memory is touched.
  if (node.cost == before) return;
  budget.bytes.fetch_add(node.cost - before, std::memory_order_relaxed);  // wraps around when it shrinks, and that is right
  while (budget.exceeded() && evict_one(how.now, &node, budget, leavers));
}

memory_shard::link memory_shard::take_out(memory_node& node, memory_budget& budget) noexcept {
  expiry_.remove(node);
  queues_.remove(node);
  names_.remove(node);
  --size_;
  budget.entries.fetch_sub(1, std::memory_order_relaxed);
  budget.bytes.fetch_sub(node.cost, std::memory_order_relaxed);
  link* at = &table_[node.hash & (table_.size() - 1)];
  while (at->get() != &node) at = &(*at)->chained;
  link taken = std::move(*at);
  *at = std::move(taken->chained);
  return taken;
}

bool memory_shard::evict_one(timestamp now, const memory_node* keep, memory_budget& budget, memory_leavers& leavers) {
  if (memory_node* expired = expiry_.surely_expired(now); expired != nullptr && expired != keep) {
    leavers.add(take_out(*expired, budget));
    ++expired_;
    return true;
  }
  memory_node* chosen = queues_.choose(keep);
  if (chosen == nullptr) return false;
  leavers.add(take_out(*chosen, budget));
  ++evicted_;
  return true;
}

bool memory_shard::evict(timestamp now, memory_budget& budget) {
  memory_leavers leavers;
  const std::scoped_lock lock(mutex_);
  return evict_one(now, nullptr, budget, leavers);
}

std::optional<entry> memory_shard::find(const memory_identity& who) {
  const std::scoped_lock lock(mutex_);
  const link& found = look(who);
  ++(found ? hits_ : misses_);
  if (!found) return std::nullopt;
  found->use();
  return found->copy();
}

std::optional<noted_entry> memory_shard::find_noted(const memory_identity& who) {
  const std::scoped_lock lock(mutex_);
  const link& found = look(who);
  ++(found ? hits_ : misses_);
  if (!found) return std::nullopt;
  found->use();
  return noted_entry{.value = found->copy(), .note = found->note};
}

std::optional<timestamp> memory_shard::version(const memory_identity& who) {
  const std::scoped_lock lock(mutex_);
  const link& found = look(who);
  return found ? std::optional(found->as_of) : std::nullopt;
}

bool memory_shard::note(const memory_identity& who, std::int64_t note) {
  const std::scoped_lock lock(mutex_);
  const link& found = look(who);
  if (found) found->note = note;
  return static_cast<bool>(found);
}

bool memory_shard::erase(const memory_identity& who, std::optional<timestamp> as_of, memory_budget& budget) {
  memory_leavers leavers;
  const std::scoped_lock lock(mutex_);
  const link& found = look(who);
  if (!found || (as_of && found->as_of != *as_of)) return false;
  leavers.add(take_out(*found, budget));
  return true;
}

std::size_t memory_shard::expire(timestamp before, std::size_t limit, memory_budget& budget) {
  memory_leavers leavers;
  std::size_t removed = 0;
  const std::scoped_lock lock(mutex_);
  expiry_.for_expired(before, [&](memory_node& node) {
    if (removed == limit) return false;
    leavers.add(take_out(node, budget));
    ++removed;
    return true;
  });
  expired_ += removed;
  return removed;
}

std::vector<entry> memory_shard::page(const memory_identity& of, std::size_t limit, std::string_view after, bool& more) {
  std::vector<entry> made;
  more = false;
  const std::scoped_lock lock(mutex_);
  memory_names* names = names_.find(of);
  if (names == nullptr) return made;
  const auto all = names->ordered();
  auto at = std::upper_bound(all.begin(), all.end(), after, [](std::string_view key, const memory_node* each) { return key < each->key; });
  for (; at != all.end() && made.size() < limit; ++at) made.push_back((*at)->copy());
  more = at != all.end();
  return made;
}

std::size_t memory_shard::count(const memory_identity& of) {
  const std::scoped_lock lock(mutex_);
  const memory_names* names = names_.find(of);
  return names == nullptr ? 0 : names->size();
}

void memory_shard::add_to(memory_store::numbers& sum) {
  const std::scoped_lock lock(mutex_);
  sum.hits += hits_;
  sum.misses += misses_;
  sum.evicted += evicted_;
  sum.expired += expired_;
}

}  // namespace HOLDFAST_NAMESPACE
