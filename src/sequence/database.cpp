#include "sql/database.hpp"

#include <holdfast/database.hpp>
#include <holdfast/sequence.hpp>

#include "sequence/root.hpp"
#include "sequence/sql_block_store.hpp"
#if HOLDFAST_HAS_REDIS
#include "sequence/redis_block_store.hpp"
#endif

#include <algorithm>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace HOLDFAST_NAMESPACE {

namespace {

/// Do both fences keep the same promise in the same way? Where the large blocks come from is not told apart here: one database has many block
/// stores.
bool alike(const sequence_fence& a, const sequence_fence& b) {
  if (a.index() != b.index()) return false;
  if (const auto* super = std::get_if<super_blocks>(&a)) return super->size == std::get<super_blocks>(b).size;
  if (const auto* wait = std::get_if<wait_fence>(&a)) {
    const auto& other = std::get<wait_fence>(b);
    return wait->replicas == other.replicas && wait->on_disk == other.on_disk && wait->longest == other.longest;
  }
  if (const auto* clock = std::get_if<clock_fence>(&a)) {
    const auto& other = std::get<clock_fence>(b);
    return clock->max_skew == other.max_skew && clock->rate == other.rate && clock->origin == other.origin;
  }
  return true;
}

/// Sequences that share a refiller share its promises: one that asks for others must not get them in silence.
void check_alike(const sequence_store_options& first, const sequence_store_options& now) {
  const auto refuse = [](const std::string& what, std::string path) {
    throw error(errc::invalid_argument,
                "another sequence of this database and prefix was opened with another " + what +
                    ", and is still open; say the same for both, or give one of them another prefix",
                {.path = std::move(path)});
  };
  if (!alike(first.fence, now.fence)) refuse("fence", "fence");
  if (first.failover_skip != now.failover_skip) refuse("failover_skip", "failover_skip");
  if (first.allow_unsafe != now.allow_unsafe) refuse("allow_unsafe", "allow_unsafe");
}

/// Where the large blocks come from; null for all that need none.
const block_store* below(const sequence_store_options& options) {
  const auto* super = std::get_if<super_blocks>(&options.fence);
  return super != nullptr ? super->from.get() : nullptr;
}

using roots = std::vector<std::shared_ptr<detail::source_root>>;

roots in_use(std::vector<std::weak_ptr<detail::source_root>>& among) {
  std::erase_if(among, [](const auto& each) { return each.expired(); });
  roots found;
  for (const auto& each : among) {
    if (auto held = each.lock()) found.push_back(std::move(held));
  }
  return found;
}

/// The one whose block store is the one that is asked for; null: there is none. Throws for what cannot be beside one that is in use.
std::shared_ptr<detail::source_root> find_alike(const roots& among, const sequence_store_options& asked) {
  std::shared_ptr<detail::source_root> found;
  for (const auto& each : among) {
    check_alike(each->options(), asked);
    if (below(each->options()) == below(asked)) found = each;
  }
  return found;
}

}  // namespace

std::shared_ptr<block_store> database::block_store(sequence_store_options options) const {
  if (state_->pool) return make_sql_block_store(state_, options);
#if HOLDFAST_HAS_REDIS
  if (state_->redis) {
    return make_redis_block_store({.client = state_->redis,
                                   .connect = state_->connect_redis,
                                   .prefix = std::move(options.prefix),
                                   .fence = std::move(options.fence)});
  }
#endif
  const std::scoped_lock lock(state_->mutex);
  auto& kept = state_->memory_counters[options.prefix];
  if (!kept) kept = make_memory_block_store();
  return kept;
}

sequence database::sequence(std::string_view name, sequence_options options) const {
  check_sequence_name(name);
  detail::check_sequence_options(options);
#if HOLDFAST_HAS_REDIS
  if (state_->redis) check_sequence_fence(options.store.fence);
#endif
  roots others;  // let go after the lock: the last to hold one waits for its refiller, which may want the lock
  std::shared_ptr<detail::source_root> shared;
  {
    const std::scoped_lock lock(state_->mutex);
    others = in_use(state_->sequences[options.store.prefix]);
    shared = find_alike(others, options.store);
  }
  if (!shared) {
    // Not under the lock: it may ask the server. Two at once make two, and one of them stays.
    auto made = std::make_shared<detail::source_root>(block_store(options.store),
                                                      sequence_environment{.clock = state_->options.clock,
                                                                           .log = state_->options.log,
                                                                           .metrics = state_->metrics,
                                                                           .allow_unsafe = options.store.allow_unsafe},
                                                      options.store);
    roots since;
    const std::scoped_lock lock(state_->mutex);
    auto& kept = state_->sequences[options.store.prefix];
    since = in_use(kept);
    shared = find_alike(since, options.store);
    if (!shared) kept.push_back(shared = std::move(made));
  }
  return sequence_source(std::move(shared)).sequence(name, std::move(options));
}

}  // namespace HOLDFAST_NAMESPACE
