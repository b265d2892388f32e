#pragma once

/// \file
/// Options of engines and points.

#include <holdfast/breaker.hpp>
#include <holdfast/clock.hpp>
#include <holdfast/executor.hpp>
#include <holdfast/failover/answer.hpp>
#include <holdfast/failover/classify.hpp>
#include <holdfast/failover/decision.hpp>
#include <holdfast/failover/expiry.hpp>
#include <holdfast/failover/scatter.hpp>
#include <holdfast/key/failover.hpp>
#include <holdfast/log.hpp>
#include <holdfast/metrics.hpp>
#include <holdfast/payload.hpp>
#include <holdfast/store/write_behind.hpp>
#include <holdfast/version.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace HOLDFAST_NAMESPACE {

/// What to do if the upstream failed and the store has nothing to serve.
enum class exception_policy : std::uint8_t {
  rethrow,      ///< rethrow the exception of the upstream, the same object
  never_throw,  ///< return point_hooks::default_value, or an empty answer
  custom        ///< call point_hooks::unserved, else engine_options::unserved
};
/// The name of the enumerator, for example `rethrow`. Does not change between versions.
[[nodiscard]] HOLDFAST_API std::string_view to_string(exception_policy policy) noexcept;

/// Which callers share stored answers.
enum class scope : std::uint8_t {
  by_arguments,  ///< callers with the same arguments
  /// All callers. Required for a point without arguments, unless it varies by a dimension.
  shared
};
/// The name of the enumerator, for example `by_arguments`. Does not change between versions.
[[nodiscard]] HOLDFAST_API std::string_view to_string(scope sharing) noexcept;

/// What to do with a call that missed its deadline.
enum class late_call : std::uint8_t {
  keep,   ///< let it run and store its answer, with the as_of of its start
  cancel  ///< trigger its stop token; if it still answers, store the answer
};
/// The name of the enumerator, for example `keep`. Does not change between versions.
[[nodiscard]] HOLDFAST_API std::string_view to_string(late_call policy) noexcept;

/// Retries of calls that failed with an exception that may be recovered from. Use it only for calls
/// that are safe to repeat.
struct retry_options {
  /// Maximum number of attempts, including the first.
  unsigned attempts = 3;
  /// Maximum pause before the second attempt. Doubles with each attempt; the pause is random
  /// between zero and this limit (full jitter).
  std::chrono::microseconds backoff = std::chrono::milliseconds(50);
  /// Upper bound of all pauses.
  std::chrono::microseconds max_backoff = std::chrono::seconds(1);
  /// Retries per call, on average. Limits the extra load during an outage.
  double budget = 0.1;
  /// Maximum number of retries that calls without failures can save up.
  double reserve = 10;
};

/// Options of one point.
struct point_options {
  /// Namespace of keys and rows, shared by all points of the domain. Blank: the name of the point.
  std::string domain{};
  /// How long an answer may be served.
  holdfast::expiry expiry{};
  /// Answers younger than this are served without a call. Older answers are served and refreshed in
  /// the background.
  std::optional<std::chrono::microseconds> soft_expiry{};
  /// Shortens the expiry of each answer by a random part, up to this fraction of it, so that the
  /// answers of a domain do not expire at the same time. From 0 to 1.
  double expiry_jitter = 0;
  /// True: a stored answer may be older than one that was stored later. Otherwise such an answer
  /// is not served.
  bool serve_older = false;
  /// False: calls go straight to the upstream, without protection.
  bool enabled = true;
  /// Overrides engine_keys::style.
  std::optional<key::style> key_style{};
  /// Name of a generator in engine_keys::generators. Replaces the default key rules.
  std::string key_generator{};
  /// Properties of the caller that are part of the key, for example "user" or "locale". The engine
  /// gets their values from engine_caller::vary.
  std::vector<std::string> vary{};
  holdfast::scope scope = scope::by_arguments;
  /// Decides which exceptions are answered from the store.
  failure_rules classify{};
  /// Overrides engine_options::exception_policy.
  std::optional<holdfast::exception_policy> exception_policy{};
  /// Maximum time a caller waits, for the upstream, its retries and the recovery together. Such
  /// calls run on the threads of the engine. A part of the time is reserved for the recovery: twice
  /// what the store needed lately (50 ms until that is known), at most a quarter.
  std::optional<std::chrono::microseconds> deadline{};
  /// After this time a stored answer is served if there is one; otherwise the caller waits until
  /// the deadline. Requires a deadline that is longer.
  std::optional<std::chrono::microseconds> soft_timeout{};
  /// What to do with calls that miss the deadline.
  late_call late = late_call::keep;
  std::optional<retry_options> retry{};      ///< no retries by default
  std::optional<breaker_options> breaker{};  ///< no breaker by default
  /// Maximum number of concurrent calls. Further calls are answered from the store. 0: no limit.
  std::size_t concurrency_limit = 0;
  /// Callers with the same key share one call of the upstream.
  bool single_flight = false;
  /// False: an answer is stored before the caller gets it. Not possible if the store of the engine
  /// already has a write-behind queue.
  std::optional<bool> write_behind{};
  /// Maximum size of a payload in bytes. Larger answers are not stored. 0: the limit of the engine.
  std::size_t max_payload = 0;
  /// PAYLOAD_CLASS of stored entries. Default: the registered name of the type, else a name derived
  /// from the type.
  std::string payload_class{};
  /// Overrides engine_options::scatter.
  std::optional<scatter_options> scatter{};
};

