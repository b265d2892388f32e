#pragma once

/// \file
/// Takes a request from the transport to its endpoint, and its answer back.
///
///   loop thread     Host, path and method, caller, permission, query, content; then `start`
///   worker thread   `answer`, which may wait. At most `threads`, started when they are needed. At
///                   most `queue` requests wait for one; more get 503 with Retry-After.
///   either          the fields of every answer, counters, access log

#include <holdfast/executor.hpp>
#include <holdfast/log.hpp>
#include <holdfast/version.hpp>

#include "serve/api/host_names.hpp"
#include "serve/api/router.hpp"
#include "serve/auth/authenticator.hpp"
#include "serve/http_server.hpp"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

namespace HOLDFAST_NAMESPACE::detail::serve {

/// A request that was answered. Valid during the call.
struct answered_request {
  std::string_view reference{};
  std::string_view method{};
  /// The path, and the names of the query parameters without their values.
  std::string_view path{};
  /// `/v1/stores/{store}/doctor`; empty if no endpoint has the path.
  std::string_view endpoint{};
  int status = 0;
  std::size_t content_bytes = 0;
  std::size_t answer_bytes = 0;
  std::chrono::microseconds duration{};
  /// Name of the token; empty if the caller was not identified.
  std::string_view caller{};
  std::string_view address{};
  /// Of a request to the gateway, whose route is `endpoint`: `live`, `stale`. Else empty.
  std::string_view outcome{};
};

struct dispatcher_options {
  std::size_t threads = 32;
  std::size_t queue = 1024;
  /// Called for every answer, on the thread that answers: must neither wait nor throw.
  std::function<void(const answered_request&)> on_answer{};
  /// Receives the messages of exceptions that are defects.
  log_sink log{};
};

/// Counts since the start.
struct dispatcher_counts {
  /// Answered with 503 because the queue was full.
  std::uint64_t overloaded = 0;
  /// Refused with 421.
  std::uint64_t foreign_hosts = 0;
  /// Exceptions of endpoints that are no holdfast::error.
  std::uint64_t defects = 0;
  thread_pool::numbers workers{};
};

/// Thread-safety: may be called from any thread.
class api_dispatcher {
 public:
  /// The table and the authenticator must outlive the dispatcher and its requests.
  api_dispatcher(const endpoint_table& table, authenticator& identity, dispatcher_options options);
  ~api_dispatcher();
  api_dispatcher(const api_dispatcher&) = delete;
  api_dispatcher& operator=(const api_dispatcher&) = delete;

  /// For http_server. Called on a loop thread.
  void dispatch(const server_request& request, responder answer);
  /// For server_options::max_body.
  [[nodiscard]] std::uint64_t max_body(std::string_view method,
                                       std::string_view target) const noexcept;
  /// Until then only `localhost` is answered.
  void set_hosts(host_names hosts);
  [[nodiscard]] dispatcher_counts counts() const;
  /// Refuses new work, and waits until the workers are done. Returns how many requests were left.
  std::size_t close(std::chrono::steady_clock::time_point deadline);

 private:
  struct exchange;
  [[nodiscard]] bool admits_host(const server_request& request) const;
  [[nodiscard]] std::optional<server_response> identify(const server_request& request,
                                                        exchange& current) const;
  [[nodiscard]] std::optional<server_response> prepare(const server_request& request,
                                                       exchange& current);
  /// Returns nothing if the endpoint needs a worker.
  [[nodiscard]] std::optional<server_response> answer_now(const exchange& current);
  void run(const std::shared_ptr<exchange>& current, responder answer);
  void post(const std::shared_ptr<exchange>& current, responder answer);
  void complete(const exchange& current, server_response& response) const noexcept;
  void report_defect(const exchange& current, const char* message) noexcept;
  [[nodiscard]] std::string next_reference() noexcept;

  router router_;
  authenticator& identity_;
  dispatcher_options options_;
  std::shared_ptr<thread_pool> workers_;
  mutable std::mutex hosts_mutex_{};
  std::shared_ptr<const host_names> hosts_;
  std::atomic<std::uint64_t> overloaded_ = 0;
  std::atomic<std::uint64_t> foreign_hosts_ = 0;
  std::atomic<std::uint64_t> defects_ = 0;
  std::atomic<std::uint64_t> reference_;
};

}  // namespace HOLDFAST_NAMESPACE::detail::serve
