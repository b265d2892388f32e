#pragma once

#include "support/server_control.hpp"
#include "support/temporary_directory.hpp"

#include <cstdint>
#include <vector>

namespace holdfast::test {

/// A private HAProxy that leads new connections to the PostgreSQL that accepts writes, as its
/// health checks find it: twice a second it asks each server. It does not shut down the sessions of
/// a server that is gone. Started by the constructor, gone after the destructor. Its URL:
/// `server.url_through(proxy.port())`.
class haproxy : public server_control {
 public:
  explicit haproxy(std::vector<std::uint16_t> servers);
  ~haproxy();

  [[nodiscard]] std::uint16_t port() const noexcept { return port_; }

 private:
  temporary_directory place_;
  std::uint16_t port_ = 0;
};

}  // namespace holdfast::test
