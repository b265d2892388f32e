#pragma once

#include "support/server_control.hpp"
#include "support/temporary_directory.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace holdfast::test {

/// A NATS server with JetStream on 127.0.0.1: own data directory, free port, started by the
/// constructor, gone after the destructor.
class nats_server : public server_control {
 public:
  /// More arguments of nats-server.
  explicit nats_server(std::vector<std::string> arguments = {});
  ~nats_server();

  [[nodiscard]] std::string address() const { return "127.0.0.1:" + std::to_string(port_); }

 private:
  temporary_directory place_;
  std::uint16_t port_ = 0;
};

}  // namespace holdfast::test
