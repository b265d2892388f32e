// From what the file says to the options of everything that is to be built.

#include "failover/config_plan.hpp"

#include "base/cron.hpp"
#include "base/secret.hpp"
#include "base/url.hpp"
#include "sql/pool_advice.hpp"

#include <algorithm>
#include <chrono>
#include <utility>
#include <variant>

namespace HOLDFAST_NAMESPACE::config {

namespace {

using std::chrono::milliseconds;

enum class store_type : std::uint8_t { inmemory, jdbc };
enum class rejection : std::uint8_t { discard, caller_runs, abort };

class planning {
 public:
  planning(const settings& from, engine_options base, std::vector<problem>& problems) : from_(from), problems_(problems) {
    result.engine = std::move(base);
    engine();
    place();
    table();
    queue();
    sealing();
    tiers();
    tenants();
    schedule();
    advice();
  }

  plan result{};

 private:
  void complain(std::string_view key, const std::string& what, std::string_view of = {}) {
    problems_.push_back({.line = from_.line(key, of), .text = std::string(key) + ": " + what});
  }
  void check_cron(std::string_view key, const std::string& expression) {
    try {
      (void)cron::parse(expression);
    } catch (const error& e) {
      complain(key, e.message());
    }
  }
  /// What the Java library can switch off, and nobody can here.
  void always(std::string_view key, const char* instead) {
    if (!from_.flag(key).value_or(true)) complain(key, instead);
  }
  [[nodiscard]] bool on(std::string_view key) const { return from_.flag(key).value_or(false); }

  void engine() {
    auto& to = result.engine;
    set(to.exception_policy, from_.choice<exception_policy>("failover.exception-policy"));
    if (to.exception_policy == exception_policy::custom && !to.unserved && from_.has("failover.exception-policy"))
      result.warnings.emplace_back(
          "failover.exception-policy is custom: every point needs point_hooks::unserved, or the engine engine_options::unserved");
    if (to.exception_policy == exception_policy::never_throw)
      result.warnings.emplace_back(
          "failover.exception-policy is never_throw: callers are not told when there is nothing to serve; watch the numbers `substituted` "
          "and `not_found`");
    set(to.key_style, from_.choice<key::style>("failover.key-style"));
    set(to.read_deadline, from_.duration("failover.read-deadline"));
    set(to.max_payload, from_.count("failover.max-payload"));
    set(to.threads, from_.count("failover.threads"));
    set(to.queue, from_.count("failover.queue"));
    set(to.linger, from_.duration("failover.linger"));
    set(to.max_skew, from_.duration("failover.store.max-skew"));
    set(to.max_points, from_.count("failover.observable.cardinality.max-apis"));
    read_scatter(from_, "failover.scatter.", {}, to.scatter);
    for (const auto& each : from_.names("failover.store.allowed-payload-classes")) {
      try {
        to.payloads.allow(each);
      } catch (const error& e) {
        complain("failover.store.allowed-payload-classes", e.message());
      }
    }
    always("failover.store.strict-allowlist", "payload classes are always checked; list them in failover.store.allowed-payload-classes");
    always("failover.store.multitenant.strict",
           "tenants that are not listed are always refused; list them in failover.store.multitenant.tenants");
  }

