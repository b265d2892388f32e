#pragma once

#include <holdfast/database.hpp>
#include <holdfast/sql.hpp>
#include <holdfast/version.hpp>

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace HOLDFAST_NAMESPACE {

/// Everything a store says to one database: the dialect as data. Parameters are in the order of the comments.
struct store_statements {
  std::string table;              ///< with prefix and qualifiers
  sql::batch_statement upsert{};  ///< name, key, as_of, expire_on, payload, class; common: the skew horizon, as often as it is wanted
  sql::statement insert{};        ///< name, key, as_of, expire_on, payload, class
  sql::statement update{};        ///< as_of, expire_on, payload, class, name, key, just after as_of, horizon
  sql::statement find{};          ///< name, key -> as_of, expire_on, payload, class
  sql::statement find_first{};    ///< name, limit -> key, as_of, expire_on, payload, class
  sql::statement find_after{};    ///< name, key, limit -> the same
  sql::statement erase{};         ///< name, key, from, to (as_of in [from, to))
  sql::statement expire{};        ///< before, limit; where `expired` has a text: name, key, before
  sql::statement expired{};       ///< before -> name, key: for a dialect that has no words for a limit
  sql::statement count{};         ///< name -> count
  sql::statement rewrite{};       ///< payload, name, key, from, to (as_of in [from, to)), the payload before
  sql::statement name_after{};    ///< name -> the next name
  bool native = true;             ///< whether `upsert` is worth trying
};

/// The whole prefix of each realm's table; without tenants the one of the realm without a name.
/// Throws errc::invalid_argument for a prefix that could be more than a name, and for two realms with the same table.
[[nodiscard]] std::map<std::string, std::string> prefixes_of_realms(const store_options& options);

/// `zone` is PostgreSQL's expression for the zone of columns without one; empty where the columns have their own.
[[nodiscard]] store_statements make_statements(sql::dialect_id dialect, const std::string& prefix, const store_options& options,
                                               const std::string& zone = {});

}  // namespace HOLDFAST_NAMESPACE
