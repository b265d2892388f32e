#pragma once

#include "support/child_process.hpp"
#include "support/server_control.hpp"
#include "support/temporary_directory.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace holdfast::test {

/// A RabbitMQ on 127.0.0.1: own data directory, cookie and name server of Erlang (epmd), free
/// ports. Started by the constructor, gone after the destructor. User guest, password guest.
class rabbitmq_server : public server_control {
 public:
  /// Lines of rabbitmq.conf, for example `vm_memory_high_watermark.relative = 0`.
  explicit rabbitmq_server(std::vector<std::string> settings = {});
  ~rabbitmq_server();

  [[nodiscard]] std::string address() const { return "127.0.0.1:" + std::to_string(port_); }

 private:
  void start_epmd();
  [[nodiscard]] std::vector<std::string> command(std::uint16_t port) const;

  std::vector<std::string> settings_;
  temporary_directory place_;
  /// Nodes find each other with it. It runs as a child, because the one that Erlang starts becomes
  /// a daemon and outlives the test.
  std::optional<child_process> epmd_{};
  std::uint16_t epmd_port_ = 0;
  std::uint16_t port_ = 0;
};

}  // namespace holdfast::test
