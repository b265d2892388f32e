#include "serve/open_services.hpp"

#include <holdfast/error.hpp>
#include <holdfast/store/compose.hpp>

#include "base/secret.hpp"
#include "base/url.hpp"
#include "serve/api/decision_recorder.hpp"
#include "serve/live/served_ages.hpp"

#include <utility>
#include <variant>

namespace HOLDFAST_NAMESPACE::detail::serve {

namespace {

database open_database(const config::database_config& config, const services& shared, bool create) {
  database_options options{.statement_timeout = config.statement_timeout,
                           .user = config.user,
                           .password = config.password,
                           .password_file = config.password_file,
                           .clock = shared.clock,
                           .log = shared.log,
                           .metrics = shared.metrics};
  options.pool.maximum =
      config.connections != 0 ? config.connections : config::default_connections(config.url);
  return open(url_to_open(config.url, create), std::move(options));
}

/// Calls a function, and adds the name of the service to what it throws.
template <class Action>
auto for_service(const std::string& name, Action action) {
  try {
    return action();
  } catch (const error& failure) {
    throw error(failure.code(), failure.what(), {.path = name, .transient = failure.transient()});
  }
}

/// The first store has the layers of [failover]: the engine and the API see the same entries.
store_service open_store(config::store_config& config, const services& shared,
                         std::optional<failover::config::plan>& points) {
  auto db = open_database(config.database, shared, config.create_schema);
  store_options options{
      .prefix = config.prefix, .create_schema = config.create_schema, .payload = config.payload};
  if (points) options.realms = points->store.realms;
  auto store = points ? compose(db, std::move(points->layers), options) : db.store(options);
  return {.name = config.name,
          .url = without_password(config.database.url),
          .database = std::move(db),
          .store = std::move(store),
          .options = std::move(options)};
}

outbox_service open_outbox(const config::outbox_config& config, const services& shared) {
  auto db = open_database(config.database, shared, config.create_schema);
  outbox_options options{.prefix = config.prefix,
                         .lanes = config.lanes,
                         .dedup_window = config.dedup_window,
                         .max_deliveries = config.max_deliveries,
                         .create_schema = config.create_schema};
  auto outbox = db.outbox(options);
  return {.name = config.name,
          .url = without_password(config.database.url),
          .database = std::move(db),
          .outbox = std::move(outbox),
          .options = std::move(options)};
}

sequence_service open_sequences(const config::sequence_config& config, const services& shared) {
  using config::fence_kind;
  sequence_options options{.blocks = adaptive_blocks{},
                           .store = {.prefix = config.prefix,
                                     .create_schema = config.create_schema,
                                     .allow_unsafe = config.allow_unsafe}};
  if (config.fence == fence_kind::super) {
    auto source = config.database;
    source.url = config.super_store;
    source.user.clear();
    source.password.clear();
    source.password_file.clear();
    options.store.fence = super_blocks{
        .source =
            open_database(source, shared, config.create_schema)
                .block_store({.prefix = config.prefix, .create_schema = config.create_schema})};
  } else if (config.fence == fence_kind::clock) {
    options.store.fence = clock_fence{};
  } else if (config.fence == fence_kind::wait) {
    options.store.fence = wait_fence{};
  } else if (config.fence == fence_kind::none) {
    options.store.fence = no_fence{};
  }
  auto db = open_database(config.database, shared, config.create_schema);
  auto blocks = db.block_store(options.store);
  return {.url = without_password(config.database.url),
          .database = std::move(db),
          .blocks = std::move(blocks),
          .options = std::move(options)};
}

std::shared_ptr<engine> make_engine(const std::shared_ptr<store>& store,
                                    failover::config::plan& plan, const services& shared) {
  auto& options = plan.engine;
  options.insight = server_insight(shared.decisions, shared.ages);
  // The engine determines the tenant on the caller's thread, with the rules of the tenant store.
  if (plan.tenants)
    options.caller.tenant = [tenants = make_tenant_store(store, std::move(*plan.tenants))] {
      return tenants->tenant();
    };
  options.configure = [points = plan.points](std::string_view name, point_options& point) {
    points->apply(name, point);
  };
  return std::make_shared<engine>(store, std::move(options));
}

}  // namespace

void open_services(config::server_config& config, opened_services& target) {
  auto& shared = target.shared;
  shared.label = config.label;
  for (auto& store : config.stores) {
    const bool is_first = shared.stores.empty();
    std::optional<failover::config::plan> no_points;
    for_service("stores." + store.name, [&] {
      shared.stores.push_back(open_store(store, shared, is_first ? config.points : no_points));
    });
    wipe(store.database.password);
  }
  for (auto& outbox : config.outboxes) {
    for_service("outboxes." + outbox.name,
                [&] { shared.outboxes.push_back(open_outbox(outbox, shared)); });
    wipe(outbox.database.password);
  }
  if (config.sequences) {
    for_service("sequences",
                [&] { shared.sequences.emplace(open_sequences(*config.sequences, shared)); });
    wipe(config.sequences->database.password);
  }
  if (!config.points || shared.stores.empty()) return;
  const logger log(shared.log);
  for (const auto& warning : config.points->warnings)
    log.write(log_level::warning, warning, {{.name = "file", .value = config.file}});
  const auto& first = shared.stores.front();
  if (config.points->cleanup)
    target.cleanup.emplace(first.database, first.store, *config.points->cleanup);
  shared.decisions = std::make_shared<decision_log>();
  shared.ages = std::make_shared<served_ages>();
  shared.point_names = config.points->points->unclaimed();
  shared.engine = make_engine(first.store, *config.points, shared);
}

}  // namespace HOLDFAST_NAMESPACE::detail::serve