/// Transfers context of the calling thread (for example a trace id) to another thread. The engine
/// calls it on the thread of the caller; the function that it returns runs work in that context.
using context_propagator = std::function<std::function<void(const std::function<void()>& work)>()>;

/// The threads of an engine. They are started when they are needed. Calls with a deadline, reads of
/// a store that may block, and refreshes have threads of their own; see "Threads" in
/// docs/failover.md.
struct engine_threads {
  /// Runs refreshes and reports. Default: threads of the engine.
  std::shared_ptr<holdfast::executor> executor{};
  /// Calls with a deadline whose callers wait, and separately reads whose callers wait. A point has
  /// at most as many of them as stay free for the other points. While other points hang there may
  /// be up to twice as many, and one for each point. Calls that miss their deadline and go on
  /// running do not count, up to three times this number.
  std::size_t count = 64;
  /// Calls, and separately reads, that may wait for a thread. A call that cannot be expected to end
  /// in time does not wait. Further calls are answered from the store.
  std::size_t queue = 4096;
  /// Context propagators; the first is the outermost.
  std::vector<context_propagator> propagate{};
};

/// How arguments become keys.
struct engine_keys {
  /// A store with a Java peer sets it to `exact`.
  key::style style = key::style::escaped;
  key::row_hash hash = key::row_hash::md5;  ///< hash function of row keys
  std::string secret{};                     ///< key of row_hash::blake2b
  key::generators generators{};             ///< key generators that points can name
};

/// How answers are stored and read.
struct engine_storage {
  /// Write-behind queue in front of a store that may block. It drops the oldest write when it is
  /// full, so a caller never waits. The engine sets its clock, log, metrics, max_skew and linger.
  /// Empty: no queue. Not used if the store has a queue of its own: by default a caller waits up to
  /// 100 ms when that one is full.
  std::optional<write_behind_options> write_behind =
      write_behind_options{.full = when_full::drop_oldest};
  /// Time limit for reading the store during a recovery. After it, there is nothing to serve.
  std::chrono::microseconds read_deadline = std::chrono::seconds(1);
  /// Names of payload types, and further payload classes that may be decoded.
  payload_registry payloads{};
  /// Maximum size of a payload in bytes. Larger answers are not stored.
  std::size_t max_payload = std::size_t{16} << 20;
  /// Number of keys for which the engine remembers the newest answer it stored, so that it never
  /// serves an older one afterwards.
  std::size_t remembered = 16384;
  /// If the clock is set back by more than this, the engine follows it; see docs/failover.md.
  std::chrono::microseconds max_skew = std::chrono::minutes(5);
};

/// What the engine asks about a caller, on the caller's thread, once per call.
struct engine_caller {
  /// Returns the realm of the caller. If it throws, the call is not protected.
  std::function<std::string()> tenant{};
  /// Returns the caller's value of a dimension in point_options::vary. If it returns nothing, the
  /// call is not protected.
  std::function<std::optional<std::string>(std::string_view dimension)> vary{};
};

/// Reports: one log line per point, and updated gauges.
struct engine_reports {
  /// Interval of reports. 0: no reports.
  std::chrono::milliseconds every{0};
  /// Cron expression for reports (six fields, UTC). Replaces `every`.
  std::string cron{};
  /// Also counts the entries of a store that may block: one query per effective name.
  bool count_entries = false;
};

/// What the engine records about its calls, for operators; see "See why" in docs/failover.md. If
/// nothing is set, calls do not pay for it.
struct engine_insight {
  /// Called for every answer that is not live, for every call without an answer, and for a sample
  /// of the live ones. Runs on the thread of the call, before the caller gets the answer, so it
  /// must not wait. Use decision_log::record.
  std::function<void(const decision&)> on_decision{};
  /// Samples the keys of calls for engine::outlook, and checks for a sample of the calls whether a
  /// kept answer could have served them, for engine::coverage. A check reads the store.
  bool coverage = false;
  /// The sample: one of so many live calls is reported and checked. 0: none.
  std::uint32_t sample = 100;
};

/// Options of an engine.
struct engine_options {
  std::shared_ptr<const holdfast::clock> clock{};  ///< default: the system clock
  log_sink log{};                                  ///< no log by default
  std::shared_ptr<metrics_sink> metrics{};         ///< no metrics by default
  engine_threads threads{};
  engine_keys keys{};
  engine_storage storage{};
  engine_caller caller{};
  engine_reports reports{};
  engine_insight insight{};
  holdfast::expiry_policies expiry_policies{};  ///< expiry policies that points can name
  /// Default policy of points.
  holdfast::exception_policy exception_policy = exception_policy::rethrow;
  /// For exception_policy::custom: called if there is nothing to serve. If it returns, the answer
  /// is empty; if it throws, the exception reaches the caller.
  std::function<void(std::string_view point, const provenance& provenance)> unserved{};
  /// Default options of scattered calls.
  scatter_options scatter{};
  /// Maximum number of points. Bounds the memory that engine::call can use with new names.
  std::size_t max_points = 1000;
  /// How long the destructor waits for calls and writes.
  std::chrono::milliseconds linger = std::chrono::seconds(1);
  /// Changes the options of a point before it is registered, for configuration by name. Exceptions
  /// leave `protect`.
  std::function<void(std::string_view point, point_options& options)> configure{};
};

}  // namespace HOLDFAST_NAMESPACE