  void place() {
    constexpr std::string_view key = "failover.store.url";
    const auto type = from_.choice<store_type>("failover.store.type");
    const auto url = from_.text(key).value_or("");
    const bool in_memory = url.empty() || url.starts_with("memory:");
    if (type == store_type::jdbc && in_memory)
      complain("failover.store.type", "jdbc needs a database: say failover.store.url = \"sqlite:answers.db\"");
    if (type == store_type::inmemory && !in_memory)
      complain("failover.store.type", "inmemory has no use for failover.store.url; remove one of them");
    if (url.starts_with("jdbc:")) complain(key, "leave out jdbc: and write sqlite:, postgresql:// or mysql://");
    if (!in_memory) result.url = url;
    if (in_memory)
      result.warnings.emplace_back("answers are kept in memory and are gone with the process; say failover.store.url to keep them");
    auto& to = result.database;
    set(to.user, from_.text("failover.store.user"));
    set(to.password, from_.text("failover.store.password"));
    set(to.password_file, from_.text("failover.store.password-file"));
    set(to.connect_timeout, from_.duration("failover.store.connect-timeout"));
    set(to.statement_timeout, from_.duration("failover.store.statement-timeout"));
    set(to.pool.maximum, from_.count("failover.store.pool.maximum"));
    set(to.pool.acquire_timeout, from_.duration("failover.store.pool.acquire-timeout"));
    to.clock = result.engine.clock;
    to.log = result.engine.log;
    to.metrics = result.engine.metrics;
    set(result.memory.max_entries, from_.count("failover.store.inmemory.max-entries"));
    set(result.memory.max_bytes, from_.count("failover.store.inmemory.max-bytes"));
    result.memory.max_skew = result.engine.max_skew;
    result.memory.clock = result.engine.clock;
  }

  void table() {
    auto& to = result.store;
    set(to.prefix, from_.text("failover.store.table-prefix"));
    set(to.create_schema, from_.flag("failover.store.create-schema"));
    set(to.payload, from_.choice<payload_column>("failover.store.payload-column"));
    set(to.peer, from_.choice<peer>("failover.store.peer"));
    set(to.zone, from_.text("failover.store.zone"));
    set(to.probe, from_.choice<start_probe>("failover.store.probe"));
    to.max_skew = result.engine.max_skew;
    if (to.peer != peer::java) return;
    // One switch: what Java services would not find or read is not written.
    if (from_.has("failover.key-style") && result.engine.key_style != key::style::exact)
      complain("failover.key-style", "must be exact where failover.store.peer is java");
    result.engine.key_style = key::style::exact;
  }

  void queue() {
    auto& to = result.engine;
    set(to.write_behind, from_.flag("failover.store.async"));
    if (const auto limit = from_.count("failover.store.async-executor.concurrency-limit"); limit && *limit != 0)
      to.queue_of_writes.max_entries = *limit;
    if (const auto what = from_.choice<rejection>("failover.store.async-executor.rejection-policy")) {
      to.queue_of_writes.full = *what == rejection::discard       ? when_full::drop_oldest
                                : *what == rejection::caller_runs ? when_full::write_through
                                                                  : when_full::block;
      if (*what == rejection::abort) to.queue_of_writes.block_for = {};
    }
  }

  void sealing() {
    constexpr std::string_view enabled = "failover.store.encryption.enabled";
    const secret_text one(from_.text("failover.store.encryption.key").value_or(""));
    const secret_text ring(from_.text("failover.store.encryption.keys").value_or(""));
    const auto file = from_.text("failover.store.encryption.keys-file").value_or("");
    const int ways = static_cast<int>(!one.view().empty()) + static_cast<int>(!ring.view().empty()) + static_cast<int>(!file.empty());
    if (!on(enabled)) {
      if (ways == 0) {
        if (!from_.has(enabled)) refuse_half_sealing();
        return;
      }
      // A warning in the log is easily missed, and the first payload is stored by then.
      const auto given = !one.view().empty()    ? "failover.store.encryption.key"
                         : !ring.view().empty() ? "failover.store.encryption.keys"
                                                : "failover.store.encryption.keys-file";
      complain(given,
               "there is a key, but payloads would be stored unencrypted; set failover.store.encryption.enabled = true, or remove the key");
      return;
    }
    if (result.url.empty()) complain(enabled, "a store in memory is not sealed; it has nothing at rest");
    if (ways != 1) {
      complain(enabled, "say one of failover.store.encryption.key, .keys and .keys-file");
      return;
    }
    sealed_options to{.keys = {},
                      .read_java = on("failover.store.encryption.read-java"),
                      .read_base64 = on("failover.store.encryption.read-base64"),
                      .read_plaintext = on("failover.store.encryption.read-plaintext")};
    const auto key = !one.view().empty()    ? "failover.store.encryption.key"
                     : !ring.view().empty() ? "failover.store.encryption.keys"
                                            : "failover.store.encryption.keys-file";
    try {
      if (!one.view().empty())
        to.keys.add(result.store.peer == peer::java ? std::string(sealing_ring::java_id) : "main", sealing_key::from_base64(one.view()));
      else to.keys = !ring.view().empty() ? sealing_ring::from_text(ring.view()) : sealing_ring::from_file(file);
    } catch (const error& e) {
      complain(key, e.message());  // no message of the ring repeats a key
    }
    result.sealed = std::move(to);
  }

