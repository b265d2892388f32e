#pragma once

/// \file
/// The file of a backup: written under another name until it is complete, and checked before it is
/// restored.

#include "terminal/output.hpp"

#include <cstdint>
#include <memory>
#include <string>

namespace holdfast::cli {

/// A file that gets its name when it is complete. Its mode is 0600. Thread-safety: none.
class backup_file {
 public:
  /// Creates `<name>.partial`. Throws errc::unavailable if it cannot be created.
  explicit backup_file(std::string name);
  backup_file(const backup_file&) = delete;
  backup_file& operator=(const backup_file&) = delete;
  /// Removes the file unless it is complete.
  ~backup_file();

  void write(const std::string& line);
  /// Syncs the file and gives it its name, which replaces an older file. Throws errc::unavailable.
  void complete();

 private:
  [[noreturn]] void fail(const std::string& action) const;

  std::string name_;
  std::string partial_name_;
  int descriptor_ = -1;
  std::unique_ptr<output> output_{};
};

/// The first line of a backup.
struct backup_header {
  std::uint64_t lanes = 0;  ///< of the outbox; 0: the backup has none
};

/// Reads a whole file and returns its header. Throws errc::malformed if it is not a complete
/// backup, and errc::unsupported_type if a later version has written it.
[[nodiscard]] backup_header check_backup(const std::string& name);

}  // namespace holdfast::cli
