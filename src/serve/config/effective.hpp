#pragma once

/// \file
/// Configurations for people: what is in force, where it comes from, and what there is. It treats
/// the keys of the server and those of [failover] alike.

#include <holdfast/version.hpp>

#include "serve/config/server_config.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::serve::config {

/// Whether a file has no section but [failover]: it configures an engine, and nothing to serve.
/// False for a file that is not TOML.
[[nodiscard]] bool is_engine_file(std::string_view text);

/// The values of [failover] that a file has, without secrets.
[[nodiscard]] std::vector<effective_value> point_values(
    const std::vector<failover::config::file_value>& values);

/// Reads a file of [failover] alone, as read_config does. Throws errc::invalid_argument with all
/// problems.
[[nodiscard]] std::vector<effective_value> read_engine_file(const std::string& file,
                                                            std::string_view text);

/// Adds the defaults of the keys of [failover] that are not listed; those of points for each point
/// that is listed. Not those of the database, which is the first store, unless `has_store`.
void add_point_defaults(std::vector<effective_value>& values, bool has_store);

/// One key that a file may have.
struct reference_key {
  std::string section{};        ///< `serve.tls`; a name that the user chooses is NAME
  std::string name{};           ///< `certificate`
  std::string_view type{};      ///< `a duration`
  std::string default_value{};  ///< as TOML; empty: none
  std::string_view description{};
  std::string_view choices{};
};
/// All keys of both tables, grouped by section.
[[nodiscard]] std::vector<reference_key> reference();

}  // namespace HOLDFAST_NAMESPACE::detail::serve::config
