#include "sql/database.hpp"

#include <holdfast/database.hpp>
#include <holdfast/sequence.hpp>

#include "sequence/root.hpp"
#include "sequence/sql_block_store.hpp"
#if HOLDFAST_HAS_REDIS
#include "sequence/redis_block_store.hpp"
#endif

#include <utility>

namespace HOLDFAST_NAMESPACE {

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
  std::shared_ptr<detail::source_root> shared;
  {
    const std::scoped_lock lock(state_->mutex);
    shared = state_->sequences[options.store.prefix].lock();
  }
  if (!shared) {
    // Not under the lock: it may ask the server. Two at once make two, and one of them stays.
    auto made =
        std::make_shared<detail::source_root>(block_store(options.store), sequence_environment{.clock = state_->options.clock,
                                                                                               .log = state_->options.log,
                                                                                               .metrics = state_->metrics,
                                                                                               .allow_unsafe = options.store.allow_unsafe});
    const std::scoped_lock lock(state_->mutex);
    auto& kept = state_->sequences[options.store.prefix];
    shared = kept.lock();
    if (!shared) kept = shared = std::move(made);
  }
  return sequence_source(std::move(shared)).sequence(name, std::move(options));
}

}  // namespace HOLDFAST_NAMESPACE
