#include "failover/config/plan.hpp"

#include "base/cron.hpp"
#include "base/secret.hpp"

#include <algorithm>

namespace HOLDFAST_NAMESPACE::detail::failover::config {

namespace {

using std::chrono::milliseconds;

// The order of the enumerators is that of the choices in keys.cpp.
enum class store_type : std::uint8_t { inmemory, jdbc };
enum class rejection : std::uint8_t { discard, caller_runs, abort };

/// Makes a plan from settings. Reports contradictions between settings as problems.
class planner {
 public:
  planner(const settings& file_settings, engine_options base, std::vector<problem>& problems)
      : settings_(file_settings), problems_(problems) {
    result.engine = std::move(base);
    plan_engine();
    plan_database();
    plan_table();
    plan_write_queue();
    plan_sealing();
    plan_tiers();
    plan_tenants();
    plan_schedule();
    warn_about_pool();
  }

  plan result{};

 private:
  void refuse(std::string_view key, const std::string& problem, std::string_view name = {}) {
    problems_.push_back(
        {.line = settings_.line(key, name), .text = std::string(key) + ": " + problem});
  }
  void warn(std::string text) { result.warnings.push_back(std::move(text)); }
  [[nodiscard]] bool flag(std::string_view key, bool default_value) const {
    return settings_.get<bool>(key).value_or(default_value);
  }
  [[nodiscard]] std::string text(std::string_view key, std::string default_value = {}) const {
    return settings_.get<std::string>(key).value_or(std::move(default_value));
  }
  /// A cron expression. Reports it as a problem if it is invalid.
  std::string cron_text(std::string_view key, std::string default_value) {
    auto expression = text(key, std::move(default_value));
    try {
      (void)detail::cron::parse(expression);
    } catch (const error& e) {
      refuse(key, e.message());
    }
    return expression;
  }

  void plan_engine() {
    constexpr std::string_view policy_key = "failover.exception-policy";
    auto& engine = result.engine;
    settings_.read_choice(engine.exception_policy, policy_key);
    if (engine.exception_policy == exception_policy::custom && !engine.unserved &&
        settings_.has(policy_key))
      warn(
          "failover.exception-policy is custom: every point needs point_hooks::unserved, or the "
          "engine engine_options::unserved");
    if (engine.exception_policy == exception_policy::never_throw)
      warn(
          "failover.exception-policy is never_throw: callers do not notice that there is nothing "
          "to serve; monitor the counters `substituted` and `not_found`");
    settings_.read_choice(engine.keys.style, "failover.key-style");
    settings_.read(engine.storage.read_deadline, "failover.read-deadline");
    settings_.read(engine.storage.max_payload, "failover.max-payload");
    settings_.read(engine.threads.count, "failover.threads");
    settings_.read(engine.threads.queue, "failover.queue");
    settings_.read(engine.linger, "failover.linger");
    settings_.read(engine.storage.max_skew, "failover.store.max-skew");
    settings_.read(engine.max_points, "failover.observable.cardinality.max-apis");
    read_scatter(settings_, "failover.scatter.", {}, engine.scatter);
    allow_payload_classes();
    // The Java library can switch these two off.
    if (!flag("failover.store.strict-allowlist", true))
      refuse("failover.store.strict-allowlist",
             "payload classes are always checked; list them in "
             "failover.store.allowed-payload-classes");
    if (!flag("failover.store.multitenant.strict", true))
      refuse("failover.store.multitenant.strict",
             "tenants that are not listed are always refused; list them in "
             "failover.store.multitenant.tenants");
  }

  void allow_payload_classes() {
    constexpr std::string_view key = "failover.store.allowed-payload-classes";
    for (const auto& name :
         settings_.get<std::vector<std::string>>(key).value_or(std::vector<std::string>())) {
      try {
        result.engine.storage.payloads.allow(name);
      } catch (const error& e) {
        refuse(key, e.message());
      }
    }
  }

