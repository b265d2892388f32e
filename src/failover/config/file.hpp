#pragma once

/// \file
/// Reads a TOML file into a list of values.

#include "failover/config/keys.hpp"

#include <functional>
#include <optional>
#include <utility>
#include <variant>

namespace HOLDFAST_NAMESPACE::detail::failover::config {

struct problem {
  std::size_t line = 0;  ///< 0: concerns the whole file
  std::string text{};
};

/// An empty table. Its name may be wrong.
struct empty_table {};
/// A value that no key accepts: a date, or a list of anything but texts.
struct other_value {};

/// One `key = value`.
struct file_value {
  using content = std::variant<empty_table, other_value, bool, std::int64_t, double, std::string,
                               std::vector<std::string>>;

  key_path path{};
  std::size_t line = 0;
  content value{};
  bool substituted = false;  ///< contains text from the environment, which must not be shown
};

/// Returns the value of an environment variable, or nothing if it is not set.
using environment = std::function<std::optional<std::string>(const std::string& name)>;
[[nodiscard]] HOLDFAST_API environment process_environment();

/// Whether the values below a top-level key are read.
using section_filter = std::function<bool(std::string_view name)>;
/// `failover` and similar names: the file may also configure the application.
[[nodiscard]] HOLDFAST_API bool is_failover_section(std::string_view name);

/// Parses TOML and replaces `${NAME}` and `${NAME:default}` by environment variables; `$${` stands
/// for `${`. Adds problems to `problems`, without text that could be secret. Skips top-level keys
/// that the filter does not admit.
[[nodiscard]] HOLDFAST_API std::vector<file_value> read_toml(
    std::string_view text, const environment& lookup, std::vector<problem>& problems,
    const section_filter& admits = is_failover_section);

/// Throws errc::invalid_argument with the problems in the order of their lines; `file` is the path
/// in the error.
[[noreturn]] HOLDFAST_API void throw_problems(const std::string& file,
                                              std::vector<problem> problems);

/// The text of a file. Throws errc::unavailable if it cannot be read, errc::too_large if it is
/// larger than 1 MiB.
[[nodiscard]] HOLDFAST_API std::string read_text(const std::string& file);

}  // namespace HOLDFAST_NAMESPACE::detail::failover::config
