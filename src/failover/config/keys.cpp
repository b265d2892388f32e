#include "failover/config/keys.hpp"

#include "failover/config/key_table.hpp"

#include <algorithm>
#include <array>
#include <optional>

namespace HOLDFAST_NAMESPACE::detail::failover::config {

namespace {

using enum value_kind;

constexpr std::string_view rejections = "discard, caller_runs, abort";
constexpr std::string_view policies = "rethrow, never_throw, custom";

/// A key of kind `count` with the minimum 1.
constexpr known_key at_least_1(std::string_view name, std::string_view default_value,
                               std::string_view description) {
  return {name, count, default_value, description, {}, 1};
}

constexpr std::array table{
    // The engine.
    known_key{"failover.enabled", flag, "true",
              "false: all points call the upstream without protection"},
    known_key{"failover.type", choice, "basic", "kind of execution; there is only one", "basic"},
    known_key{"failover.exception-policy", choice, "rethrow",
              "what happens when there is nothing to serve", policies},
    known_key{"failover.key-style", choice, "escaped",
              "how arguments become keys; exact to share a table with Java", "escaped, exact"},
    known_key{"failover.read-deadline", duration, "1s",
              "time limit for reading the store; after it, there is nothing to serve"},
    at_least_1("failover.max-payload", "16777216",
               "maximum size of an answer in bytes; larger answers are not stored"),
    at_least_1("failover.threads", "64",
               "for calls with a deadline, and as many for reads; started when needed"),
    at_least_1("failover.queue", "4096",
               "calls that may wait for a thread; further calls are answered from the store"),
    known_key{"failover.linger", duration, "1s",
              "how long the engine's destructor waits for calls and writes"},
    // The store.
    known_key{"failover.store.type", choice, "inmemory",
              "where answers are kept; jdbc when there is a url", "inmemory, jdbc"},
    known_key{"failover.store.url", secret, "",
              "the database: sqlite:, postgresql://, mysql://, h2://, odbc:, memory:"},
    known_key{"failover.store.user", text, "", "instead of the one in the url"},
    known_key{"failover.store.password", secret, "", "instead of the one in the url"},
    known_key{"failover.store.password-file", text, "", "its first line is the password"},
    known_key{"failover.store.connect-timeout", duration, "5s", "time limit for a new connection"},
    known_key{"failover.store.statement-timeout", duration, "10s",
              "time limit for one statement, even if the server hangs"},
    at_least_1("failover.store.pool.maximum", "20", "maximum number of connections"),
    known_key{"failover.store.pool.acquire-timeout", duration, "8s",
              "how long a caller waits for a connection"},
    known_key{"failover.store.pool.leak-detection", duration, "15s",
              "a connection that is in use for longer is logged with the operation; 0 disables it"},
    known_key{"failover.store.pool.max-lifetime", duration, "30m",
              "an older connection is replaced; 0 disables it"},
    known_key{"failover.store.pool.idle-timeout", duration, "10m",
              "a connection that was idle for longer is closed; 0 disables it"},
    known_key{"failover.store.pool.validate-after", duration, "1s",
              "a connection that was idle for longer must answer a ping before it is used; 0 "
              "disables it"},
    known_key{"failover.store.pool.validation-timeout", duration, "500ms",
              "how long the answer to that ping may take"},
    known_key{"failover.store.pool.keepalive", duration, "30s",
              "idle time after which TCP probes a connection; 0 leaves it to the system"},
    known_key{"failover.store.table-prefix", text, "", "prefix of the table name FAILOVER_STORE"},
    known_key{"failover.store.create-schema", flag, "false",
              "create the table and its index if they do not exist"},
    known_key{"failover.store.payload-column", choice, "text", "type of the payload column",
              "text, bytes"},
    known_key{"failover.store.peer", choice, "none",
              "java: the table is shared with services that use the Java library", "none, java"},
    known_key{"failover.store.zone", text, "",
              "time zone of columns without one: UTC, Europe/Paris, +02:00; must be UTC on MySQL "
              "and MariaDB if the peer is java"},
    known_key{"failover.store.probe", choice, "warn", "check of the table when the store is opened",
              "off, warn, strict"},
    known_key{"failover.store.start", choice, "background",
              "require: do not start if the database cannot be reached or the probe refuses the "
              "table",
              "background, require"},
    known_key{"failover.store.max-skew", duration, "5m",
              "maximum difference between the clocks of machines"},
    known_key{"failover.store.allowed-payload-classes", names, "",
              "classes or packages that may be decoded in addition to the registered ones"},
    known_key{"failover.store.strict-allowlist", flag, "true",
              "payload classes are always checked before decoding"},
    known_key{"failover.store.async", flag, "true", "answers are written in the background"},
    known_key{"failover.store.async-executor.concurrency-limit", count, "0",
              "maximum number of queued writes; 0 means 10000"},
    known_key{
        "failover.store.async-executor.rejection-policy", choice, "discard",
        "if the queue is full: drop the oldest write, let the caller write, or refuse the write",
        rejections},
    at_least_1("failover.store.inmemory.max-entries", "10000", "of a store in memory"),
    at_least_1("failover.store.inmemory.max-bytes", "268435456", "of a store in memory"),
    known_key{"failover.store.tiered.enabled", flag, "false", "memory in front of a durable store"},
    known_key{"failover.store.tiered.freshness", duration, "10s",
              "how long an entry in memory is served without reading the durable store"},
    at_least_1("failover.store.tiered.max-entries", "10000", "of the memory in front of the store"),
    at_least_1("failover.store.tiered.max-bytes", "268435456",
               "of the memory in front of the store"),
    known_key{"failover.store.encryption.enabled", flag, "false",
              "payloads are encrypted with AES-256-GCM"},
    known_key{"failover.store.encryption.cipher", choice, "aesgcm", "there is only one", "aesgcm"},
    known_key{"failover.store.encryption.key", secret, "",
              "Base64 of 32 bytes: the key `aesgcm` if the table is shared with Java, else the key "
              "`main`"},
    known_key{"failover.store.encryption.keys", secret, "",
              "instead of key: a key ring, `id:base64` separated by commas, the current key first"},
    known_key{"failover.store.encryption.keys-file", text, "",
              "instead of key: a file with a key ring, one key per line"},
    known_key{"failover.store.encryption.read-java", flag, "false",
              "also decrypt payloads of the Java library"},
    known_key{"failover.store.encryption.read-base64", flag, "false",
              "also read the Java library's `ENC(b64:...)`"},
    known_key{"failover.store.encryption.read-plaintext", flag, "false",
              "also read payloads that are not encrypted, while a table is migrated"},
    known_key{"failover.store.live-entries-gauge-enabled", flag, "false",
              "reports also count the entries, with one query per effective name"},
    known_key{"failover.store.multitenant.enabled", flag, "false",
              "each tenant has its own table or schema"},
    known_key{"failover.store.multitenant.strategy", choice, "table_prefix",
              "how tenants are separated", "table_prefix, schema"},
    known_key{"failover.store.multitenant.default-tenant", text, "", "tenant of calls without one"},
    known_key{"failover.store.multitenant.strict", flag, "true",
              "tenants that are not listed are always refused"},
    known_key{"failover.store.multitenant.tenants.*.table-prefix", text, "",
              "prepended to failover.store.table-prefix; default `<id>_`"},
    known_key{"failover.store.multitenant.tenants.*.schema", text, "",
              "for strategy schema; default: the id"},
    // Cleanup and reports.
    known_key{"failover.scheduler.enabled", flag, "true",
              "remove expired entries and make reports"},
    known_key{"failover.scheduler.cleanup-cron", text, "0 0 * * * *",
              "when expired entries are removed; six fields, UTC"},
    known_key{"failover.scheduler.cleanup-jitter", duration, "1m",
              "maximum random delay of a cleanup"},
    at_least_1("failover.scheduler.cleanup-batch", "1000", "entries removed with one statement"),
    known_key{"failover.scheduler.cleanup-lease", duration, "1m",
              "lease of the one machine that cleans; 0s: every machine cleans"},
    known_key{"failover.scheduler.report-cron", text, "0 0 0 * * *",
              "when each point is reported to the log; six fields, UTC"},
    // Scattered calls.
    known_key{"failover.scatter.parallel", flag, "true", "slices are read at the same time"},
    known_key{"failover.scatter.timeout", duration, "10s",
              "time limit for storing all slices of a call, and for recovering them"},
    known_key{"failover.scatter.concurrency-limit", count, "0",
              "slices of one call that are read at the same time; 0 means 16"},
    known_key{"failover.scatter.rejection-policy", choice, "discard",
              "a slice is missing if no thread is free", "discard"},
    known_key{"failover.scatter.partial", partial, "keep",
              "policy for an answer with missing slices"},
    at_least_1("failover.scatter.max-slices", "10000", "a call with more is not protected"),
    known_key{"failover.scatter.unlisted", choice, "refuse", "policy for a list without a manifest",
              "refuse, serve"},
    // Metrics.
    known_key{"failover.observable.cardinality.enabled", ignored, "",
              "the number of points is always bounded"},
    at_least_1("failover.observable.cardinality.max-apis", "1000", "maximum number of points"),
    known_key{"failover.observable.async.enabled", ignored, "",
              "counters are updated directly, without a queue"},
    known_key{"failover.observable.async.queue-capacity", ignored, "",
              "counters are updated directly, without a queue"},
    known_key{"failover.observable.instance.mode", ignored, "",
              "the metrics collector knows the instance"},
    known_key{"failover.observable.instance.id", ignored, "",
              "the metrics collector knows the instance"},
    // Points, by name.
    known_key{"failover.points.*.enabled", flag, "true",
              "false: call the upstream without protection"},
    known_key{"failover.points.*.domain", text, "",
              "namespace of keys and rows; blank means the name of the point"},
    known_key{"failover.points.*.expiry", expiry, "1h", "how long an answer may be served"},
    known_key{"failover.points.*.expiry-jitter", rate, "0",
              "shortens the expiry of each answer by a random part, up to this fraction"},
    known_key{"failover.points.*.serve-older", flag, "false",
              "true: an answer may be served although a newer one was stored before"},
    known_key{
        "failover.points.*.soft-expiry", duration, "",
        "younger answers are served without a call; older ones are refreshed in the background"},
    known_key{"failover.points.*.exception-policy", choice, "",
              "instead of failover.exception-policy", policies},
    known_key{"failover.points.*.key-style", choice, "", "instead of failover.key-style",
              "escaped, exact"},
    known_key{"failover.points.*.key-generator", text, "",
              "the name of a generator; replaces the default rules"},
    known_key{"failover.points.*.vary", names, "",
              "dimensions of the caller that are part of the key"},
    known_key{"failover.points.*.deadline", duration, "", "maximum time a caller waits"},
    known_key{"failover.points.*.soft-timeout", duration, "",
              "after it a stored answer is served if there is one; shorter than the deadline"},
    known_key{"failover.points.*.late", choice, "keep",
              "what happens to a call that misses its deadline", "keep, cancel"},
    known_key{"failover.points.*.concurrency-limit", count, "0",
              "maximum number of concurrent calls; further calls are answered from the store. 0: "
              "no limit"},
    known_key{"failover.points.*.single-flight", flag, "false",
              "callers with the same key share one call"},
    known_key{"failover.points.*.write-behind", flag, "true",
              "false: the answer is stored before the caller gets it"},
    at_least_1("failover.points.*.max-payload", "", "instead of failover.max-payload"),
    known_key{"failover.points.*.payload-class", text, "", "PAYLOAD_CLASS of stored entries"},
    known_key{"failover.points.*.retry.enabled", flag, "",
              "retry failed calls; on if another key of retry is given"},
    at_least_1("failover.points.*.retry.attempts", "3",
               "maximum number of attempts, including the first"),
    known_key{"failover.points.*.retry.backoff", duration, "50ms",
              "maximum pause before the second attempt; doubles with each attempt, with jitter"},
    known_key{"failover.points.*.retry.max-backoff", duration, "1s", "upper bound of all pauses"},
    known_key{"failover.points.*.retry.budget", rate, "0.1", "retries per call, on average"},
    known_key{"failover.points.*.breaker.enabled", flag, "",
              "stop calling a failing upstream; on if another key of breaker is given"},
    at_least_1("failover.points.*.breaker.window", "100", "number of recent calls that count"),
    at_least_1("failover.points.*.breaker.minimum", "10", "number of calls before it can open"),
    known_key{"failover.points.*.breaker.failure-rate", rate, "0.5",
              "it opens if this fraction of calls failed"},
    known_key{"failover.points.*.breaker.slow", duration, "", "a call that takes longer is slow"},
    known_key{"failover.points.*.breaker.slow-rate", rate, "1.0",
              "it opens if this fraction of calls was slow"},
    known_key{"failover.points.*.breaker.open-for", duration, "30s", "how long it stays open"},
    at_least_1("failover.points.*.breaker.probes", "3", "number of trial calls after that"),
    known_key{"failover.points.*.scatter.parallel", flag, "",
              "instead of failover.scatter.parallel"},
    known_key{"failover.points.*.scatter.timeout", duration, "",
              "instead of failover.scatter.timeout"},
    known_key{"failover.points.*.scatter.concurrency-limit", count, "",
              "instead of failover.scatter.concurrency-limit"},
    known_key{"failover.points.*.scatter.partial", partial, "",
              "instead of failover.scatter.partial"},
    at_least_1("failover.points.*.scatter.max-slices", "",
               "instead of failover.scatter.max-slices"),
    known_key{"failover.points.*.scatter.unlisted", choice, "",
              "instead of failover.scatter.unlisted", "refuse, serve"},
};

constexpr std::array foreign{
    foreign_key{"failover.aspect", "there are no aspects; use failover.enabled"},
    foreign_key{"failover.dashboard",
                "there is no dashboard in the engine; set engine_options::metrics to a "
                "prometheus_registry"},
    foreign_key{"failover.store.caffeine", "use failover.store.inmemory.max-entries"},
};

constexpr std::array foreign_words{
    foreign_choice{
        "failover.type", "resilience",
        "give the points that need one a breaker: failover.points.<name>.breaker.enabled"},
    foreign_choice{"failover.type", "custom",
                   "the order of a call is fixed; use the hooks of a point"},
    foreign_choice{"failover.store.type", "caffeine", "use inmemory"},
    foreign_choice{"failover.store.type", "custom",
                   "create the store in code and pass it to holdfast::engine"},
    foreign_choice{"failover.store.encryption.cipher", "b64",
                   "Base64 is not encryption; use aesgcm, and read-base64 for existing rows"},
    foreign_choice{"failover.scatter.rejection-policy", "caller_runs",
                   "use discard, and a larger failover.threads"},
    foreign_choice{"failover.scatter.rejection-policy", "abort",
                   "use discard, and failover.scatter.partial = \"fail\""},
};

/// The Java library has these keys under `jdbc`; here they apply to every database.
std::optional<key_path> without_jdbc(const key_path& path) {
  constexpr std::array<std::string_view, 5> moved{"table-prefix", "allowed-payload-classes",
                                                  "strict-allowlist", "encryption",
                                                  "live-entries-gauge-enabled"};
  if (path.size() < 3 || path[0] != "failover" || path[1] != "store" || path[2] != "jdbc")
    return std::nullopt;
  if (path.size() > 3 && std::ranges::find(moved, path[3]) == moved.end()) return std::nullopt;
  key_path shorter = path;
  shorter.erase(shorter.begin() + 2);
  return shorter;
}

bool is_bare_name(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_';
  });
}

}  // namespace

std::span<const known_key> known_keys() noexcept { return table; }
std::span<const foreign_choice> foreign_choices() noexcept { return foreign_words; }

const known_key* find_key(const key_path& path) noexcept {
  const auto shorter = without_jdbc(path);
  return find_in(known_keys(), shorter ? *shorter : path);
}

bool is_section(const key_path& path) noexcept {
  const auto shorter = without_jdbc(path);
  return has_section(known_keys(), shorter ? *shorter : path);
}

const foreign_key* find_foreign(const key_path& path) noexcept {
  const std::string name = dotted(path) + '.';
  for (const auto& key : foreign) {
    if (name.starts_with(key.name) && name[key.name.size()] == '.') return &key;
  }
  return nullptr;
}

std::string nearest_key(const key_path& path) { return nearest_in(known_keys(), path); }

std::string dotted(const key_path& path) {
  std::string text;
  for (const auto& segment : path) {
    if (!text.empty()) text.push_back('.');
    if (is_bare_name(segment) || segment == "*") text.append(segment);
    else text.append(1, '"').append(segment).append(1, '"');
  }
  return text;
}

}  // namespace HOLDFAST_NAMESPACE::detail::failover::config
