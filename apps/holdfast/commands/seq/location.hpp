#pragma once

/// \file
/// Options of the commands that use sequences.

#include <holdfast/database.hpp>
#include <holdfast/sequence.hpp>

#include "commands/database_location.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::cli {

/// Parses an integer, which may be negative. Throws errc::invalid_argument with the name of the
/// option.
[[nodiscard]] std::int64_t parse_integer(std::string_view option, const std::string& text);

/// The database of a sequence, and how it is kept safe.
struct sequence_location : database_location {
  option create;
  option unsafe;
  option fence;
  option super_store;

  explicit sequence_location(command& cmd);

  [[nodiscard]] database open_database(console& io) const { return open_url(io, url.text()); }
  /// Throws errc::invalid_argument if there is no fence on Redis, or a fence on another database.
  [[nodiscard]] sequence_store_options store_options(console& io) const;
  /// Takes the values of a fence from a definition, if that has a fence of the same kind.
  static void read_fence(const std::string& definition, sequence_store_options& options);
  /// Returns one line for each connection to another machine that is not encrypted.
  [[nodiscard]] std::vector<std::string> plaintext_warnings(console& io) const;

 private:
  /// Logs only with --allow-unsafe: otherwise a problem is the error of the command.
  [[nodiscard]] database open_url(console& io, const std::string& database_url) const;
};

/// The name of a sequence and its ids. All users of a sequence need the same values: what is not
/// set is taken from the definition that is kept with the counter.
struct sequence_definition {
  option name;
  option start;
  option increment;
  option max;
  option min;

  explicit sequence_definition(command& cmd);
  /// The definition of the counter, where one is kept, and the options that are set.
  [[nodiscard]] sequence_options options(const sequence_location& location, console& io) const;
  /// The options that are set, and defaults.
  [[nodiscard]] sequence_options new_options(const sequence_location& location, console& io) const;

 private:
  void add_options(sequence_options& options) const;
};

}  // namespace holdfast::cli
