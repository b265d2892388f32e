#pragma once

/// \file
/// `--password-file`, of every command that takes the URL of a database.

#include "command.hpp"

#include <string>
#include <string_view>

namespace holdfast::cli {

struct password_option {
  option file;

  explicit password_option(command& at);

  /// Empty: not given. Warns about a file that every user of the machine may read. Throws errc::permission if it cannot be read.
  [[nodiscard]] std::string read(console& io) const;
  /// The URL with the password in it, for those who only take a URL. Throws errc::invalid_argument if it has no place for one.
  [[nodiscard]] std::string added_to(std::string url, console& io) const;
};

}  // namespace holdfast::cli
