#pragma once

/// \file
/// The metrics `holdfast_http_*`.

#include <holdfast/metrics.hpp>
#include <holdfast/version.hpp>

#include "serve/api/api_dispatcher.hpp"
#include "serve/followed_counter.hpp"
#include "serve/http_server.hpp"

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>

namespace HOLDFAST_NAMESPACE::detail::serve {

/// Thread-safety: may be called from any thread.
class http_metrics {
 public:
  explicit http_metrics(std::shared_ptr<metrics_sink> sink);

  /// Counts an answer of the dispatcher. Never throws.
  void add(const answered_request& request) noexcept;
  /// Brings the numbers of the transport up to date, before they are read.
  void update(const server_counts& transport, const dispatcher_counts& api,
              std::uint64_t dropped_log_lines);

 private:
  const std::shared_ptr<metrics_sink> sink_;
  const std::shared_ptr<metrics::histogram> seconds_;
  /// By status: 100 to 599.
  std::array<std::shared_ptr<metrics::counter>, 6> by_class_{};
  std::mutex mutex_{};
  std::map<std::string, followed_counter, std::less<>> followed_{};
};

}  // namespace HOLDFAST_NAMESPACE::detail::serve