  void plan_database() {
    const auto type = settings_.choice<store_type>("failover.store.type");
    const auto url = text("failover.store.url");
    const bool in_memory = url.empty() || url.starts_with("memory:");
    if (type == store_type::jdbc && in_memory)
      refuse("failover.store.type",
             "jdbc needs a database: set failover.store.url = \"sqlite:answers.db\"");
    if (type == store_type::inmemory && !in_memory)
      refuse("failover.store.type",
             "inmemory has no use for failover.store.url; remove one of them");
    if (url.starts_with("jdbc:"))
      refuse("failover.store.url", "omit jdbc: and write sqlite:, postgresql:// or mysql://");
    if (!in_memory) result.url = url;
    else
      warn(
          "answers are kept in memory and are lost when the process ends; set failover.store.url "
          "to keep them");
    auto& database = result.database;
    settings_.read(database.user, "failover.store.user");
    settings_.read(database.password, "failover.store.password");
    settings_.read(database.password_file, "failover.store.password-file");
    settings_.read(database.connect_timeout, "failover.store.connect-timeout");
    settings_.read(database.statement_timeout, "failover.store.statement-timeout");
    settings_.read(database.pool.maximum, "failover.store.pool.maximum");
    settings_.read(database.pool.acquire_timeout, "failover.store.pool.acquire-timeout");
    settings_.read(database.pool.leak_detection, "failover.store.pool.leak-detection");
    settings_.read(database.pool.max_lifetime, "failover.store.pool.max-lifetime");
    settings_.read(database.pool.idle_timeout, "failover.store.pool.idle-timeout");
    settings_.read(database.pool.validate_after, "failover.store.pool.validate-after");
    settings_.read(database.pool.validation_timeout, "failover.store.pool.validation-timeout");
    settings_.read(database.pool.keepalive, "failover.store.pool.keepalive");
    settings_.read(result.memory.max_entries, "failover.store.inmemory.max-entries");
    settings_.read(result.memory.max_bytes, "failover.store.inmemory.max-bytes");
    result.memory.max_skew = result.engine.storage.max_skew;
    result.memory.clock = result.engine.clock;
  }

  void plan_table() {
    auto& store = result.store;
    settings_.read(store.prefix, "failover.store.table-prefix");
    settings_.read(store.create_schema, "failover.store.create-schema");
    settings_.read_choice(store.payload, "failover.store.payload-column");
    settings_.read_choice(store.peer, "failover.store.peer");
    settings_.read(store.zone, "failover.store.zone");
    settings_.read_choice(store.probe, "failover.store.probe");
    settings_.read_choice(store.start, "failover.store.start");
    store.max_skew = result.engine.storage.max_skew;
    if (store.peer != peer::java) return;
    if (settings_.has("failover.key-style") &&
        result.engine.keys.style != holdfast::key::style::exact)
      refuse("failover.key-style", "must be exact if failover.store.peer is java");
    result.engine.keys.style = holdfast::key::style::exact;
  }

  void plan_write_queue() {
    auto& write_behind = result.engine.storage.write_behind;
    const auto async = settings_.get<bool>("failover.store.async");
    if (async && !*async) write_behind.reset();
    if (async.value_or(false) && !write_behind) write_behind = engine_storage{}.write_behind;
    if (!write_behind) return;
    auto& queue = *write_behind;
    if (const auto limit =
            settings_.get<std::size_t>("failover.store.async-executor.concurrency-limit");
        limit && *limit != 0)
      queue.max_entries = *limit;
    const auto policy =
        settings_.choice<rejection>("failover.store.async-executor.rejection-policy");
    if (policy == rejection::discard) queue.full = when_full::drop_oldest;
    if (policy == rejection::caller_runs) queue.full = when_full::write_through;
    if (policy == rejection::abort) {
      queue.full = when_full::block;
      queue.block_for = {};
    }
  }

  void plan_sealing() {
    constexpr std::string_view enabled = "failover.store.encryption.enabled";
    constexpr std::string_view key_name = "failover.store.encryption.key";
    constexpr std::string_view ring_name = "failover.store.encryption.keys";
    constexpr std::string_view file_name = "failover.store.encryption.keys-file";
    const secret_text key(text(key_name));
    const secret_text ring(text(ring_name));
    const auto file = text(file_name);
    const bool has_key = !key.view().empty();
    const bool has_ring = !ring.view().empty();
    const int sources =
        static_cast<int>(has_key) + static_cast<int>(has_ring) + static_cast<int>(!file.empty());
    const auto source = has_key ? key_name : has_ring ? ring_name : file_name;
    if (!flag(enabled, false)) {
      // Not only a warning: by the time it is read, payloads have been stored unencrypted.
      if (sources != 0)
        refuse(source,
               "there is a key, but payloads would be stored unencrypted; set "
               "failover.store.encryption.enabled = true, or remove the key");
      else if (!settings_.has(enabled)) refuse_settings_without_key();
      return;
    }
    if (result.url.empty())
      refuse(enabled, "a store in memory is not sealed: it has no data at rest");
    if (sources != 1)
      return refuse(enabled, "set one of failover.store.encryption.key, .keys and .keys-file");
    auto& sealed = result.layers.sealed.emplace(
        sealed_options{.keys = {},
                       .read_java = flag("failover.store.encryption.read-java", false),
                       .read_base64 = flag("failover.store.encryption.read-base64", false),
                       .read_plaintext = flag("failover.store.encryption.read-plaintext", false)});
    try {
      if (has_key)
        sealed.keys.add(
            result.store.peer == peer::java ? std::string(sealing_ring::java_id) : "main",
            sealing_key::from_base64(key.view()));
      else
        sealed.keys =
            has_ring ? sealing_ring::from_text(ring.view()) : sealing_ring::from_file(file);
    } catch (const error& e) {
      refuse(source, e.message());  // these messages never contain a key
    }
  }

