#pragma once

#include "support/server_control.hpp"
#include "support/server_endpoint.hpp"
#include "support/server_options.hpp"
#include "support/temporary_directory.hpp"

#include <optional>

namespace holdfast::test {

/// An H2 somewhere, behind its PostgreSQL port. Whoever comes to a database first makes it, and is
/// its administrator: `holdfast`, password `secret`.
class h2_endpoint : public server_endpoint {
 public:
  static constexpr std::string_view kind = "h2";

  explicit h2_endpoint(std::uint16_t port) : server_endpoint(kind, port) {}

 private:
  std::string run_client(const std::string& sql, const std::string& database) const override;
  void make_database(const std::string& name) const override;
  void remove_database(const std::string& name) const override;
};

/// A private H2 (Debian's libh2-java): own data directory, free port, started by the constructor,
/// gone after the destructor. `durable = false` and settings mean nothing to it: they belong to its
/// databases.
class h2_server : public h2_endpoint, public server_control {
 public:
  using endpoint = h2_endpoint;

  explicit h2_server(server_options options = {});
  ~h2_server();

 private:
  std::optional<temporary_directory> temporary_{};
};

}  // namespace holdfast::test
