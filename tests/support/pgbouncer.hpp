#pragma once

#include "support/postgres_server.hpp"
#include "support/server_control.hpp"
#include "support/temporary_directory.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace holdfast::test {

/// A private PgBouncer before a PostgreSQL, in transaction mode: a client has a session of the
/// server for one transaction, and another one for the next. Started by the constructor, gone after
/// the destructor. Its URL: `server.url_through(bouncer.port(), database)`.
class pgbouncer : public server_control {
 public:
  /// Settings are `name=value`, in the words of its configuration; the last one wins.
  explicit pgbouncer(const postgres_endpoint& server, std::vector<std::string> settings = {});
  ~pgbouncer();

  [[nodiscard]] std::uint16_t port() const noexcept { return port_; }

 private:
  temporary_directory place_;
  std::uint16_t port_ = 0;
};

}  // namespace holdfast::test
