#pragma once

/// \file
/// How identity, live state, jobs and other parts plug into the server. `make_parts` in parts.cpp
/// has one line for each.
///
///   attach           the part fills in its pointer in `services`: audit, events, jobs
///   add_endpoints    its rows; every part is attached by then
///   start            the listeners are bound, the databases are open
///   problem          asked for each /readyz
///   prepare_reload   SIGHUP: everything that can fail
///   reload           the new configuration counts from now on
///   drain            SIGTERM: streams say goodbye, long polls answer empty, jobs end their step
///   finish           the last requests were answered
///
/// All functions are called on one thread, apart from `problem` and what `identity` returns.

#include <holdfast/version.hpp>

#include "serve/auth/authenticator.hpp"

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::serve {

namespace config {
struct server_config;
}
class endpoint_table;
struct services;

class server_part {
 public:
  server_part() = default;
  server_part(const server_part&) = delete;
  server_part& operator=(const server_part&) = delete;
  virtual ~server_part() = default;

  virtual void attach(services& /*shared*/) {}
  virtual void add_endpoints(endpoint_table& /*table*/, services& /*shared*/) {}
  /// Null: this part does not identify callers.
  [[nodiscard]] virtual authenticator* identity() { return nullptr; }
  /// Whether a caller from another machine could be identified. Nothing: this part does not know.
  [[nodiscard]] virtual std::optional<bool> has_token() { return std::nullopt; }
  virtual void start(const std::vector<std::string>& /*addresses*/) {}
  /// What is not ready, as /readyz names it: `state`. Must not wait.
  [[nodiscard]] virtual std::optional<std::string> problem() { return std::nullopt; }
  /// `fresh` is the configuration that was read. Throws if it cannot be used; then nothing is
  /// reloaded.
  virtual void prepare_reload(const config::server_config& /*fresh*/) {}
  /// After all parts have prepared.
  virtual void reload(const config::server_config& /*fresh*/) {}
  virtual void drain() noexcept {}
  /// Returns what was left undone at the deadline, in a few words each.
  [[nodiscard]] virtual std::vector<std::string> finish(
      std::chrono::steady_clock::time_point /*deadline*/) {
    return {};
  }
};

}  // namespace HOLDFAST_NAMESPACE::detail::serve
