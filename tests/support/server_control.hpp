#pragma once

/// \file
/// Starting, stopping, killing and freezing a server that belongs to one test.

#include "support/child_process.hpp"

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace holdfast::test {

/// How one kind of server is run.
struct server_recipe {
  std::string name{};  ///< for messages
  /// Runs as this one when we are root
  std::string user{};
  std::filesystem::path data{};  ///< the data directory
  std::filesystem::path log{};   ///< what it says
  /// The command line for a port
  std::function<std::vector<std::string>(std::uint16_t)> command{};
  /// Does *this* process serve? Gets what it logged since its start
  std::function<bool(pid_t, const std::string&)> ready{};
  /// Does the log say that somebody else has the port?
  std::function<bool(const std::string&)> port_taken{};
  /// Tidies up after a crash; may be empty
  std::function<void()> before_start{};
  int stop_signal = SIGTERM;  ///< an orderly shutdown
  /// Recovery after a crash included
  std::chrono::milliseconds start_timeout = std::chrono::seconds(60);
};

/// A server process and its data directory. Whatever is left of it is killed in the destructor.
/// Thread-safety: one thread at a time; clients may come from anywhere.
class server_control {
 public:
  server_control(const server_control&) = delete;
  server_control& operator=(const server_control&) = delete;

  /// Starts it on the port it had before, or the first time on a free one. Returns when it serves,
  /// and it is this process that serves, not another on the same port. Throws std::runtime_error
  /// with the end of the log.
  void start();
  /// An orderly shutdown. Nothing happens when it does not run.
  void stop();
  /// kill -9 of the server and its children, as a machine that loses power would; the data
  /// directory stays.
  void kill9();
  /// Whatever state it is in: stop, then start.
  void restart();
  /// SIGSTOP: it neither answers nor closes connections. New connections still succeed, for the
  /// kernel accepts them.
  void pause();
  /// SIGCONT.
  void resume();

  [[nodiscard]] bool running();
  [[nodiscard]] pid_t pid() const;
  [[nodiscard]] const std::filesystem::path& data_directory() const noexcept {
    return recipe_.data;
  }
  [[nodiscard]] const std::filesystem::path& log_file() const noexcept { return recipe_.log; }
  /// Everything it logged.
  [[nodiscard]] std::string log() const;

 protected:
  server_control() = default;
  ~server_control();

  /// The recipe, before the first start.
  void prepare(server_recipe recipe, std::function<void(std::uint16_t)> on_port);

 private:
  [[nodiscard]] bool start_once(std::uint16_t port);
  void kill_all();

  server_recipe recipe_{};
  std::function<void(std::uint16_t)> on_port_{};
  std::uint16_t port_ = 0;
  std::optional<child_process> process_{};
};

}  // namespace holdfast::test
