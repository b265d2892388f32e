#include "sql/odbc_string.hpp"

#include <holdfast/error.hpp>

#include "base/secret.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <limits>
#include <string>
#include <string_view>
#include <utility>

namespace HOLDFAST_NAMESPACE::sql::odbc {

namespace {

constexpr std::size_t longest_string = std::numeric_limits<SQLSMALLINT>::max();

/// A value of a connection string: braces let it contain anything.
void append_braced(std::string& words, std::string_view value) {
  words += '{';
  for (const char c : value) words.append(c == '}' ? 2 : 1, c);
  words += '}';
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view spaces = " \t\r\n\v\f";
  text.remove_prefix(std::min(text.find_first_not_of(spaces), text.size()));
  return text.substr(0, text.find_last_not_of(spaces) + 1);
}

bool names_a_file(std::string_view attribute, std::string_view value) {
  std::string name(trimmed(attribute));
  std::ranges::transform(name, name.begin(), [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; });
  constexpr std::array<std::string_view, 3> loaded{"DRIVER", "FILEDSN", "SAVEFILE"};
  return std::ranges::find(loaded, name) != loaded.end() && value.find('/') != std::string_view::npos;
}

/// Looks at every `attribute=value`. A value in braces may contain semicolons; readers differ in what else braces mean, so the string is
/// read both ways, and one that names a file in either is refused.
bool names_a_file(std::string_view text, bool with_braces) {
  while (!text.empty()) {
    const auto equals = text.find('=');
    if (equals == std::string_view::npos) return false;
    if (const auto semicolon = text.find(';'); semicolon < equals) {
      text.remove_prefix(semicolon + 1);
      continue;
    }
    const auto value = text.substr(equals + 1);
    std::size_t end = 0;
    if (with_braces && trimmed(value).starts_with('{')) {
      // A closing brace in the value is written twice.
      for (end = value.find('{') + 1; end < value.size(); ++end) {
        if (value[end] != '}') continue;
        if (end + 1 == value.size() || value[end + 1] != '}') break;
        ++end;
      }
    }
    end = std::min(value.find(';', std::min(end, value.size())), value.size());
    if (names_a_file(text.substr(0, equals), value.substr(0, end))) return true;
    text = value.substr(std::min(end + 1, value.size()));
  }
  return false;
}

bool files_are_allowed() {
  const char* const allowed = std::getenv("HOLDFAST_ODBC_FILES");  // NOLINT(concurrency-mt-unsafe)
  return allowed != nullptr && std::string_view(allowed) == "1";
}

}  // namespace

std::vector<SQLWCHAR> complete_connection_string(const odbc_options& options) {
  std::string text;
  text.reserve(options.connection_string.size() + 2 * (options.user.size() + options.password.size()) + 16);  // growing leaves copies
  text += options.connection_string;
  if (!options.user.empty()) append_braced(text += ";UID=", options.user);
  if (!options.password.empty()) append_braced(text += ";PWD=", options.password);
  const secret_text complete(std::move(text));
  auto wide = to_wide(complete.view());
  if (wide.size() > longest_string) {
    throw error(errc::too_large,
                "the ODBC connection string has " + std::to_string(wide.size()) + " characters, and ODBC takes at most " +
                    std::to_string(longest_string) + "; keep the settings in a data source and write odbc:DSN=name",
                {.path = "url"});
  }
  // unixODBC keeps only the low byte of each UTF-16 unit when it reads the string before it has a driver: U+012F becomes a slash.
  std::string low_bytes(wide.size(), '\0');
  std::ranges::transform(wide, low_bytes.begin(), [](SQLWCHAR unit) { return static_cast<char>(unit & 0xFFU); });
  const secret_text as_read(std::move(low_bytes));
  if ((names_a_file(as_read.view(), true) || names_a_file(as_read.view(), false)) && !files_are_allowed()) {
    throw error(errc::invalid_argument,
                "the ODBC connection string names a file in Driver, FILEDSN or SAVEFILE, which would be loaded into this process or "
                "written; name a driver of odbcinst.ini, or set HOLDFAST_ODBC_FILES=1 if every source of URLs is trusted",
                {.path = "url"});
  }
  return wide;
}

}  // namespace HOLDFAST_NAMESPACE::sql::odbc
