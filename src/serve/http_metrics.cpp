#include "serve/http_metrics.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

namespace HOLDFAST_NAMESPACE::detail::serve {

namespace {

constexpr std::string_view answered_help =
    "Requests that were answered, by the class of the status";

}  // namespace

http_metrics::http_metrics(std::shared_ptr<metrics_sink> sink)
    : sink_(std::move(sink)),
      seconds_(sink_->histogram("holdfast_http_request_seconds", {},
                                "Time from a complete request to its answer")) {
  for (std::size_t i = 1; i < by_class_.size(); ++i) {
    const std::string status = std::to_string(i) + "xx";
    by_class_[i] = sink_->counter("holdfast_http_requests_total",
                                  {{.name = "status", .value = status}}, answered_help);
  }
  // Now, and not when they are first read: many points may have used up the series by then.
  update({}, {}, 0);
}

void http_metrics::add(const answered_request& request) noexcept {
  const auto status_class = static_cast<std::size_t>(std::clamp(request.status / 100, 1, 5));
  by_class_[status_class]->add();
  seconds_->observe(std::chrono::duration<double>(request.duration).count());
}

void http_metrics::update(const server_counts& transport, const dispatcher_counts& api,
                          std::uint64_t dropped_log_lines) {
  const std::scoped_lock lock(mutex_);
  const auto follow = [&](const char* name, std::uint64_t value, const char* help) {
    const auto it = followed_.find(name);
    auto& target = it != followed_.end()
                       ? it->second
                       : followed_.emplace(name, sink_->counter(name, {}, help)).first->second;
    target.follow(value);
  };
  const auto show = [&](const char* name, std::uint64_t value, const char* help) {
    sink_->gauge(name, {}, help)->set(static_cast<double>(value));
  };
  follow("holdfast_http_connections_accepted_total", transport.accepted, "Connections");
  follow("holdfast_http_refused_total", transport.refused,
         "Requests that break the rules of HTTP, or a limit");
  follow("holdfast_http_overloaded_total", transport.overloaded + api.overloaded,
         "Requests and connections that were refused because the server was busy");
  follow("holdfast_http_late_total", transport.late,
         "Connections that were closed because a deadline had passed");
  follow("holdfast_http_foreign_hosts_total", api.foreign_hosts,
         "Requests for a Host that is not served");
  follow("holdfast_http_defects_total", api.defects, "Requests that failed by a defect");
  follow("holdfast_http_log_lines_dropped_total", dropped_log_lines,
         "Lines of the access log that could not be written");
  follow("holdfast_http_slow_streams_total", transport.slow_streams,
         "Streams that were cut because their client read too slowly");
  show("holdfast_http_streams", transport.streams, "Answers that are sent in pieces");
  show("holdfast_http_connections", transport.connections, "Open connections");
  show("holdfast_http_waiting", transport.waiting, "Requests that wait for their answer");
  show("holdfast_http_workers_running", api.workers.running, "Workers that are busy");
  show("holdfast_http_workers_queued", api.workers.queued, "Requests that wait for a worker");
}

}  // namespace HOLDFAST_NAMESPACE::detail::serve
