// The store of a database, and the functions of stores that take a database.

#include "store/sql/store.hpp"

#include <holdfast/store/cleanup.hpp>
#include <holdfast/store/compose.hpp>
#include <holdfast/store/memory.hpp>
#include <holdfast/store/probe.hpp>

#include "database/database.hpp"
#include "store/checks.hpp"
#include "store/cleaner.hpp"
#include "store/doctor/probe.hpp"
#include "store/sql/statements.hpp"

#include <utility>

namespace HOLDFAST_NAMESPACE {

std::shared_ptr<store> database::store(store_options options) const {
  state_->refuse_redis("the store of entries");
  (void)detail::store::prefixes_of_realms(options);  // checks the prefixes
  if (state_->sql) return detail::store::make_sql_store(state_->sql, std::move(options));
  if (options.peer != peer::none)
    throw error(errc::invalid_argument,
                "a store in memory cannot be shared with Java; open a database on a server",
                {.path = "peer"});
  const std::scoped_lock lock(state_->mutex);
  auto& store = state_->memory_stores[options.prefix];
  if (!store)
    store = make_memory_store({.max_skew = options.max_skew, .clock = state_->options.clock});
  return store;
}

std::shared_ptr<composed_store> compose(const database& db, store_layers layers,
                                        store_options options) {
  const auto& state = *db.shared();
  return compose(db.store(std::move(options)), std::move(layers),
                 {.clock = state.options.clock,
                  .executor = state.options.executor,
                  .make_executor = [shared = db.shared()] { return shared->executor(); },
                  .log = state.options.log,
                  .metrics = state.options.metrics});
}

cleanup::cleanup(const database& db, std::shared_ptr<holdfast::store> cleaned_store,
                 cleanup_options options) {
  const auto& shared = db.shared();
  if (!cleaned_store) throw error(errc::invalid_argument, "cleanup: there is no store to clean");
  detail::store::cleaner_parts parts{.target = std::move(cleaned_store),
                                     .executor = shared->executor(),
                                     .clock = shared->options.clock,
                                     .log = shared->log,
                                     .metrics = shared->metrics};
  if (shared->sql && options.lease.count() != 0)
    parts.lease = detail::store::make_table_lease(shared->sql, options.prefix, "store.cleanup");
  impl_ = std::make_shared<impl>(std::move(parts), std::move(options));
  impl_->start();
}

probe_report probe(const database& db, const store_options& options) {
  detail::store::check_max_skew(options.max_skew);
  const auto& state = *db.shared();
  state.refuse_redis("the store of entries");
  if (state.in_memory()) return {.server = "memory"};
  return detail::store::probe_database(*state.sql, options);
}

}  // namespace HOLDFAST_NAMESPACE
