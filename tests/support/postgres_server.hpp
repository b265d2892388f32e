#pragma once

#include "support/server_control.hpp"
#include "support/server_endpoint.hpp"
#include "support/server_options.hpp"
#include "support/temporary_directory.hpp"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>

namespace holdfast::test {

/// A PostgreSQL somewhere. The administrator is `postgres`, password `secret`.
class postgres_endpoint : public server_endpoint {
 public:
  static constexpr std::string_view kind = "postgresql";

  explicit postgres_endpoint(std::uint16_t port) : server_endpoint(kind, port) {}

 private:
  std::string run_client(const std::string& sql, const std::string& database) const override;
  void make_database(const std::string& name) const override;
  void remove_database(const std::string& name) const override;
};

/// A private PostgreSQL: own data directory, free port, started by the constructor, gone after the
/// destructor. The program is the newest below /usr/lib/postgresql, or in HOLDFAST_POSTGRES_BIN.
class postgres_server : public postgres_endpoint, public server_control {
 public:
  using endpoint = postgres_endpoint;

  explicit postgres_server(server_options options = {});
  /// A standby of that primary: a copy of it that follows, without being waited for. It gets what
  /// happens there through `link`, the primary's port or that of a proxy before it.
  postgres_server(const postgres_endpoint& primary, std::uint16_t link,
                  server_options options = {});
  ~postgres_server();

  /// Of a standby: it is no longer one, and takes writes when this returns.
  void promote() const;

  /// Settings for the next start, beside those of the constructor.
  void configure(const std::string& setting) { options_.settings.push_back(setting); }

 private:
  void prepare_and_start(const std::function<void(const std::filesystem::path& data)>& fill);

  server_options options_;
  std::optional<temporary_directory> temporary_{};
};

}  // namespace holdfast::test
