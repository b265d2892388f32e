#include "sql/odbc/login.hpp"

#include <holdfast/error.hpp>

#include "base/secret.hpp"
#include "base/trim.hpp"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace HOLDFAST_NAMESPACE::detail::sql::odbc {

namespace {

constexpr std::size_t longest_string = std::numeric_limits<SQLSMALLINT>::max();

/// Appends a value of a connection string. In braces it may contain any character.
void append_braced(std::string& text, std::string_view value) {
  text += '{';
  for (const char c : value) text.append(c == '}' ? 2 : 1, c);
  text += '}';
}

std::string upper_case(std::string_view text) {
  std::string result(text);
  std::ranges::transform(result, result.begin(), [](char c) {
    return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  });
  return result;
}

// Each driver has attributes of its own, and no list of drivers is complete. Attributes that are
// known to load code or to write files are refused with any value. Any other attribute may contain
// a slash only if it is known to name data, a server or a credential.

/// Attributes that load a library, name the directory of libraries, pass settings to such a library
/// or write a file. CX and OPTION are numbers whose bits are settings of psqlODBC and MariaDB's
/// driver; one bit enables a log.
constexpr std::string_view loading_or_writing_attributes[]{
    "LOADEXT",         "PLUGIN_DIR", "PLUGINDIR", "CLIENT",    "GSSCLIENT", "TRANSLATIONDLL",
    "TRANSLATIONNAME", "SETUP",      "PQOPT",     "SAVEFILE",  "DUMPFILE",  "TRACEFILE",
    "LOGFILE",         "LOGDIR",     "LOGPATH",   "LOG_QUERY", "CX",        "OPTION"};

/// Attributes that enable a log at a path that the driver chooses, with statements and values in
/// it. An empty value and 0 disable it. B2 and B3 are the short names of the first two in psqlODBC.
constexpr std::string_view log_switches[]{"DEBUG", "COMMLOG", "B2", "B3", "TRACE"};

/// Attributes that name data, a server or a credential. Their values may contain slashes.
constexpr std::string_view slash_attributes[]{
    // data
    "DATABASE", "DB", "DBNAME", "DBQ", "DESCRIPTION", "STMT", "INITSTMT", "CONNSETTINGS",
    // server and client
    "SERVER", "SERVERNAME", "HOST", "HOSTNAME", "ADDRESS", "ADDR", "SOCKET", "APP", "WSID",
    // credentials
    "UID", "USER", "USERNAME", "PWD", "PASSWORD", "SERVERSPN", "REALM",
    // certificates and keys
    "SSLCA", "SSLCAPATH", "SSLCERT", "SSLKEY", "SSLCRL", "SSLCRLPATH", "SSLFPLIST", "TLSPEERFPLIST",
    "TLSKEYPWD", "SERVERKEY", "CAFILE", "CRLFILE", "SERVERCERTIFICATE", "TRUSTSTORE", "KEYSTORE"};

bool contains(std::span<const std::string_view> names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

bool is_known_to_load_or_write(std::string_view name, std::string_view value) {
  if (value.starts_with('{') && value.ends_with('}'))
    value = trimmed(value.substr(1, value.size() - 2));
  if (contains(loading_or_writing_attributes, name)) return !value.empty();
  if (contains(log_switches, name)) return !value.empty() && value != "0";
  return (name == "DRIVER" || name == "FILEDSN") && value.find('/') != std::string_view::npos;
}

bool may_load_or_write(std::string_view name, std::string_view value) {
  return is_known_to_load_or_write(name, value) ||
         (value.find('/') != std::string_view::npos && !contains(slash_attributes, name));
}

/// Whether the predicate holds for an `attribute=value` of the string. It gets the name in upper
/// case. A value in braces may contain semicolons, but not all drivers know braces.
template <class Predicate>
bool any_attribute(std::string_view text, bool with_braces, Predicate predicate) {
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
      // A closing brace inside the value is doubled.
      for (end = value.find('{') + 1; end < value.size(); ++end) {
        if (value[end] != '}') continue;
        if (end + 1 == value.size() || value[end + 1] != '}') break;
        ++end;
      }
    }
    end = std::min(value.find(';', std::min(end, value.size())), value.size());
    if (predicate(upper_case(trimmed(text.substr(0, equals))), trimmed(value.substr(0, end))))
      return true;
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
  return any_attribute(connection_string, true, [](std::string_view name, std::string_view) {
    return name == "PWD" || name == "PASSWORD";
  });
}

std::vector<SQLWCHAR> complete_connection_string(const odbc_options& options) {
  std::string text;
  // Reserves enough: growing would leave copies of the password in memory.
  text.reserve(options.connection_string.size() +
               2 * (options.user.size() + options.password.size()) + 16);
  text += options.connection_string;
  if (!options.user.empty()) append_braced(text += ";UID=", options.user);
  if (!options.password.empty()) append_braced(text += ";PWD=", options.password);
  const secret_text complete(std::move(text));
  auto wide = to_wide(complete.view());
  if (wide.size() > longest_string) {
    throw error(errc::too_large,
                "the ODBC connection string has " + std::to_string(wide.size()) +
                    " characters, and ODBC takes at most " + std::to_string(longest_string) +
                    "; keep the settings in a data source and write odbc:DSN=name",
                {.path = "url"});
  }
  // unixODBC reads the string before it has a driver, and keeps only the low byte of each UTF-16
  // unit: U+012F becomes a slash.
  std::string low_bytes(wide.size(), '\0');
  std::ranges::transform(wide, low_bytes.begin(),
                         [](SQLWCHAR unit) { return static_cast<char>(unit & 0xFFU); });
  const secret_text as_read(std::move(low_bytes));
  // Some drivers do not know braces. For them the parts of a value in braces are attributes, too.
  // But such a value may also be a password, so only attributes that are known are refused in it.
  const bool refused = any_attribute(as_read.view(), true, may_load_or_write) ||
                       any_attribute(as_read.view(), false, is_known_to_load_or_write);
  if (refused && !files_are_allowed()) {
    throw error(errc::invalid_argument,
                "the ODBC connection string has an attribute that can load a library into this "
                "process or write a file (Driver or another attribute with a path, LoadExt, "
                "PLUGIN_DIR, DumpFile, TraceFile, pqopt or the like); name a driver of "
                "odbcinst.ini and keep such attributes in a data source of odbc.ini, or set "
                "HOLDFAST_ODBC_FILES=1 if every source of URLs is trusted",
                {.path = "url"});
  }
  return wide;
}

}  // namespace HOLDFAST_NAMESPACE::detail::sql::odbc
