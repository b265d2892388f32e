#pragma once

#include <holdfast/sql.hpp>
#include <holdfast/version.hpp>

#include <chrono>
#include <memory>
#include <string>

namespace HOLDFAST_NAMESPACE::sql {

struct sqlite_options {
  std::string file;
  std::string vfs{};   ///< SQLite's own unless given
  bool create = true;  ///< make the file when it is not there
  /// When a commit returns, it is on the disk. `normal` may lose the last commits to a power failure, never the database.
  enum class durability : std::uint8_t { full, normal, off } synchronous = durability::full;
  /// How much of the file is read through a map, which is faster on large tables; but a disk that fails to read it then ends the process.
  std::uint32_t mapped_mebibytes = 0;
  std::chrono::milliseconds statement_timeout{10'000};  ///< waiting for a lock included
};

/// Opens the file, in WAL mode. Moments are kept as whole microseconds since 1970. After fork the child must not use it: it is refused.
/// Throws errc::permission (cannot open), errc::not_found (not there, and not to be made), errc::malformed (not a database).
[[nodiscard]] std::unique_ptr<connection> connect_sqlite(const sqlite_options& options);

}  // namespace HOLDFAST_NAMESPACE::sql
