#pragma once

/// \file
/// Which servers run for a whole test run, and for whom. A directory with a few small files:
///
///     lock            held while somebody changes the others
///     keeper          the process that owns the servers
///     servers         one line for each: kind and port
///     users/PID-TIME  one for each test run (a ctest process) that uses them
///     log             what the keeper says

#include "support/process_state.hpp"

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>

namespace holdfast::test {

/// Thread-safety: one thread at a time. Processes exclude each other with a registry_lock.
class server_registry {
 public:
  explicit server_registry(std::filesystem::path directory) : directory_(std::move(directory)) {}

  [[nodiscard]] const std::filesystem::path& directory() const noexcept { return directory_; }
  [[nodiscard]] std::filesystem::path log_file() const { return directory_ / "log"; }

  /// The keeper, when it lives.
  [[nodiscard]] std::optional<process_identity> keeper() const;
  /// kind -> port; empty when no keeper lives.
  [[nodiscard]] std::map<std::string, std::uint16_t> servers() const;

  /// The keeper says that it is there, and later that its servers are.
  void set_keeper(const process_identity& keeper);
  void publish(const std::map<std::string, std::uint16_t>& servers);
  /// Nobody finds the servers any more.
  void unpublish();

  void add_user(const process_identity& user);
  void remove_user(const process_identity& user);
  /// Is there a test run left that lives? Forgets those that do not.
  [[nodiscard]] bool in_use();

 private:
  std::filesystem::path directory_;
};

/// Only one process at a time changes the registry. Freed when the process dies.
class registry_lock {
 public:
  /// Waits for it, unless told not to.
  explicit registry_lock(const server_registry& registry, bool wait = true);
  registry_lock(const registry_lock&) = delete;
  registry_lock& operator=(const registry_lock&) = delete;
  ~registry_lock();

  [[nodiscard]] bool held() const noexcept { return held_; }

 private:
  int file_ = -1;
  bool held_ = false;
};

}  // namespace holdfast::test
