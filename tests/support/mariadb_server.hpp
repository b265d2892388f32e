#pragma once

#include "support/server_control.hpp"
#include "support/server_endpoint.hpp"
#include "support/server_options.hpp"
#include "support/temporary_directory.hpp"

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace holdfast::test {

/// A MariaDB somewhere. The administrator is `admin`, password `secret`.
class mariadb_endpoint : public server_endpoint {
 public:
  static constexpr std::string_view kind = "mysql";

  explicit mariadb_endpoint(std::uint16_t port) : server_endpoint(kind, port) {}

 private:
  std::string run_client(const std::string& sql, const std::string& database) const override;
  void make_database(const std::string& name) const override;
  void remove_database(const std::string& name) const override;
};

/// The user that MariaDB's servers run as.
inline constexpr auto mariadb_user = "mysql";
/// Settings of the data that make_mariadb_data makes: every server on it needs them.
[[nodiscard]] const std::vector<std::string>& mariadb_data_settings();
/// A data directory with the users and databases of mariadb_endpoint, at a path that does not
/// exist.
void make_mariadb_data(const std::filesystem::path& target);

/// A private MariaDB: own data directory, free port, started by the constructor, gone after the
/// destructor.
class mariadb_server : public mariadb_endpoint, public server_control {
 public:
  using endpoint = mariadb_endpoint;

  explicit mariadb_server(server_options options = {});
  ~mariadb_server();

  /// Settings for the next start, beside those of the constructor.
  void configure(const std::string& setting) { options_.settings.push_back(setting); }

 private:
  server_options options_;
  std::optional<temporary_directory> temporary_{};
};

}  // namespace holdfast::test