  /// Settings of encryption without a key and without a word about `enabled`, as where the variable with the key is not set.
  void refuse_half_sealing() {
    for (const std::string_view name :
         {"failover.store.encryption.key", "failover.store.encryption.keys", "failover.store.encryption.keys-file",
          "failover.store.encryption.cipher", "failover.store.encryption.read-java", "failover.store.encryption.read-base64",
          "failover.store.encryption.read-plaintext"}) {
      if (from_.has(name))
        complain(name, "payloads would be stored unencrypted; set failover.store.encryption.enabled = true and a key, or enabled = false");
    }
  }

  void tiers() {
    if (!on("failover.store.tiered.enabled")) return;
    if (result.url.empty()) {
      complain("failover.store.tiered.enabled", "a store in memory needs no memory in front of it");
      return;
    }
    auto& to = result.tiered.emplace();
    set(to.freshness, from_.duration("failover.store.tiered.freshness"));
    set(to.max_entries, from_.count("failover.store.tiered.max-entries"));
    set(to.max_bytes, from_.count("failover.store.tiered.max-bytes"));
    to.clock = result.engine.clock;
  }

  void tenants() {
    constexpr std::string_view section = "failover.store.multitenant.tenants";
    constexpr std::string_view enabled = "failover.store.multitenant.enabled";
    const auto& ids = from_.names_below(section);
    if (!on(enabled)) {
      if (!ids.empty()) complain(enabled, "there are tenants; say true, or remove them");
      return;
    }
    auto& to = result.tenants.emplace();
    to.tenants.assign(ids.begin(), ids.end());
    set(to.default_tenant, from_.text("failover.store.multitenant.default-tenant"));
    if (ids.empty()) complain(enabled, "there are no tenants; list them in " + std::string(section));
    else if (!to.default_tenant.empty() && !ids.contains(to.default_tenant))
      complain("failover.store.multitenant.default-tenant", "is not one of " + std::string(section));
    if (result.engine.tenant) to.resolve = [ask = result.engine.tenant]() -> std::optional<std::string> { return ask(); };

    const auto strategy = from_.choice<tenant_strategy>("failover.store.multitenant.strategy").value_or(tenant_strategy::table_prefix);
    const bool schema = strategy == tenant_strategy::schema;
    const auto* const own = schema ? "failover.store.multitenant.tenants.*.schema" : "failover.store.multitenant.tenants.*.table-prefix";
    const auto* const others = schema ? "failover.store.multitenant.tenants.*.table-prefix" : "failover.store.multitenant.tenants.*.schema";
    std::set<std::string, std::less<>> places;
    for (const auto& id : ids) {
      try {
        if (from_.has(others, id)) complain(others, "is of the other strategy", id);
        auto place = from_.text(own, id);
        // As the Java library has it: a prefix stands there as it is, a schema gets its dot.
        auto before = place ? (schema ? *place + '.' : *place) : tenant_realms({{.id = id}}, strategy).at(id);
        if (!places.insert(before).second) complain(own, "two tenants have the same place", id);
        result.store.realms.emplace(id, std::move(before));
      } catch (const error& e) {
        complain(own, "tenant '" + id + "': " + e.message(), id);
      }
    }
  }