  /// Refuses encryption settings without a key and without `enabled`. The variable with the key may
  /// not be set.
  void refuse_settings_without_key() {
    for (const std::string_view name :
         {"failover.store.encryption.key", "failover.store.encryption.keys",
          "failover.store.encryption.keys-file", "failover.store.encryption.cipher",
          "failover.store.encryption.read-java", "failover.store.encryption.read-base64",
          "failover.store.encryption.read-plaintext"}) {
      if (settings_.has(name))
        refuse(name,
               "payloads would be stored unencrypted; set failover.store.encryption.enabled = true "
               "and a key, or enabled = false");
    }
  }

  void plan_tiers() {
    constexpr std::string_view enabled = "failover.store.tiered.enabled";
    if (!flag(enabled, false)) return;
    if (result.url.empty())
      return refuse(enabled, "a store in memory needs no memory in front of it");
    auto& tiered = result.layers.tiered.emplace();
    settings_.read(tiered.freshness, "failover.store.tiered.freshness");
    settings_.read(tiered.max_entries, "failover.store.tiered.max-entries");
    settings_.read(tiered.max_bytes, "failover.store.tiered.max-bytes");
    tiered.clock = result.engine.clock;
  }

  void plan_tenants() {
    constexpr std::string_view section = "failover.store.multitenant.tenants";
    constexpr std::string_view enabled = "failover.store.multitenant.enabled";
    constexpr std::string_view default_key = "failover.store.multitenant.default-tenant";
    const auto& ids = settings_.names_below(section);
    if (!flag(enabled, false)) {
      if (!ids.empty()) refuse(enabled, "there are tenants; set true, or remove them");
      return;
    }
    auto& tenants = result.tenants.emplace();
    tenants.tenants.assign(ids.begin(), ids.end());
    settings_.read(tenants.default_tenant, default_key);
    if (ids.empty()) refuse(enabled, "there are no tenants; list them in " + std::string(section));
    else if (!tenants.default_tenant.empty() && !ids.contains(tenants.default_tenant))
      refuse(default_key, "is not one of " + std::string(section));
    if (result.engine.caller.tenant)
      tenants.resolve = [tenant = result.engine.caller.tenant]() -> std::optional<std::string> {
        return tenant();
      };
    plan_realms(ids);
  }

  /// Finds the table prefix or schema of each tenant.
  void plan_realms(const std::set<std::string, std::less<>>& ids) {
    const auto strategy = settings_.choice<tenant_strategy>("failover.store.multitenant.strategy")
                              .value_or(tenant_strategy::table_prefix);
    const bool by_schema = strategy == tenant_strategy::schema;
    std::string_view used_key = "failover.store.multitenant.tenants.*.table-prefix";
    std::string_view unused_key = "failover.store.multitenant.tenants.*.schema";
    if (by_schema) std::swap(used_key, unused_key);
    std::set<std::string, std::less<>> prefixes;
    for (const auto& id : ids) {
      try {
        if (settings_.has(unused_key, id)) refuse(unused_key, "is of the other strategy", id);
        const auto value = settings_.get<std::string>(used_key, id);
        // As in the Java library: a table prefix is used unchanged, a schema is followed by a dot.
        auto prefix = !value      ? tenant_realms({{.id = id}}, strategy).at(id)
                      : by_schema ? *value + '.'
                                  : *value;
        if (!prefixes.insert(prefix).second)
          refuse(used_key, "two tenants have the same place", id);
        result.store.realms.emplace(id, std::move(prefix));
      } catch (const error& e) {
        refuse(used_key, "tenant '" + id + "': " + e.message(), id);
      }
    }
  }

