#include "failover/config_keys.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <utility>

namespace HOLDFAST_NAMESPACE::config {

namespace {

using enum kind;

constexpr std::string_view rejections = "discard, caller_runs, abort";
constexpr std::string_view policies = "rethrow, never_throw, custom";

constexpr std::array table{
    // The engine.
    known_key{"failover.enabled", flag, "true", "false: every point is a plain call"},
    known_key{"failover.type", choice, "basic", "how calls are run; there is one way", "basic"},
    known_key{"failover.exception-policy", choice, "rethrow", "what happens when there is nothing to serve", policies},
    known_key{"failover.key-style", choice, "escaped", "how arguments become keys; exact to share a table with Java", "escaped, exact"},
    known_key{"failover.read-deadline", duration, "1s", "of a read of the store; then there is nothing to serve"},
    known_key{"failover.max-payload", count, "16777216", "bytes of an answer; a larger one is not stored, and counted", {}, 1},
    known_key{"failover.threads", count, "16", "of each of the engine's two pools; started when needed", {}, 1},
    known_key{"failover.queue", count, "256", "calls that wait for a thread; one more is answered from the store", {}, 1},
    known_key{"failover.linger", duration, "1s", "how long the engine's destructor waits for calls and writes"},
    // The store.
    known_key{"failover.store.type", choice, "inmemory", "where answers are kept; jdbc when there is a url", "inmemory, jdbc"},
    known_key{"failover.store.url", secret, "", "the database: sqlite:, postgresql://, mysql://, h2://, odbc:, memory:"},
    known_key{"failover.store.user", text, "", "instead of the one in the url"},
    known_key{"failover.store.password", secret, "", "instead of the one in the url"},
    known_key{"failover.store.password-file", text, "", "its first line is the password"},
    known_key{"failover.store.connect-timeout", duration, "5s", "to make a connection"},
    known_key{"failover.store.statement-timeout", duration, "10s", "of one statement, also on a server that hangs"},
    known_key{"failover.store.pool.maximum", count, "20", "connections at the same time", {}, 1},
    known_key{"failover.store.pool.acquire-timeout", duration, "8s", "how long a caller waits for a connection"},
    known_key{"failover.store.table-prefix", text, "", "stands before FAILOVER_STORE, the name of the table"},
    known_key{"failover.store.create-schema", flag, "false", "make the table and its index if they are not there"},
    known_key{"failover.store.payload-column", choice, "text", "what the payload column holds", "text, bytes"},
    known_key{"failover.store.peer", choice, "none", "java: the table is shared with services that use the Java library", "none, java"},
    known_key{"failover.store.zone", text, "",
              "of time columns without one: UTC, Europe/Paris, +02:00; must be UTC on MySQL and MariaDB where the peer is java"},
    known_key{"failover.store.probe", choice, "warn", "whether the table is looked at when the store is opened", "off, warn, strict"},
    known_key{"failover.store.max-skew", duration, "5m", "how far machines' clocks may differ"},
    known_key{"failover.store.allowed-payload-classes", names, "", "classes, or packages, that may be decoded beside the registered ones"},
    known_key{"failover.store.strict-allowlist", flag, "true", "payload classes are checked before decoding; always"},
    known_key{"failover.store.async", flag, "true", "answers are written in the background"},
    known_key{"failover.store.async-executor.concurrency-limit", count, "0", "writes that may wait; 0 means 10000"},
    known_key{"failover.store.async-executor.rejection-policy", choice, "discard",
              "one write more: the oldest is dropped, the caller writes, or it is refused", rejections},
    known_key{"failover.store.inmemory.max-entries", count, "10000", "of a store in memory", {}, 1},
    known_key{"failover.store.inmemory.max-bytes", count, "268435456", "of a store in memory", {}, 1},
    known_key{"failover.store.tiered.enabled", flag, "false", "memory in front of a durable store"},
    known_key{"failover.store.tiered.freshness", duration, "10s", "for so long an entry in front is served without asking below"},
    known_key{"failover.store.tiered.max-entries", count, "10000", "in front", {}, 1},
    known_key{"failover.store.tiered.max-bytes", count, "268435456", "in front", {}, 1},
    known_key{"failover.store.encryption.enabled", flag, "false", "payloads are sealed with AES-256-GCM"},
    known_key{"failover.store.encryption.cipher", choice, "aesgcm", "there is one", "aesgcm"},
    known_key{"failover.store.encryption.key", secret, "",
              "Base64 of 32 bytes: the key `aesgcm` where the table is shared with Java, else the key `main`"},
    known_key{"failover.store.encryption.keys", secret, "", "instead: a ring, `id:base64` separated by commas, the current one first"},
    known_key{"failover.store.encryption.keys-file", text, "", "instead: a file with a ring, one key a line"},
    known_key{"failover.store.encryption.read-java", flag, "false", "also open what the Java library sealed"},
    known_key{"failover.store.encryption.read-base64", flag, "false", "also read the Java library's `ENC(b64:...)`"},
    known_key{"failover.store.encryption.read-plaintext", flag, "false", "also read what is not sealed, while a table is migrated"},
    known_key{"failover.store.live-entries-gauge-enabled", flag, "false",
              "reports also count the entries: a query for each effective name"},
    known_key{"failover.store.multitenant.enabled", flag, "false", "each tenant has its own table or schema"},
    known_key{"failover.store.multitenant.strategy", choice, "table_prefix", "how tenants are kept apart", "table_prefix, schema"},
    known_key{"failover.store.multitenant.default-tenant", text, "", "whose call it is when nobody says"},
    known_key{"failover.store.multitenant.strict", flag, "true", "tenants that are not listed are refused; always"},
    known_key{"failover.store.multitenant.tenants.*.table-prefix", text, "", "stands before the table's own prefix; `<id>_` unless given"},
    known_key{"failover.store.multitenant.tenants.*.schema", text, "", "of strategy schema; the id unless given"},
    // The schedule.
    known_key{"failover.scheduler.enabled", flag, "true", "expired entries are removed, and reports are made"},
    known_key{"failover.scheduler.cleanup-cron", text, "0 0 * * * *", "when expired entries are removed; six fields, UTC"},
    known_key{"failover.scheduler.cleanup-jitter", duration, "1m", "each cleanup is later by up to this"},
    known_key{"failover.scheduler.cleanup-batch", count, "1000", "entries removed before others get their turn", {}, 1},
    known_key{"failover.scheduler.cleanup-lease", duration, "1m", "of the one machine that cleans; 0s: each machine does"},
    known_key{"failover.scheduler.report-cron", text, "0 0 0 * * *", "when each point is reported to the log; six fields, UTC"},
    // Calls for many things at once.
    known_key{"failover.scatter.parallel", flag, "true", "slices are read at the same time"},
    known_key{"failover.scatter.timeout", duration, "10s", "of storing, and of recovering, all slices of a call together"},
    known_key{"failover.scatter.concurrency-limit", count, "0", "slices of one call at the same time; 0 means 16"},
    known_key{"failover.scatter.rejection-policy", choice, "discard", "a slice for which no thread is free is missing", "discard"},
    known_key{"failover.scatter.partial", partial, "keep", "what becomes of an answer with missing slices"},
    known_key{"failover.scatter.max-slices", count, "10000", "a call with more is not protected", {}, 1},
    known_key{"failover.scatter.unlisted", choice, "refuse", "what becomes of a list without a manifest", "refuse, serve"},
    // What is observed.
    known_key{"failover.observable.cardinality.enabled", ignored, "", "the number of points is always bounded"},
    known_key{"failover.observable.cardinality.max-apis", count, "1000", "points that an engine may have", {}, 1},
    known_key{"failover.observable.async.enabled", ignored, "", "numbers are added where the work is done, without a queue"},
    known_key{"failover.observable.async.queue-capacity", ignored, "", "numbers are added where the work is done, without a queue"},
    known_key{"failover.observable.instance.mode", ignored, "", "who collects the numbers knows the instance"},
    known_key{"failover.observable.instance.id", ignored, "", "who collects the numbers knows the instance"},
    // One point, by its name.
    known_key{"failover.points.*.enabled", flag, "true", "false: a plain call"},
    known_key{"failover.points.*.domain", text, "", "shared namespace of keys and rows; blank means the name"},
    known_key{"failover.points.*.expiry", expiry, "1h", "how long an answer may be served"},
    known_key{"failover.points.*.soft-expiry", duration, "", "younger answers are served without a call; older ones are refreshed behind"},
    known_key{"failover.points.*.exception-policy", choice, "", "instead of failover.exception-policy", policies},
    known_key{"failover.points.*.key-style", choice, "", "instead of failover.key-style", "escaped, exact"},
    known_key{"failover.points.*.key-generator", text, "", "the name of a generator; replaces the default rules"},
    known_key{"failover.points.*.vary", names, "", "dimensions of the caller that belong into the key"},
    known_key{"failover.points.*.deadline", duration, "", "the caller waits no longer"},
    known_key{"failover.points.*.late", choice, "keep", "what happens to a call that misses its deadline", "keep, cancel"},
    known_key{"failover.points.*.concurrency-limit", count, "0",
              "calls at the same time; one more is answered from the store. 0: no limit"},
    known_key{"failover.points.*.single-flight", flag, "false", "callers with the same key share one call"},
    known_key{"failover.points.*.write-behind", flag, "true", "false: the answer is stored before the caller gets it"},
    known_key{"failover.points.*.max-payload", count, "", "instead of failover.max-payload", {}, 1},
    known_key{"failover.points.*.payload-class", text, "", "what is written as PAYLOAD_CLASS"},
    known_key{"failover.points.*.retry.enabled", flag, "", "try again what failed; on when another key of retry is given"},
    known_key{"failover.points.*.retry.attempts", count, "3", "calls in all", {}, 1},
    known_key{"failover.points.*.retry.backoff", duration, "50ms", "before the second; doubles from there, with jitter"},
    known_key{"failover.points.*.retry.max-backoff", duration, "1s", "no pause is longer"},
    known_key{"failover.points.*.retry.budget", rate, "0.1", "retries for each call, in the long run"},
    known_key{"failover.points.*.breaker.enabled", flag, "", "leave a failing upstream alone; on when another key of breaker is given"},
    known_key{"failover.points.*.breaker.window", count, "100", "how many calls are looked at", {}, 1},
    known_key{"failover.points.*.breaker.minimum", count, "10", "so many must be there before it can open", {}, 1},
    known_key{"failover.points.*.breaker.failure-rate", rate, "0.5", "it opens when this part of them failed"},
    known_key{"failover.points.*.breaker.slow", duration, "", "a call that takes longer is slow"},
    known_key{"failover.points.*.breaker.slow-rate", rate, "1.0", "it opens when this part of them was slow"},
    known_key{"failover.points.*.breaker.open-for", duration, "30s", "how long the upstream is left alone"},
    known_key{"failover.points.*.breaker.probes", count, "3", "calls that are let through afterwards", {}, 1},
    known_key{"failover.points.*.scatter.parallel", flag, "", "instead of failover.scatter.parallel"},
    known_key{"failover.points.*.scatter.timeout", duration, "", "instead of failover.scatter.timeout"},
    known_key{"failover.points.*.scatter.concurrency-limit", count, "", "instead of failover.scatter.concurrency-limit"},
    known_key{"failover.points.*.scatter.partial", partial, "", "instead of failover.scatter.partial"},
    known_key{"failover.points.*.scatter.max-slices", count, "", "instead of failover.scatter.max-slices", {}, 1},
    known_key{"failover.points.*.scatter.unlisted", choice, "", "instead of failover.scatter.unlisted", "refuse, serve"},
};

constexpr std::array foreign{
    foreign_key{"failover.aspect", "there are no aspects here: use failover.enabled"},
    foreign_key{"failover.dashboard", "there is no dashboard in the engine: give engine_options::metrics a prometheus_registry"},
    foreign_key{"failover.store.caffeine", "use failover.store.inmemory.max-entries"},
};

constexpr std::array foreign_words{
    foreign_choice{"failover.type", "resilience", "give the points that need one a breaker: failover.points.<name>.breaker.enabled"},
    foreign_choice{"failover.type", "custom", "the order of a call is fixed; use the hooks of a point"},
    foreign_choice{"failover.store.type", "caffeine", "use inmemory"},
    foreign_choice{"failover.store.type", "custom", "make the store in code, and give it to holdfast::engine"},
    foreign_choice{"failover.store.encryption.cipher", "b64", "Base64 is no encryption; use aesgcm, and read-base64 for what is there"},
    foreign_choice{"failover.scatter.rejection-policy", "caller_runs", "use discard, and a larger failover.threads"},
    foreign_choice{"failover.scatter.rejection-policy", "abort", "use discard, and failover.scatter.partial = \"fail\""},
};

/// Whether a known name, with its `*`, begins with this path; `whole`: and ends with it.
bool fits(std::string_view name, const key_path& path, bool whole) {
  for (const auto& segment : path) {
    if (name.empty()) return false;
    const auto dot = std::min(name.find('.'), name.size());
    const auto word = name.substr(0, dot);
    if (word != "*" && word != segment) return false;
    name.remove_prefix(std::min(dot + 1, name.size()));
  }
  return !whole || name.empty();
}

/// The Java library keeps under `jdbc` what holds for every database here.
std::optional<key_path> without_jdbc(const key_path& path) {
  constexpr std::array<std::string_view, 5> moved{"table-prefix", "allowed-payload-classes", "strict-allowlist", "encryption",
                                                  "live-entries-gauge-enabled"};
  if (path.size() < 3 || path[0] != "failover" || path[1] != "store" || path[2] != "jdbc") return std::nullopt;
  if (path.size() > 3 && std::ranges::find(moved, path[3]) == moved.end()) return std::nullopt;
  key_path shorter = path;
  shorter.erase(shorter.begin() + 2);
  return shorter;
}

bool plain_name(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
  });
}

}  // namespace