  void schedule() {
    const auto clean = from_.text("failover.scheduler.cleanup-cron").value_or(cleanup_options().cron);
    check_cron("failover.scheduler.cleanup-cron", clean);
    const auto report = from_.text("failover.scheduler.report-cron").value_or("0 0 0 * * *");
    check_cron("failover.scheduler.report-cron", report);
    set(result.engine.count_entries, from_.flag("failover.store.live-entries-gauge-enabled"));
    if (!from_.flag("failover.scheduler.enabled").value_or(true)) return;
    auto& to = result.cleanup.emplace();
    to.cron = clean;
    set(to.jitter, from_.duration("failover.scheduler.cleanup-jitter"));
    set(to.batch, from_.count("failover.scheduler.cleanup-batch"));
    set(to.lease, from_.duration("failover.scheduler.cleanup-lease"));
    to.prefix = result.store.prefix;
    // Without a log or numbers nobody would hear it; and the base may have its own times.
    const bool heard = result.engine.log || result.engine.metrics;
    const bool silent = result.engine.report_cron.empty() && result.engine.report_every.count() == 0;
    if (heard && (silent || from_.has("failover.scheduler.report-cron"))) result.engine.report_cron = report;
  }

  void advice() {
    if (result.url.empty()) return;
    const auto& scatter = result.engine.scatter;
    sql::scatter_figures figures{.deadline = std::chrono::floor<milliseconds>(scatter.timeout), .widest = scatter.parallel};
    for (const auto& name : from_.names_below("failover.points")) {
      scatter_options one = scatter;
      read_scatter(from_, "failover.points.*.scatter.", name, one);
      figures.deadline = std::min(figures.deadline, std::chrono::floor<milliseconds>(one.timeout));
      figures.widest = std::max(figures.widest, one.parallel);
    }
    for (auto& each : sql::advise(result.database.pool, figures)) result.warnings.push_back(std::move(each));
  }

  const settings& from_;
  std::vector<problem>& problems_;
};

}  // namespace

namespace {

/// The values of a file, some of which are passwords and keys. Wipes their texts.
struct file_values {
  std::vector<file_value> all;

  explicit file_values(std::vector<file_value> values) : all(std::move(values)) {}
  file_values(const file_values&) = delete;
  file_values& operator=(const file_values&) = delete;
  ~file_values() {
    for (auto& each : all) wipe_text(each);
  }
  static void wipe_text(file_value& value) {
    if (auto* text = std::get_if<std::string>(&value.is)) wipe(*text);
  }
  /// Those of points, and whether anything is enabled: what lives on knows no secrets.
  void keep_points() {
    const auto goes = [](const file_value& each) {
      return each.path.size() < 2 || (each.path[1] != "points" && each.path[1] != "enabled");
    };
    for (auto& each : all) {
      if (goes(each)) wipe_text(each);
    }
    std::erase_if(all, goes);
  }
};

}  // namespace

plan make_plan(const std::string& file, std::string_view text, engine_options base, const environment& lookup) {
  std::vector<problem> problems;
  file_values values(read_toml(text, lookup, problems));
  const settings said(values.all, problems);
  planning all(said, std::move(base), problems);
  if (!problems.empty()) {
    std::sort(problems.begin(), problems.end(), [](const problem& a, const problem& b) { return a.line < b.line; });
    constexpr std::size_t most = 50;
    std::string message;
    for (std::size_t i = 0; i < std::min(problems.size(), most); ++i) {
      if (i != 0) message.append("; ");
      if (problems[i].line != 0) message.append("line ").append(std::to_string(problems[i].line)).append(": ");
      message.append(problems[i].text);
    }
    if (problems.size() > most) message.append("; and ").append(std::to_string(problems.size() - most)).append(" more");
    throw error(errc::invalid_argument, message, {.path = file});
  }
  for (const auto& each : said.warnings()) all.result.warnings.push_back(each);
  values.keep_points();
  all.result.points = std::make_shared<point_settings>(std::make_shared<const settings>(values.all, problems), all.result.engine);
  return std::move(all.result);
}

}  // namespace HOLDFAST_NAMESPACE::config
