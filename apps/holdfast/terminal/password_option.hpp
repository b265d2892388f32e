#pragma once

/// \file
/// `--password-file` of the commands that take the URL of a database.

#include "terminal/command.hpp"

#include <string>
#include <string_view>

namespace holdfast::cli {

struct password_option {
  option file;

  explicit password_option(command& cmd);

  /// Returns an empty text if the option is not set. Warns if every user of the machine may read
  /// the file. Throws errc::permission if it cannot be read.
  [[nodiscard]] std::string read(console& io) const;
  /// Inserts the password into the URL, for callers that accept only a URL. Throws
  /// errc::invalid_argument if the URL cannot have one.
  [[nodiscard]] std::string added_to(std::string url, console& io) const;
};

}  // namespace holdfast::cli