std::span<const known_key> known_keys() noexcept { return table; }
std::span<const foreign_key> foreign_keys() noexcept { return foreign; }
std::span<const foreign_choice> foreign_choices() noexcept { return foreign_words; }

const known_key* find_key(const key_path& path) noexcept {
  if (const auto shorter = without_jdbc(path)) return find_key(*shorter);
  for (const auto& each : table) {
    if (fits(each.name, path, true)) return &each;
  }
  return nullptr;
}

bool is_section(const key_path& path) noexcept {
  if (const auto shorter = without_jdbc(path)) return is_section(*shorter);
  return std::ranges::any_of(table, [&](const known_key& each) { return fits(each.name, path, false); });
}

const foreign_key* find_foreign(const key_path& path) noexcept {
  const std::string name = dotted(path) + '.';
  for (const auto& each : foreign) {
    if (name.starts_with(each.name) && name[each.name.size()] == '.') return &each;
  }
  return nullptr;
}

std::string nearest_key(const key_path& path) {
  constexpr std::size_t longest = 128;  // nobody means a longer one
  const std::string given = dotted(path).substr(0, longest);
  std::string nearest;
  auto best = std::numeric_limits<std::size_t>::max();
  for (const auto& each : table) {
    // Compared with the path's own names in the places of `*`.
    std::string candidate;
    std::size_t at = 0;
    for (std::string_view rest = each.name; !rest.empty(); ++at) {
      const auto dot = std::min(rest.find('.'), rest.size());
      if (at != 0) candidate.push_back('.');
      if (rest.substr(0, dot) == "*" && at < path.size()) candidate.append(dotted({path[at]}), 0, longest);
      else candidate.append(rest.substr(0, dot));
      rest.remove_prefix(std::min(dot + 1, rest.size()));
    }
    if (const auto far = distance(given, candidate); far < best) {
      best = far;
      nearest = std::move(candidate);
    }
  }
  return nearest;
}

std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t changed = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = std::exchange(row[j], std::min({row[j] + 1, row[j - 1] + 1, changed}));
    }
  }
  return row[b.size()];
}

std::string dotted(const key_path& path) {
  std::string text;
  for (const auto& each : path) {
    if (!text.empty()) text.push_back('.');
    if (plain_name(each) || each == "*") text.append(each);
    else text.append(1, '"').append(each).append(1, '"');
  }
  return text;
}

}  // namespace HOLDFAST_NAMESPACE::config
