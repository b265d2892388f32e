// The schema versions of a database: the sets of store, sequences, outbox and instances.

#include "outbox/sql/schema.hpp"

#include <holdfast/error.hpp>
#include <holdfast/schema.hpp>

#include "database/database.hpp"
#include "database/instances/sql/schema.hpp"
#include "database/schema.hpp"
#include "outbox/default_prefix.hpp"
#include "outbox/sql/open.hpp"
#include "sequence/sql/schema.hpp"
#include "sql/schema_upgrade.hpp"
#include "store/sql/schema.hpp"
#if HOLDFAST_HAS_REDIS
#include "outbox/redis/schema.hpp"
#include "sequence/redis/schema.hpp"
#endif

#include <algorithm>
#include <utility>

namespace HOLDFAST_NAMESPACE {

namespace {

using detail::sql::schema_set;

/// The sets of an SQL database. Only some dialects can hold an outbox.
std::vector<schema_set> sql_sets(sql::dialect_id dialect, const schema_options& options) {
  auto sets = detail::store::schema_sets({.prefix = options.prefix});
  sets.push_back(detail::sequence::counter_schema({.prefix = options.prefix}));
  if (detail::outbox::supports(dialect))
    sets.push_back(detail::outbox::outbox_tables_schema(options.outbox_prefix));
  sets.push_back(detail::instances::instance_tables_schema(options.prefix));
  return sets;
}

schema_verdict verdict_of(int version, int oldest, int current) {
  if (version > current) return schema_verdict::newer;
  if (version < oldest) return schema_verdict::too_old;
  return version < current ? schema_verdict::older : schema_verdict::current;
}

schema_status status_of(const schema_set& set, const detail::sql::schema_state& state) {
  schema_status status{
      .set = set.name, .tables = set.tables, .current = set.current, .oldest = set.oldest};
  if (!state.exists) return status;
  status.version = state.version;
  status.verdict = verdict_of(state.version, set.oldest, set.current);
  return status;
}

[[noreturn]] void refuse_memory() {
  throw error(errc::invalid_argument,
              "a database in memory has no schema version; give the URL of a database",
              {.path = "url"});
}

// ---- SQL ----

std::vector<schema_status> sql_status(sql::context& context, const schema_options& options) {
  const auto dialect = context.dialect();
  const auto connection = context.pool.acquire_reader("schema.status");
  std::vector<schema_status> all;
  for (const auto& set : sql_sets(dialect, options))
    all.push_back(status_of(set, detail::sql::inspect_schema(*connection, dialect, set)));
  return all;
}

std::vector<schema_upgrade> sql_upgrade(sql::context& context, const schema_options& options,
                                        upgrade_mode mode) {
  const auto dialect = context.dialect();
  const auto connection = context.pool.acquire_writer("schema.upgrade");
  const auto sets = sql_sets(dialect, options);
  std::vector<schema_upgrade> upgrades;
  for (const auto& set : sets) {
    const auto state = detail::sql::inspect_schema(*connection, dialect, set);
    upgrades.push_back(
        {.before = status_of(set, state),
         .statements = detail::sql::upgrade_statements(dialect, set, state)});  // or refuses
  }
  if (mode == upgrade_mode::dry_run) return upgrades;
  for (std::size_t i = 0; i < sets.size(); ++i)
    upgrades[i].statements = detail::sql::upgrade_schema(*connection, dialect, sets[i]);
  return upgrades;
}

// ---- Redis ----

#if HOLDFAST_HAS_REDIS
std::vector<schema_status> redis_status(const std::shared_ptr<const redis::client>& client,
                                        const schema_options& options) {
  const detail::sequence::redis_counters counters(client, options.prefix);
  schema_status ids{.set = "sequences",
                    .tables = {counters.key("*")},
                    .current = detail::sequence::current_counter_schema,
                    .oldest = detail::sequence::oldest_counter_schema};
  const auto versions = detail::sequence::counter_schema_versions(counters);
  if (!versions.empty()) {
    // A newer counter is refused, so it decides; otherwise the oldest one.
    ids.version = versions.back() > ids.current ? versions.back() : versions.front();
    ids.verdict = verdict_of(*ids.version, ids.oldest, ids.current);
  }
  const auto& prefix = options.outbox_prefix;
  schema_status events{.set = "outbox",
                       .tables = {detail::outbox::meta_key(prefix)},
                       .version = detail::outbox::read_outbox_schema(*client, prefix),
                       .current = detail::outbox::current_outbox_schema,
                       .oldest = detail::outbox::oldest_outbox_schema};
  if (events.version) events.verdict = verdict_of(*events.version, events.oldest, events.current);
  return {std::move(ids), std::move(events)};
}

std::vector<schema_upgrade> redis_upgrade(const std::shared_ptr<const redis::client>& client,
                                          const schema_options& options, upgrade_mode mode) {
  std::vector<schema_upgrade> upgrades;
  for (auto& status : redis_status(client, options)) {
    if (status.verdict == schema_verdict::newer)
      throw error(errc::unsupported_type,
                  "the " + status.set + " (" + status.tables.front() + ") has schema version " +
                      std::to_string(status.version.value_or(0)) +
                      ", but this program (Holdfast " HOLDFAST_VERSION_STRING
                      ") knows versions up to " +
                      std::to_string(status.current) + "; update the program");
    upgrades.push_back({.before = std::move(status)});
  }
  auto& events = upgrades.back();
  const auto verdict = events.before.verdict;
  if (verdict != schema_verdict::older && verdict != schema_verdict::too_old) return upgrades;
  events.statements.push_back("upgrade " + events.before.tables.front() + " to schema version " +
                              std::to_string(events.before.current));
  if (mode == upgrade_mode::run)
    detail::outbox::upgrade_redis_outbox(*client, options.outbox_prefix);
  return upgrades;
}
#endif

}  // namespace

namespace detail::schema {

schema_options complete_options(const database::state& state, schema_options options) {
  namespace outboxes = detail::outbox;
  if (!options.outbox_prefix.empty()) return options;
  outboxes::default_outboxes existing;
  if (state.sql && outboxes::supports(state.sql->dialect()))
    existing = outboxes::find_default_outboxes(state.sql);
#if HOLDFAST_HAS_REDIS
  if (state.redis) {
    const auto exists = [&](std::string_view prefix) {
      return outboxes::read_outbox_schema(*state.redis, prefix).has_value();
    };
    existing = {.current = exists(outboxes::default_prefix),
                .former = exists(outboxes::former_default_prefix)};
  }
#endif
  options.outbox_prefix = outboxes::choose_default_prefix(existing);
  return options;
}

}  // namespace detail::schema

std::string_view to_string(schema_verdict verdict) noexcept {
  switch (verdict) {
    case schema_verdict::absent:
      return "absent";
    case schema_verdict::current:
      return "current";
    case schema_verdict::older:
      return "older";
    case schema_verdict::too_old:
      return "too_old";
    case schema_verdict::newer:
      return "newer";
  }
  return "unknown";
}

std::vector<schema_status> read_schema_status(const database& db, const schema_options& options) {
  const auto& state = *db.shared();
  if (state.sql) return sql_status(*state.sql, detail::schema::complete_options(state, options));
#if HOLDFAST_HAS_REDIS
  if (state.redis)
    return redis_status(state.redis, detail::schema::complete_options(state, options));
#endif
  refuse_memory();
}

std::vector<schema_upgrade> upgrade_schema(const database& db, const schema_options& options,
                                           upgrade_mode mode) {
  const auto& state = *db.shared();
  if (state.sql)
    return sql_upgrade(*state.sql, detail::schema::complete_options(state, options), mode);
#if HOLDFAST_HAS_REDIS
  if (state.redis)
    return redis_upgrade(state.redis, detail::schema::complete_options(state, options), mode);
#endif
  refuse_memory();
}

}  // namespace HOLDFAST_NAMESPACE
