// The sequences of a database: one refiller for all sequences with the same block store.

#include <holdfast/sequence.hpp>

#include "database/database.hpp"
#include "sequence/id_range.hpp"
#include "sequence/source.hpp"
#include "sequence/sql/block_store.hpp"
#if HOLDFAST_HAS_REDIS
#include "sequence/redis/block_store.hpp"
#include "sequence/redis/fence.hpp"
#endif

#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace HOLDFAST_NAMESPACE {

namespace {

using sequence_source_ptr = std::shared_ptr<detail::sequence::source>;

/// Whether two fences make the same promise. The source of super_blocks does not matter for that.
bool same_promise(const sequence_fence& a, const sequence_fence& b) {
  const auto* super_a = std::get_if<super_blocks>(&a);
  const auto* super_b = std::get_if<super_blocks>(&b);
  if (super_a != nullptr && super_b != nullptr) return super_a->size == super_b->size;
  return a == b;
}

/// Sequences with the same prefix share their promises. Throws errc::invalid_argument if a new
/// sequence needs others than an open one.
void check_same_promises(const sequence_store_options& open,
                         const sequence_store_options& requested) {
  const auto refuse = [](const std::string& option) {
    throw error(
        errc::invalid_argument,
        "another sequence of this database and prefix was opened with another " + option +
            ", and is still open; use the same for both, or give one of them another prefix",
        {.path = option});
  };
  if (!same_promise(open.fence, requested.fence)) refuse("fence");
  if (open.failover_skip != requested.failover_skip) refuse("failover_skip");
  if (open.allow_unsafe != requested.allow_unsafe) refuse("allow_unsafe");
}

/// The store that grants the super-blocks; null for other fences.
const block_store* super_block_source(const sequence_store_options& options) {
  const auto* super = std::get_if<super_blocks>(&options.fence);
  return super != nullptr ? super->source.get() : nullptr;
}

/// Removes sources that are closed, and returns those that are open.
std::vector<sequence_source_ptr> open_sources(
    std::vector<std::weak_ptr<detail::sequence::source>>& sources) {
  std::erase_if(sources, [](const auto& source) { return source.expired(); });
  std::vector<sequence_source_ptr> open;
  for (const auto& source : sources) {
    if (auto held = source.lock()) open.push_back(std::move(held));
  }
  return open;
}

/// Returns the open source with the same block store, or null. Throws errc::invalid_argument if an
/// open source has conflicting options.
sequence_source_ptr find_source(const std::vector<sequence_source_ptr>& open,
                                const sequence_store_options& options) {
  sequence_source_ptr match;
  for (const auto& source : open) {
    check_same_promises(source->options, options);
    if (super_block_source(source->options) == super_block_source(options)) match = source;
  }
  return match;
}

}  // namespace

std::shared_ptr<block_store> database::block_store(sequence_store_options options) const {
  if (state_->sql) return detail::sequence::make_sql_block_store(state_->sql, options);
#if HOLDFAST_HAS_REDIS
  if (state_->redis)
    return detail::sequence::make_redis_block_store({.client = state_->redis,
                                                     .prefix = std::move(options.prefix),
                                                     .fence = std::move(options.fence)});
#endif
  const std::scoped_lock lock(state_->mutex);
  auto& store = state_->memory_counters[options.prefix];
  if (!store) store = make_memory_block_store();
  return store;
}

sequence database::sequence(std::string_view name, sequence_options options) const {
  check_sequence_name(name);
  detail::sequence::check_options(options);
#if HOLDFAST_HAS_REDIS
  if (state_->redis) detail::sequence::check_fence(options.store.fence);
#endif
  // Released after the locks: the last owner of a source waits for its refiller, which may need the
  // lock.
  std::vector<sequence_source_ptr> open;
  std::vector<sequence_source_ptr> open_meanwhile;
  sequence_source_ptr source;
  {
    const std::scoped_lock lock(state_->mutex);
    open = open_sources(state_->sequences[options.store.prefix]);
    source = find_source(open, options.store);
  }
  if (!source) {
    // Not under the lock, because it may ask the server. Another thread may do the same: the first
    // one to finish wins.
    auto created = detail::sequence::make_source(
        block_store(options.store),
        sequence_environment{.clock = state_->options.clock,
                             .log = state_->options.log,
                             .metrics = state_->metrics,
                             .allow_unsafe = options.store.allow_unsafe},
        options.store);
    const std::scoped_lock lock(state_->mutex);
    auto& sources = state_->sequences[options.store.prefix];
    open_meanwhile = open_sources(sources);
    source = find_source(open_meanwhile, options.store);
    if (!source) sources.push_back(source = std::move(created));
  }
  return sequence_source(std::move(source)).sequence(name, std::move(options));
}

}  // namespace HOLDFAST_NAMESPACE
