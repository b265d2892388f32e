#include "sql/odbc_string.hpp"

#include <holdfast/error.hpp>

#include "base/secret.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <limits>
#include <span>
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

std::string upper_case(std::string_view text) {
  std::string result(text);
  std::ranges::transform(result, result.begin(), [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; });
  return result;
}

// Drivers act on attributes of their own, and no list of drivers is complete. Attributes that are known to load code or to write files are
// refused whatever their value is; any other attribute may have a slash only if it is known to name data, a server or a credential.

/// Load a library or name the directory of libraries, hand settings to such a library, or write a file. CX and OPTION are numbers whose bits
/// are settings of psqlODBC and MariaDB; one of them is a log, with the password in it.
constexpr std::array<std::string_view, 18> loading_or_writing{
    "LOADEXT",  "PLUGIN_DIR", "PLUGINDIR", "CLIENT",  "GSSCLIENT", "TRANSLATIONDLL", "TRANSLATIONNAME", "SETUP", "PQOPT",
    "SAVEFILE", "DUMPFILE",   "TRACEFILE", "LOGFILE", "LOGDIR",    "LOGPATH",        "LOG_QUERY",       "CX",    "OPTION"};

/// Switch on a log at a path of the driver's own, with statements and values in it. 0 and nothing are off. B2 and B3 are psqlODBC's short
/// names for the first two.
constexpr std::array<std::string_view, 5> log_switches{"DEBUG", "COMMLOG", "B2", "B3", "TRACE"};

constexpr std::array<std::string_view, 39> with_slashes{"DATABASE",
                                                        "DB",
                                                        "DBNAME",
                                                        "DBQ",
                                                        "SERVER",
                                                        "SERVERNAME",
                                                        "HOST",
                                                        "HOSTNAME",
                                                        "ADDRESS",
                                                        "ADDR",
                                                        "SOCKET",
                                                        "UID",
                                                        "USER",
                                                        "USERNAME",
                                                        "PWD",
                                                        "PASSWORD",
                                                        "DESCRIPTION",
                                                        "APP",
                                                        "WSID",
                                                        "SERVERSPN",
                                                        "REALM",
                                                        "STMT",
                                                        "INITSTMT",
                                                        "CONNSETTINGS",
                                                        "SSLCA",
                                                        "SSLCAPATH",
                                                        "SSLCERT",
                                                        "SSLKEY",
                                                        "SSLCRL",
                                                        "SSLCRLPATH",
                                                        "SSLFPLIST",
                                                        "TLSPEERFPLIST",
                                                        "TLSKEYPWD",
                                                        "SERVERKEY",
                                                        "CAFILE",
                                                        "CRLFILE",
                                                        "SERVERCERTIFICATE",
                                                        "TRUSTSTORE",
                                                        "KEYSTORE"};

bool is_one_of(std::span<const std::string_view> names, std::string_view name) { return std::ranges::find(names, name) != names.end(); }

bool is_known_to_load_or_write(std::string_view name, std::string_view value) {
  if (value.starts_with('{') && value.ends_with('}')) value = trimmed(value.substr(1, value.size() - 2));
  if (is_one_of(loading_or_writing, name)) return !value.empty();
  if (is_one_of(log_switches, name)) return !value.empty() && value != "0";
  return (name == "DRIVER" || name == "FILEDSN") && value.find('/') != std::string_view::npos;
}

bool can_load_or_write(std::string_view name, std::string_view value) {
  return is_known_to_load_or_write(name, value) || (value.find('/') != std::string_view::npos && !is_one_of(with_slashes, name));
}

/// Whether the test is true for any `attribute=value`. A value in braces may contain semicolons.
template <class Test>
bool any_attribute(std::string_view text, bool with_braces, Test test) {
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
    if (test(upper_case(trimmed(text.substr(0, equals))), trimmed(value.substr(0, end)))) return true;
    text = value.substr(std::min(end + 1, value.size()));
  }
  return false;
}

bool files_are_allowed() {
  const char* const allowed = std::getenv("HOLDFAST_ODBC_FILES");  // NOLINT(concurrency-mt-unsafe)
  return allowed != nullptr && std::string_view(allowed) == "1";
}

}  // namespace

bool has_password(std::string_view connection_string) {
  return any_attribute(connection_string, true,
                       [](std::string_view name, std::string_view) { return name == "PWD" || name == "PASSWORD"; });
}

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
  // Some drivers do not know braces: what stands in them is looked at as well, where it may also be a part of a password.
  const bool refused =
      any_attribute(as_read.view(), true, can_load_or_write) || any_attribute(as_read.view(), false, is_known_to_load_or_write);
  if (refused && !files_are_allowed()) {
    throw error(
        errc::invalid_argument,
        "the ODBC connection string has an attribute that can load a library into this process or write a file (Driver or another "
        "attribute with a path, LoadExt, PLUGIN_DIR, DumpFile, TraceFile, pqopt or the like); name a driver of odbcinst.ini and keep "
        "such attributes in a data source of odbc.ini, or set HOLDFAST_ODBC_FILES=1 if every source of URLs is trusted",
        {.path = "url"});
  }
  return wide;
}

}  // namespace HOLDFAST_NAMESPACE::sql::odbc
