#include "support/odbc_drivers.hpp"

#include <cstdlib>
#include <filesystem>
#include <stdexcept>

namespace holdfast::test {
namespace {

/// Before any thread: drivers of the tests are files, which URLs may not name without it.
const bool files_are_allowed = ::setenv("HOLDFAST_ODBC_FILES", "1", 1) == 0;

/// Debian keeps them below the directory of the machine's architecture.
std::string driver(const std::string& file) {
  if (!files_are_allowed) throw std::runtime_error("the environment cannot be changed");
  for (const auto& place : std::filesystem::directory_iterator("/usr/lib")) {
    const auto found = place.path() / "odbc" / file;
    std::error_code none;
    if (std::filesystem::exists(found, none)) return found.string();
  }
  throw std::runtime_error("no ODBC driver " + file +
                           " below /usr/lib: scripts/packages says what the tests need");
}

std::string string_for(const std::string& file, std::uint16_t port, const std::string& database,
                       const std::string& more) {
  return "odbc:Driver=" + driver(file) + ";Server=127.0.0.1;Port=" + std::to_string(port) +
         ";Database=" + database + ";UID=holdfast;PWD=secret" + more;
}

}  // namespace

std::string odbc_postgres(std::uint16_t port, const std::string& database) {
  return string_for("psqlodbcw.so", port, database, "");
}

std::string odbc_mariadb(std::uint16_t port, const std::string& database) {
  return string_for("libmaodbc.so", port, database, "");
}

std::string odbc_sqlite(const std::string& file) {
  return "odbc:Driver=" + driver("libsqlite3odbc.so") + ";Database=" + file;
}

std::string odbc_tds(std::uint16_t port, const std::string& database) {
  return string_for("libtdsodbc.so", port, database, ";TDS_Version=7.4;ClientCharset=UTF-8");
}

}  // namespace holdfast::test
