#pragma once

/// \file
/// The tables and keys that a benchmark creates on the database of the user, and their removal.

#include <holdfast/database.hpp>
#include <holdfast/outbox.hpp>

#include "terminal/command.hpp"

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::cli {

/// A database, and names on it that no other program uses. Removes everything that has one of these
/// names when it is destroyed: the tables, the Redis keys, and an SQLite file that did not exist.
/// What cannot be removed is printed as a warning.
///
/// Create it before the stores, sequences and outboxes on it: they must be destroyed first.
class private_area {
 public:
  /// Opens the database for `threads` threads. Connects to an SQL database. Throws holdfast::error.
  private_area(console& io, std::string url, std::string password, std::size_t threads);
  private_area(const private_area&) = delete;
  private_area& operator=(const private_area&) = delete;
  ~private_area();

  /// The SQL dialect; without SQL the scheme of the URL: `postgresql`, `redis+cluster`, `memory`.
  [[nodiscard]] std::string kind() const;

  /// A store, and the sequences of a block store, with names of their own.
  [[nodiscard]] std::shared_ptr<store> open_store();
  [[nodiscard]] sequence_store_options sequence_location();
  /// An outbox. `purpose` is a part of its name.
  [[nodiscard]] outbox open_outbox(std::string_view purpose, outbox_options options);

  [[nodiscard]] const database& connections() const { return database_; }

 private:
  [[nodiscard]] bool on_sql() const;
  [[nodiscard]] bool on_redis() const;
  /// Throws if the server does not answer, so that the failure is not followed by that of removing.
  void connect_redis();
  void remove_created_file() const;
  /// Remembers the tables that these statements create.
  void add_tables(const std::vector<std::string>& create_statements);
  void remove() const;
  void drop_tables() const;
  void remove_keys() const;

  console& io_;
  std::string url_;
  std::string password_;
  std::string prefix_;
  /// The path of an SQLite file that this benchmark creates; otherwise empty.
  std::string created_file_{};
  database database_;
  std::vector<std::string> tables_{};
  /// There may be Redis keys.
  bool has_keys_ = false;
};

}  // namespace holdfast::cli
