#pragma once

/// \file
/// The server of `holdfast serve`, without its process: signals and messages are the command's.
///
///   1. listen          requests get 503, and /readyz says `starting`
///   2. on_listening    the command gives up its privileges
///   3. open            databases, parts, endpoints
///   4. serve           until begin_drain: /readyz says 503, everything else goes on
///   5. stop            no more connections; what runs is finished, within a time limit
///
/// A worker that waits for a database that hangs cannot be stopped. Then the destructor leaves its
/// objects alone, and the process should end with `_Exit`.

#include <holdfast/clock.hpp>
#include <holdfast/log.hpp>
#include <holdfast/metrics.hpp>
#include <holdfast/version.hpp>

#include "serve/api/services.hpp"
#include "serve/config/server_config.hpp"
#include "serve/server_part.hpp"

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::serve {

/// A point has about 50 series, and a server can have a thousand points.
inline constexpr prometheus_options series_limits{.series = 60'000, .series_of_one_name = 12'000};

struct server_setup {
  config::server_config config{};
  /// Those of `make_parts`.
  std::vector<std::unique_ptr<server_part>> parts{};
  /// Accept on the sockets that a service manager passed on, too.
  bool use_inherited = false;
  /// Called when all listeners are bound.
  std::function<void()> on_listening{};
  /// Null: the clock of this machine.
  std::shared_ptr<const holdfast::clock> clock{};
  log_sink log{};
  /// Null: a registry of its own. Others should have `series_limits`.
  std::shared_ptr<prometheus_registry> metrics{};
};

/// Thread-safety: `addresses` and `missing` may be called from any thread, the others on one.
class server {
 public:
  /// Steps 1 to 3. Throws errc::invalid_argument if the configuration cannot work,
  /// errc::unavailable if an address or the access log cannot be opened, errc::permission if a
  /// password file cannot be read.
  explicit server(server_setup setup);
  /// As `stop` without waiting.
  ~server();
  server(const server&) = delete;
  server& operator=(const server&) = delete;

  [[nodiscard]] const std::vector<std::string>& addresses() const noexcept;
  /// What is not ready, as /readyz says it.
  [[nodiscard]] std::vector<std::string> missing() const;
  /// All databases answered, or the time for it is over.
  [[nodiscard]] bool has_started() const;

  /// Uses the certificate, the names and the label of another configuration, opens the access log
  /// again, and tells the parts. Returns the keys whose change needs a restart. Throws, and keeps
  /// everything, if the certificate or the access log cannot be read; what a part throws comes
  /// after that.
  std::vector<std::string> reload(config::server_config fresh);
  /// /readyz says 503 from now on.
  void begin_drain() noexcept;
  /// Returns what was left, in a few words each.
  std::vector<std::string> stop(std::chrono::milliseconds grace);

  /// For tests.
  [[nodiscard]] services& shared() noexcept;

 private:
  struct state;
  std::unique_ptr<state> state_;
};

}  // namespace HOLDFAST_NAMESPACE::detail::serve
