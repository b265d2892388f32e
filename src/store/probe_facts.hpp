#pragma once

#include <holdfast/database.hpp>
#include <holdfast/sql.hpp>
#include <holdfast/store/probe.hpp>
#include <holdfast/version.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace HOLDFAST_NAMESPACE::probing {

/// What a column can hold, in words that all databases share.
enum class kind : std::uint8_t {
  text,
  bytes,
  moment,        ///< a point in time
  local_moment,  ///< a date and a time of nobody knows which zone
  anything,      ///< SQLite: keeps what it is given
  other          ///< nothing that we could use
};

struct column {
  std::string name;
  std::string type{};  ///< as the database writes it
  probing::kind kind = kind::other;
  std::int64_t length = 0;    ///< characters or bytes; 0 means as many as one likes
  std::int64_t digits = 6;    ///< of a second's fraction
  std::string collation{};    ///< its name
  bool exact = true;          ///< two texts are equal only if their bytes are
  bool whole_unicode = true;  ///< every character can be kept
  bool not_null = false;
  bool needs_value = false;  ///< not null, and nothing fills it by itself
};

struct index {
  std::string name;
  bool primary = false;
  bool constraint = false;  ///< dropped as one: PostgreSQL tells the two apart
  bool unique = false;
  std::vector<std::string> columns{};  ///< in order; one of which only a part is indexed is written NAME(8)
};

struct setting {
  std::string name;
  std::string value;
  std::string source{};  ///< who set it, where the server tells
};

struct table {
  std::string name;  ///< with prefix and qualifiers
  bool there = false;
  std::string storage{};  ///< the engine of MySQL; `unlogged` of PostgreSQL
  std::vector<column> columns{};
  std::vector<index> indexes{};
};

struct server {
  sql::dialect_id dialect = sql::dialect_id::unknown;
  std::string version{};
  std::string user{};      ///< as GRANT wants it
  std::string database{};  ///< its name; SQLite: the file
  std::vector<setting> settings{};

  [[nodiscard]] const setting* find(std::string_view name) const noexcept;
};

/// Whether there are questions for it.
[[nodiscard]] bool can_ask(sql::dialect_id dialect) noexcept;

/// Asks the server about itself; and about one table. Nothing is asked that needs more than an ordinary user's rights.
[[nodiscard]] server ask_server(sql::connection& from, sql::dialect_id dialect);
[[nodiscard]] table ask_table(sql::connection& from, sql::dialect_id dialect, const std::string& name);

/// The name of what a file lies on where that matters (tmpfs, nfs, ...), else nothing.
[[nodiscard]] std::string file_system_of(const std::string& file);

/// What it means. Pure: the same facts, the same findings.
[[nodiscard]] std::vector<probe_finding> judge_server(const server& facts);
[[nodiscard]] std::vector<probe_finding> judge_table(const table& facts, const server& of, const std::string& prefix,
                                                     const store_options& options);
/// What can be read or changed on the way to a server on another machine; docs/tls.md says how to protect it.
[[nodiscard]] std::vector<probe_finding> judge_transport(sql::transport_kind transport, sql::dialect_id dialect);
[[nodiscard]] std::vector<probe_finding> judge_skew(std::chrono::microseconds skew, std::chrono::microseconds within,
                                                    std::chrono::microseconds max_skew);

/// Looks at a store's server and tables, at most so many; `try_writing` runs the store's statements, too, and rolls them back.
[[nodiscard]] probe_report look(sql::connection& from, sql::dialect_id dialect, const holdfast::clock& ours, const store_options& options,
                                bool try_writing, std::size_t most_tables = SIZE_MAX);

}  // namespace HOLDFAST_NAMESPACE::probing
