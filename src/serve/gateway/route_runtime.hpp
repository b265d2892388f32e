#pragma once

/// \file
/// What all loops share: the points of the routes, the workers for what may wait, and the requests
/// that are made for several clients at once.

#include <holdfast/clock.hpp>
#include <holdfast/executor.hpp>
#include <holdfast/failover/decision.hpp>
#include <holdfast/failover/engine.hpp>
#include <holdfast/log.hpp>
#include <holdfast/metrics.hpp>
#include <holdfast/version.hpp>

#include "failover/retry.hpp"
#include "net/dialer.hpp"
#include "net/tls.hpp"
#include "serve/access_log.hpp"
#include "serve/gateway/answer_status.hpp"
#include "serve/gateway/point_value.hpp"
#include "serve/gateway/route.hpp"
#include "serve/gateway/route_key.hpp"
#include "serve/gateway/shared_requests.hpp"

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::serve::gateway {

/// How a request ended, for metrics and the access log.
enum class outcome : std::uint8_t {
  live,      ///< the upstream's answer
  stale,     ///< a kept answer, because the upstream failed or was not asked
  fresh,     ///< a kept answer within its soft expiry, or for only-if-cached
  unserved,  ///< the upstream failed, and nothing could be given instead
  refused,   ///< the request itself was refused
  cut        ///< the answer was cut after a part of it was sent
};
inline constexpr std::size_t outcome_count = 6;
[[nodiscard]] std::string_view to_string(outcome result) noexcept;

/// Where a server of a route is.
struct upstream_target {
  /// As configured.
  std::string url{};
  /// `host:port`.
  std::string address{};
  /// Value of Host.
  std::string host{};
  bool secure = false;
  /// Empty if the name could not be resolved yet.
  std::vector<net::socket_address> addresses{};
};
/// Throws errc::invalid_argument if the URL is not `http://host:port` or `https://host:port`.
[[nodiscard]] upstream_target parse_upstream(const std::string& url);

struct route_runtime {
  route_runtime(const route& configured, std::size_t position, const engine& owner,
                route_point registered);

  const route& rules;
  /// In gateway_runtime::routes.
  std::size_t index;
  route_point point;
  /// As the configuration file says.
  point_options options;
  std::vector<upstream_target> targets{};
  std::unique_ptr<failover::retry_plan> retry{};
  std::chrono::microseconds deadline{};
  /// By outcome.
  std::array<std::shared_ptr<metrics::counter>, outcome_count> counters{};
  /// An answer with a validator was kept, so that it is worth to look for one.
  std::atomic<bool> has_validators{false};

  /// Why the point refuses a call, as `detail` of Cache-Status says it.
  [[nodiscard]] std::string_view refusal_detail(const engine& owner) const;
  /// Called with the fields of an answer that is kept.
  void note_validators(const response_fields& fields) noexcept {
    if (!has_validators.load(std::memory_order_relaxed) &&
        (fields.has("etag") || fields.has("last-modified")))
      has_validators.store(true, std::memory_order_relaxed);
  }
};

/// A kept response that a client may have.
struct kept_response {
  stored_response response{};
  kept_answer_facts facts{};
};

/// A target whose kept answers are not valid any more.
struct invalidation {
  const route_runtime* target = nullptr;
  std::vector<std::string> key_texts{};
  /// The target for people.
  std::string masked{};
};

/// A request that was answered. Valid during the call.
struct answered_call {
  route_runtime& target;
  std::string_view method{};
  std::string_view path{};
  std::string_view address{};
  int status = 0;
  std::size_t received = 0;
  std::uint64_t sent = 0;
  std::chrono::microseconds duration{};
  outcome result = outcome::live;
};

/// What a recovery gave.
struct recovery_result {
  std::optional<kept_response> kept{};
  /// Why nothing is served: `not-found`, `expired`, `forbidden-by=must-revalidate`.
  std::string refusal{};
};

struct gateway_request;

struct runtime_options {
  std::vector<route> routes{};
  std::shared_ptr<holdfast::engine> engine{};
  std::shared_ptr<decision_log> decisions{};
  std::shared_ptr<const holdfast::clock> clock{};
  log_sink log{};
  std::shared_ptr<metrics_sink> metrics{};
  /// Null: none. Must outlive the runtime.
  access_log* access = nullptr;
  std::string secret{};
  /// Of the payload column.
  payload_form form = payload_form::bytes;
  /// The queue of the engine never lets its caller wait.
  bool queue_never_waits = true;
  std::size_t workers = 16;
  std::size_t queue = 1024;
  tls_options upstream_tls{};
  std::vector<std::string> trusted_proxies{};
};

/// The routes of one configuration. Lives as long as its last request: after a reload, requests end
/// with the routes that they began with.
/// Thread-safety: may be called from any thread.
class gateway_runtime {
 public:
  /// `previous` is what it replaces, and shares its workers and the points of the engine with; null
  /// for the first. Throws errc::invalid_argument, with the name of the route, if an option cannot
  /// be used.
  explicit gateway_runtime(runtime_options options, const gateway_runtime* previous = nullptr);

  [[nodiscard]] route_runtime* find(std::string_view host, std::string_view path) noexcept;
  [[nodiscard]] std::vector<std::unique_ptr<route_runtime>>& routes() noexcept { return routes_; }
  [[nodiscard]] const runtime_options& options() const noexcept { return options_; }
  [[nodiscard]] const route_keys& keys() const noexcept { return keys_; }
  [[nodiscard]] shared_requests& shared() noexcept { return shared_; }
  [[nodiscard]] const net::tls_context& upstream_tls() const noexcept { return tls_; }
  [[nodiscard]] timestamp now() const { return options_.clock->now(); }
  /// Counts a request, and logs it. Never waits, never throws.
  void record(const answered_call& call) noexcept;
  /// A request that no route takes.
  void record_refusal(const server_request& request, int status) noexcept;
  [[nodiscard]] bool is_trusted(std::string_view address) const noexcept;

  /// Runs a task on a worker. Returns false if there is no place for it.
  [[nodiscard]] bool post(executor::task work) { return workers_->post(std::move(work)); }
  [[nodiscard]] thread_pool& workers() noexcept { return *workers_; }

  /// Whether keeping an answer of this route may wait for the store.
  [[nodiscard]] bool keeping_waits(const route_runtime& target) const noexcept;

  // These never wait: they know what the memory of this process has.

  /// The kept response that the upstream may confirm; see revalidation.hpp.
  [[nodiscard]] std::optional<stored_response> confirmable(const route_runtime& target,
                                                           const gateway_request& request);
  /// As `recover`. Returns nothing, and leaves the call as it was, if the store must be asked.
  [[nodiscard]] std::optional<recovery_result> recover_from_memory(const route_runtime& target,
                                                                   pending_value& call,
                                                                   const gateway_request& request,
                                                                   cause_code cause);
  /// As `read`. Returns nothing if the store must be asked.
  [[nodiscard]] std::optional<recovery_result> read_from_memory(const route_runtime& target,
                                                                const gateway_request& request,
                                                                cause_code cause);

  // These may wait for the store.

  /// Reports a failure to the engine, and returns the kept response if the client may have it.
  [[nodiscard]] recovery_result recover(const route_runtime& target, pending_value call,
                                        const request_facts& request,
                                        const std::string& invalidation_key, cause_code cause);
  /// The kept response, without a failure. `cause` is that of the answer.
  [[nodiscard]] recovery_result read(const route_runtime& target, const gateway_request& request,
                                     cause_code cause);
  /// For a call of a point with a drill: the kept response, if the drill selects the call and the
  /// client may have it. Otherwise leaves the call as it was.
  [[nodiscard]] recovery_result rehearse(const route_runtime& target, pending_value& call,
                                         const gateway_request& request);
  /// Whether the answer of this version, or a newer one, is in the store.
  [[nodiscard]] bool is_stored(const route_runtime& target, const std::string& key_text,
                               timestamp as_of);
  /// The kept answers of a target; nothing if no route takes it.
  [[nodiscard]] std::optional<invalidation> invalidation_of(std::string_view host,
                                                            std::string_view target);
  /// Stores that older answers of these targets are not valid. Throws what the store throws.
  void invalidate(const std::vector<invalidation>& targets);

 private:
  [[nodiscard]] bool is_in_memory(const route_runtime& target, const gateway_request& request);
  [[nodiscard]] std::optional<timestamp> invalidation_time(const route_runtime& target,
                                                           const std::string& key) const;

  runtime_options options_;
  route_table table_;
  route_keys keys_;
  net::tls_context tls_;
  std::vector<std::unique_ptr<route_runtime>> routes_{};
  shared_requests shared_{};
  std::shared_ptr<thread_pool> workers_;
  // By name: the engine registers a name once. Used by constructors only.
  std::shared_ptr<std::map<std::string, route_point>> points_;
};

}  // namespace HOLDFAST_NAMESPACE::detail::serve::gateway