  void plan_schedule() {
    constexpr std::string_view report_key = "failover.scheduler.report-cron";
    auto& engine = result.engine;
    const auto cleanup_cron = cron_text("failover.scheduler.cleanup-cron", cleanup_options().cron);
    const auto report_cron = cron_text(report_key, "0 0 0 * * *");
    settings_.read(engine.reports.count_entries, "failover.store.live-entries-gauge-enabled");
    if (!flag("failover.scheduler.enabled", true)) return;
    auto& cleanup = result.cleanup.emplace();
    cleanup.cron = cleanup_cron;
    settings_.read(cleanup.jitter, "failover.scheduler.cleanup-jitter");
    settings_.read(cleanup.batch, "failover.scheduler.cleanup-batch");
    settings_.read(cleanup.lease, "failover.scheduler.cleanup-lease");
    cleanup.prefix = result.store.prefix;
    // Reports need a log or metrics. The default does not override a schedule of the base options.
    const bool has_sink = engine.log || engine.metrics;
    const bool has_schedule = !engine.reports.cron.empty() || engine.reports.every.count() != 0;
    if (has_sink && (!has_schedule || settings_.has(report_key))) engine.reports.cron = report_cron;
  }

  void warn_about_pool() {
    if (result.url.empty()) return;
    const auto& scatter = result.engine.scatter;
    scatter_figures figures{.deadline = std::chrono::floor<milliseconds>(scatter.timeout),
                            .widest = scatter.parallel};
    for (const auto& name : settings_.names_below("failover.points")) {
      scatter_options of_point = scatter;
      read_scatter(settings_, "failover.points.*.scatter.", name, of_point);
      figures.deadline =
          std::min(figures.deadline, std::chrono::floor<milliseconds>(of_point.timeout));
      figures.widest = std::max(figures.widest, of_point.parallel);
    }
    for (auto& warning : advise(result.database.pool, figures)) warn(std::move(warning));
  }

  const settings& settings_;
  std::vector<problem>& problems_;
};

/// The values of a file. Wipes their texts: some are passwords and keys.
struct file_values {
  std::vector<file_value> values;

  explicit file_values(std::vector<file_value> file) : values(std::move(file)) {}
  file_values(const file_values&) = delete;
  file_values& operator=(const file_values&) = delete;
  ~file_values() { std::ranges::for_each(values, wipe_text); }

  static void wipe_text(file_value& value) {
    if (auto* text = std::get_if<std::string>(&value.value)) wipe(*text);
  }
  /// Keeps only what point_settings needs, which contains no secrets.
  void keep_points() {
    const auto needed = [](const file_value& value) {
      const auto& path = value.path;
      return path.size() >= 2 && (path[1] == "points" || path[1] == "enabled");
    };
    for (auto& value : values) {
      if (!needed(value)) wipe_text(value);
    }
    std::erase_if(values, std::not_fn(needed));
  }
};

}  // namespace

std::vector<std::string> advise(const pool_options& pool, const scatter_figures& scatter) {
  std::vector<std::string> warnings;
  if (scatter.deadline.count() > 0 && pool.acquire_timeout > scatter.deadline) {
    warnings.push_back("pool.acquire_timeout (" + std::to_string(pool.acquire_timeout.count()) +
                       " ms) is above the deadline of a scatter (" +
                       std::to_string(scatter.deadline.count()) +
                       " ms): slices would wait for a connection longer than their caller "
                       "waits; lower the timeout to the deadline or below");
  }
  // The writer uses one connection; recoveries share the others.
  const std::size_t readers = pool.maximum > 0 ? pool.maximum - 1 : 0;
  if (scatter.widest > readers) {
    warnings.push_back("pool.maximum (" + std::to_string(pool.maximum) + ") leaves " +
                       std::to_string(readers) + " connections to read, but a scatter runs " +
                       std::to_string(scatter.widest) +
                       " slices at once, so some would wait; raise pool.maximum to " +
                       std::to_string(scatter.widest + 1) + " or lower scatter.concurrency-limit");
  }
  return warnings;
}

plan make_plan(const std::string& file, std::string_view text, engine_options base,
               const environment& lookup, std::string_view store_url) {
  std::vector<problem> problems;
  file_values file_content(read_toml(text, lookup, problems));
  if (!store_url.empty())
    file_content.values.push_back(
        {.path = {"failover", "store", "url"}, .value = std::string(store_url)});
  const settings all_settings(file_content.values, problems);
  planner planned(all_settings, std::move(base), problems);
  if (!problems.empty()) throw_problems(file, std::move(problems));
  auto& result = planned.result;
  for (const auto& warning : all_settings.warnings()) result.warnings.push_back(warning);
  file_content.keep_points();
  result.points = std::make_shared<point_settings>(
      std::make_shared<const settings>(file_content.values, problems), result.engine);
  return std::move(result);
}

}  // namespace HOLDFAST_NAMESPACE::detail::failover::config
