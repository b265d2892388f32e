// An engine from a configuration file, with its database and store.

#include <holdfast/database.hpp>
#include <holdfast/failover/engine.hpp>
#include <holdfast/store/compose.hpp>

#include "base/secret.hpp"
#include "failover/config/plan.hpp"

#include <utility>

namespace HOLDFAST_NAMESPACE {

namespace detail::failover::config {

namespace {

/// The store of an engine with its parts. The pointer to the store owns all of them.
struct store_owner {
  std::shared_ptr<holdfast::store> memory{};
  std::shared_ptr<composed_store> composed{};
  std::optional<holdfast::cleanup> cleanup{};  // last, so that it stops first
};

/// Points of the file that are not registered by then are logged: the name may be misspelled.
constexpr auto registration_time = std::chrono::minutes(1);

void log_unregistered_later(executor& executor, const log_sink& sink,
                            const std::weak_ptr<point_settings>& points) {
  (void)executor.post_after(registration_time, [sink, points] {
    const auto settings = points.lock();
    if (!settings) return;
    const logger log(sink);
    for (const auto& name : settings->unclaimed())
      log.write(log_level::warning, "the configuration has a point that is not registered",
                {{.name = "name", .value = name}});
  });
}

database_options database_options_of(const plan& plan) {
  const auto& settings = plan.database;
  return {.pool = settings.pool,
          .connect_timeout = settings.connect_timeout,
          .statement_timeout = settings.statement_timeout,
          .user = settings.user,
          .password = settings.password,
          .password_file = settings.password_file,
          .clock = plan.engine.clock,
          .log = plan.engine.log,
          .metrics = plan.engine.metrics,
          .executor = make_thread_pool({.name = "holdfast", .log = plan.engine.log})};
}

/// Opens the database of the plan and composes the store.
std::shared_ptr<holdfast::store> build_store(plan& plan) {
  const auto owner = std::make_shared<store_owner>();
  const auto start_cleanup = [&](const database& db,
                                 const std::shared_ptr<holdfast::store>& store) {
    if (plan.cleanup) owner->cleanup.emplace(db, store, *plan.cleanup);
  };
  auto options = database_options_of(plan);
  if (plan.engine.log) log_unregistered_later(*options.executor, plan.engine.log, plan.points);
  if (plan.url.empty()) {
    owner->memory = make_memory_store(plan.memory);
    start_cleanup(open("memory:", std::move(options)), owner->memory);
    return {owner, owner->memory.get()};
  }
  const database db = open(plan.url, std::move(options));
  // The engine adds tenants and the write-behind queue on top, with its own deadlines.
  owner->composed = compose(db, std::move(plan.layers), plan.store);
  start_cleanup(db, owner->composed);
  return {owner, owner->composed.get()};
}

}  // namespace

}  // namespace detail::failover::config

engine engine::from_config(const std::string& file, engine_options base) {
  namespace config = detail::failover::config;
  const detail::secret_text text(config::read_text(file));
  auto plan = config::make_plan(file, text.view(), std::move(base));
  const auto store = config::build_store(plan);
  // The connections have their copies.
  detail::wipe(plan.database.password);
  detail::wipe(plan.url);
  auto& options = plan.engine;
  // The engine determines the tenant on the caller's thread, with the rules of the tenant store.
  if (plan.tenants)
    options.caller.tenant = [tenants = make_tenant_store(store, std::move(*plan.tenants))] {
      return tenants->tenant();
    };
  options.configure = [configure = std::move(options.configure), points = plan.points](
                          std::string_view name, point_options& point) {
    if (configure) configure(name, point);
    points->apply(name, point);
  };
  const logger log(options.log);
  for (const auto& warning : plan.warnings)
    log.write(log_level::warning, warning, {{.name = "file", .value = file}});
  return engine(store, std::move(options));
}

}  // namespace HOLDFAST_NAMESPACE
