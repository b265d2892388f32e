#pragma once

#include "support/server_control.hpp"
#include "support/server_endpoint.hpp"
#include "support/temporary_directory.hpp"

namespace holdfast::test {

/// Something that speaks the protocol of SQL Server (tds_server.py) and keeps its data in the
/// PostgreSQL of the tests.
class tds_endpoint : public server_endpoint {
 public:
  static constexpr std::string_view kind = "tds";

  explicit tds_endpoint(std::uint16_t port) : server_endpoint(kind, port) {}

 private:
  std::string run_client(const std::string& sql, const std::string& database) const override;
  void make_database(const std::string& name) const override;
  void remove_database(const std::string& name) const override;
};

class tds_server : public tds_endpoint, public server_control {
 public:
  using endpoint = tds_endpoint;

  tds_server();
  ~tds_server();

 private:
  temporary_directory temporary_{"tds"};
};

}  // namespace holdfast::test
