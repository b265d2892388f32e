#pragma once

/// \file
/// The options of an engine and of its points.

#include <holdfast/breaker.hpp>
#include <holdfast/clock.hpp>
#include <holdfast/executor.hpp>
#include <holdfast/failover/answer.hpp>
#include <holdfast/failover/classify.hpp>
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

/// What happens when an upstream failed and there is nothing to serve.
enum class exception_policy : std::uint8_t {
  rethrow,      ///< the upstream's own exception leaves, the same object
  never_throw,  ///< point_hooks::default_value, or an empty answer
  custom        ///< point_hooks::unserved, else engine_options::unserved, decides
};

/// Who may be served what a call stored.
enum class scope : std::uint8_t {
  by_arguments,  ///< who asks the same gets the same
  shared         ///< the same for everybody: what a point without arguments must say, unless it varies by something
};

/// What happens to a call whose caller left at the deadline.
enum class late_call : std::uint8_t {
  keep,   ///< it goes on, and its answer is stored with the as_of of its start
  cancel  ///< its stop token is told; an answer that comes all the same is stored
};

/// Tries again what failed and may be recovered from. Only for calls that may be repeated.
struct retry_options {
  unsigned attempts = 3;                                              ///< calls in all
  std::chrono::microseconds backoff = std::chrono::milliseconds(50);  ///< before the second; doubles from there, with full jitter
  std::chrono::microseconds max_backoff = std::chrono::seconds(1);    ///< no pause is longer
  double budget = 0.1;                                                ///< retries for each call, in the long run
  double reserve = 10;                                                ///< retries that may be saved up
};

/// One protected call.
struct point_options {
  std::string domain{};                                    ///< shared namespace of keys and rows; blank means the name
  holdfast::expiry expiry{};                               ///< how long an answer may be served; an hour
  std::optional<std::chrono::microseconds> soft_expiry{};  ///< younger answers are served without a call; older ones are refreshed behind
  bool enabled = true;                                     ///< false: the call as if it were not protected
  std::optional<key::style> key_style{};                   ///< instead of the engine's
  std::string key_generator{};                             ///< the name of a generator; replaces the default rules
  std::vector<std::string> vary{};                         ///< dimensions of the caller that belong into the key: "user", "locale"
  holdfast::scope scope = scope::by_arguments;             ///< see there
  failure_rules classify{};                                ///< which failures are recovered from
  std::optional<holdfast::exception_policy> exception_policy{};  ///< instead of the engine's
  std::optional<std::chrono::microseconds> deadline{};           ///< the caller waits no longer; the call runs on the executor then
  late_call late = late_call::keep;                              ///< what happens to a call that misses it
  std::optional<retry_options> retry{};                          ///< none unless given
  std::optional<breaker_options> breaker{};                      ///< none unless given
  std::size_t concurrency_limit = 0;         ///< calls at the same time; one more is answered from the store. 0: no limit
  bool single_flight = false;                ///< callers with the same key share one call
  std::optional<bool> write_behind{};        ///< false: the answer is stored before the caller gets it; not on a store with a queue
  std::size_t max_payload = 0;               ///< bytes; a larger answer is not stored, and counted. 0: the engine's
  std::string payload_class{};               ///< what is written as PAYLOAD_CLASS; else the registry's name, else the type's
  std::optional<scatter_options> scatter{};  ///< of calls for many things at once; instead of the engine's
};

/// Carries a caller's context to another thread: called on the caller's thread, it gives a function that runs work within that context.
using context_propagator = std::function<std::function<void(const std::function<void()>& work)>()>;

struct engine_options {
  std::shared_ptr<const holdfast::clock> clock{};       ///< the machine's unless given
  std::shared_ptr<holdfast::executor> executor{};       ///< for calls with a deadline and refreshes; a pool of its own unless given
  std::shared_ptr<holdfast::executor> read_executor{};  ///< for reads of the store; `executor` if that was given, else a pool of its own
  std::size_t threads = 16;                             ///< of its own pools, each; started when needed
  std::size_t queue = 256;                              ///< calls that wait for one of them; one more is answered from the store
  log_sink log{};                                       ///< nobody is told unless given
  std::shared_ptr<metrics_sink> metrics{};              ///< nothing is counted for others unless given
  key::style key_style = key::style::escaped;           ///< a store with a Java peer makes it `exact`
  key::row_hash hash = key::row_hash::md5;              ///< of the row's key
  std::string secret{};                                 ///< of row_hash::blake2b
  key::generators generators{};                         ///< that points may name
  holdfast::expiry_policies expiry_policies{};          ///< that points may name
  holdfast::exception_policy exception_policy = exception_policy::rethrow;  ///< of points that do not say
  /// For exception_policy::custom: told what was not served. What it throws leaves; when it returns, the answer is empty.
  std::function<void(std::string_view point, const provenance& from)> unserved{};
  bool write_behind = true;  ///< write in the background where a store may wait, unless the store does so by itself
  /// How writes wait; a caller never does unless it is told to. Not looked at when the store writes behind by itself: then its own options
  /// hold, by default a caller who finds the queue full waits 100 ms. Its clock, log, metrics, max_skew and linger are the engine's.
  write_behind_options queue_of_writes{.full = when_full::drop_oldest};
  std::chrono::microseconds read_deadline = std::chrono::seconds(1);  ///< of a read of the store; then there is nothing to serve
  payload_registry payloads{};                                        ///< the names of payload types, and what else may be decoded
  std::size_t max_payload = std::size_t{16} << 20;                    ///< bytes of an answer
  std::size_t recents = 16384;                                        ///< keys for which no answer older than one already served is served
  std::size_t max_points = 1000;                                      ///< so that ad hoc names cannot grow without bound
  std::vector<context_propagator> propagate{};                        ///< the first is the outermost
  /// The realm of the caller, asked on the caller's thread, once per call. What it throws makes the call an unprotected one.
  std::function<std::string()> tenant{};
  /// The caller's value of a dimension that a point varies by, asked on the caller's thread. Nothing makes the call an unprotected one.
  std::function<std::optional<std::string>(std::string_view dimension)> vary{};
  std::chrono::microseconds max_skew = std::chrono::minutes(5);  ///< a clock set back by more is followed; see docs/failover.md
  std::chrono::milliseconds report_every{0};                     ///< one line per point for the log, and fresh gauges; 0: never
  std::string report_cron{};                                     ///< the same at these moments (six fields, UTC), instead of `report_every`
  std::chrono::milliseconds linger = std::chrono::seconds(1);    ///< how long the destructor waits for calls and writes
  scatter_options scatter{};                                     ///< of calls for many things at once, of points that do not say
  bool count_entries = false;  ///< a report also counts the entries of a store that has to be asked: a query for each effective name
  /// Has the last word on the options of a point before it is registered: configuration by name. What it throws leaves `protect`.
  std::function<void(std::string_view point, point_options& options)> configure{};
};

}  // namespace HOLDFAST_NAMESPACE
