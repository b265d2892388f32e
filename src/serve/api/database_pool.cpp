#include "serve/api/database_pool.hpp"

namespace HOLDFAST_NAMESPACE::detail::serve {

namespace {

/// Questions have limits of their own for each database, so a few that hang leave threads to the
/// others.
constexpr std::size_t max_threads = 256;

}  // namespace

database_pool::database_pool()
    : threads_(make_thread_pool(
          {.threads = max_threads, .name = "hf-ask", .linger = std::chrono::milliseconds(0)})) {}

database_pool::~database_pool() {
  (void)close(std::chrono::steady_clock::now() + std::chrono::hours(1));
}

std::size_t database_pool::close(std::chrono::steady_clock::time_point deadline) {
  const auto report = threads_->close(deadline);
  return report.still_running + report.dropped;
}

}  // namespace HOLDFAST_NAMESPACE::detail::serve
