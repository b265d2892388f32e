#pragma once

/// \file
/// A server for monitors of a worker or a cleaner: /healthz, /readyz and /metrics, and nothing
/// else. It has no tokens, so it listens where only this machine reaches it.

#include <holdfast/metrics.hpp>
#include <holdfast/version.hpp>

#include "serve/readiness.hpp"

#include <memory>
#include <string>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::serve {

struct observation_options {
  /// `host:port`, or `unix:` and the path of a socket.
  std::string listen{};
  /// Admit an address that other machines reach. Operators set it behind a firewall, and in
  /// containers.
  bool allow_plain = false;
  /// Asked once a second. They must own what they use.
  std::vector<readiness_check> checks{};
  /// Gets `holdfast_ready` and `holdfast_missing`, too.
  std::shared_ptr<prometheus_registry> metrics{};
};

/// Throws errc::invalid_argument for an address that other machines reach, unless that is admitted.
void check_observation_address(const std::string& listen, bool allow_plain);

/// Answers on a thread of its own, also while the process waits for a database. On an address of
/// this machine it answers only if the field Host names this machine, because a page of another
/// site could read the metrics otherwise.
/// Thread-safety: may be called from any thread.
class observation_server {
 public:
  /// Listens. Throws errc::invalid_argument or errc::unavailable.
  explicit observation_server(observation_options options);
  /// Waits for a check of a database for a moment only.
  ~observation_server();
  observation_server(const observation_server&) = delete;
  observation_server& operator=(const observation_server&) = delete;

  /// `http://host:port` with the port that the system chose, or `unix:` and the path.
  [[nodiscard]] std::string address() const;
  /// From now on /readyz says `draining`.
  void begin_drain() noexcept;

 private:
  struct state;
  std::unique_ptr<state> state_;
};

}  // namespace HOLDFAST_NAMESPACE::detail::serve
