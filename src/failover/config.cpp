#include <holdfast/failover/engine.hpp>
#include <holdfast/store/compose.hpp>

#include "base/secret.hpp"
#include "failover/config_plan.hpp"

#include <utility>

namespace HOLDFAST_NAMESPACE {

namespace config {

namespace {

/// What an engine from a file owns beside itself. Its store lives as long as this does, and this as long as anybody uses the store.
struct belongings {
  std::shared_ptr<store> bottom{};
  std::shared_ptr<composed_store> composed{};
  std::optional<holdfast::cleanup> cleaning{};  // ends first
};

/// A name that is never registered is misspelled, perhaps; after a while somebody should know.
constexpr auto registered_by_then = std::chrono::minutes(1);

void tell_unclaimed(executor& on, const log_sink& sink, const std::weak_ptr<point_settings>& points) {
  (void)on.post_after(registered_by_then, [sink, points] {
    const auto known = points.lock();
    if (!known) return;
    const logger log(sink);
    for (const auto& each : known->unclaimed())
      log.write(log_level::warning, "the configuration has a point that nobody registered", {{.name = "name", .value = each}});
  });
}

}  // namespace

std::shared_ptr<store> build_store(plan& from) {
  const auto all = std::make_shared<belongings>();
  const auto clean = [&](const database& on, const std::shared_ptr<store>& what) {
    if (from.cleanup) all->cleaning.emplace(on, what, *from.cleanup);
  };
  if (!from.database.executor) from.database.executor = make_thread_pool({.name = "holdfast", .log = from.engine.log});
  if (from.engine.log) tell_unclaimed(*from.database.executor, from.engine.log, from.points);
  if (from.url.empty()) {
    all->bottom = make_memory_store(from.memory);
    clean(open("memory:", from.database), all->bottom);  // without a lease: nobody else is there
    return {all, all->bottom.get()};
  }
  const database on = open(from.url, from.database);
  // From the bottom up; the engine stamps tenants and queues writes above all this, with the caller's thread and its own deadlines.
  auto composition = compose(on, from.store);
  if (from.sealed && from.tiered) all->composed = std::move(composition).sealed(std::move(*from.sealed)).tiered(*from.tiered).build();
  else if (from.sealed) all->composed = std::move(composition).sealed(std::move(*from.sealed)).build();
  else if (from.tiered) all->composed = std::move(composition).tiered(*from.tiered).build();
  else all->composed = std::move(composition).build();
  clean(on, all->composed);
  return {all, all->composed.get()};
}

}  // namespace config

engine engine::from_config(const std::string& file, engine_options base) {
  const secret_text text(config::read_text(file));
  auto plan = config::make_plan(file, text.view(), std::move(base));
  const auto on = config::build_store(plan);
  // The connections have what they need.
  wipe(plan.database.password);
  wipe(plan.url);
  auto& options = plan.engine;
  // Tenants are found out by the engine, on the caller's thread; the store of tenants knows how.
  if (plan.tenants) options.tenant = [who = make_tenant_store(on, std::move(*plan.tenants))] { return who->tenant(); };
  options.configure = [before = std::move(options.configure), points = plan.points](std::string_view name, point_options& of) {
    if (before) before(name, of);
    points->apply(name, of);
  };
  const logger log(options.log);
  for (const auto& each : plan.warnings) log.write(log_level::warning, each, {{.name = "file", .value = file}});
  return engine(on, std::move(options));
}

}  // namespace HOLDFAST_NAMESPACE
