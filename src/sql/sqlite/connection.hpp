#pragma once

#include <holdfast/version.hpp>

#include "sql/public_names.hpp"

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

namespace HOLDFAST_NAMESPACE::detail::sql {

struct sqlite_options {
  std::string file;
  std::string vfs{};   ///< empty: SQLite's default
  bool create = true;  ///< create the file if it is absent
  /// Only read. Otherwise a file that this process may not write is also opened, and writes fail.
  bool read_only = false;
  /// `full`: a commit is on the disk when it returns. `normal` may lose the last commits in a power
  /// failure, but does not damage the file. `off` may do both.
  enum class durability : std::uint8_t { full, normal, off } synchronous = durability::full;
  /// How much of the file is memory-mapped. That is faster for large tables, but an I/O error while
  /// reading then ends the process (SIGBUS).
  std::uint32_t mapped_mebibytes = 0;
  /// Includes the time to wait for a lock.
  std::chrono::milliseconds statement_timeout{10'000};
};

/// Opens the file in WAL mode, or only for reading. A file in WAL mode whose log cannot be created,
/// because the directory cannot be written, is read as one that does not change: changes that
/// another process makes while it is open are then not seen. Throws errc::permission (cannot open),
/// errc::not_found (the file is absent and `create` is false), errc::malformed (not a database).
///
/// Fork: the child must not use the connection (its calls throw); destroying it there does not
/// touch the file.
[[nodiscard]] std::unique_ptr<connection> connect_sqlite(const sqlite_options& options);

/// True if the file of a connection was renamed, deleted or replaced since it was opened: writes go
/// to a file that other programs do not see. False for connections to other databases.
[[nodiscard]] HOLDFAST_API bool file_was_replaced(connection& connection) noexcept;

}  // namespace HOLDFAST_NAMESPACE::detail::sql
