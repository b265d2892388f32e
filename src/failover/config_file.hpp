#pragma once

#include <holdfast/version.hpp>

#include "failover/config_keys.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace HOLDFAST_NAMESPACE::config {

struct problem {
  std::size_t line = 0;  ///< 0: of the whole
  std::string text{};
};

/// A table with nothing in it: it may still have a wrong name.
struct empty_table {};
/// A date, a list of lists: nothing that any key takes.
struct other_value {};

/// One `key = value` of the file.
struct file_value {
  using content = std::variant<empty_table, other_value, bool, std::int64_t, double, std::string, std::vector<std::string>>;

  key_path path{};
  std::size_t line = 0;
  content is{};
  bool substituted = false;  ///< a part comes from the environment, and must not be shown
};

/// Gives the value of an environment variable; nothing when it is not set.
using environment = std::function<std::optional<std::string>(const std::string& name)>;
[[nodiscard]] HOLDFAST_API environment process_environment();

/// Reads TOML and puts the environment's values in the places of `${NAME}` and `${NAME:default}`; `$${` is a plain `${`. What is wrong is
/// added to `problems`; nothing that could be a secret is repeated there. What stands beside `failover`, and does not look
/// like it, is left out: the file may be the application's own.
[[nodiscard]] HOLDFAST_API std::vector<file_value> read_toml(std::string_view text, const environment& lookup,
                                                             std::vector<problem>& problems);

/// The text of a file. Throws errc::unavailable when it cannot be read, errc::too_large beyond 1 MiB.
[[nodiscard]] HOLDFAST_API std::string read_text(const std::string& file);

}  // namespace HOLDFAST_NAMESPACE::config
