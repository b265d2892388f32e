#pragma once

/// \file
/// How `outbox work` and `store clean --watch` are watched: by monitors at an address of their own,
/// and by `holdfast serve` through the database.

#include <holdfast/database.hpp>
#include <holdfast/log.hpp>
#include <holdfast/metrics.hpp>
#include <holdfast/reporter.hpp>

#include "serve/observation_server.hpp"
#include "terminal/command.hpp"
#include "terminal/message_queue.hpp"

#include <memory>
#include <string>
#include <vector>

namespace holdfast::cli {

/// `--listen` and `--allow-plain`.
struct observation_address {
  option listen;
  option allow_plain;

  explicit observation_address(command& cmd);

  /// Checks the address, and returns the metrics to collect; null without --listen.
  [[nodiscard]] std::shared_ptr<prometheus_registry> metrics() const;
  /// Listens, and prints the address. Null without --listen.
  [[nodiscard]] std::unique_ptr<detail::serve::observation_server> start(
      console& io, std::shared_ptr<prometheus_registry> metrics,
      detail::serve::readiness_check check) const;
};

/// Queues what a reporter says about this process, such as that there are no tables, and passes
/// other records on.
[[nodiscard]] log_sink queue_notices(std::shared_ptr<message_queue<std::string>> notices,
                                     log_sink next);

/// Reports the worker or cleanup, until the result is destroyed. Null for a database in memory,
/// which no other process sees.
template <class Source>
[[nodiscard]] std::unique_ptr<reporter> report_process(const Source& source, const database& db,
                                                       const std::string& url,
                                                       reporter_options options) {
  if (url.starts_with("memory:")) return nullptr;
  return std::make_unique<reporter>(source, db, std::move(options));
}

}  // namespace holdfast::cli
