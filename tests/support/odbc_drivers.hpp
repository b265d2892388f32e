#pragma once

/// \file
/// ODBC connection strings for the servers of the tests. Drivers are named by their files: nothing
/// needs to be registered on the machine.

#include <cstdint>
#include <string>

namespace holdfast::test {

/// `odbc:Driver=...` for the database of a server on 127.0.0.1 with the user `holdfast`, password
/// `secret`.
[[nodiscard]] std::string odbc_postgres(std::uint16_t port, const std::string& database);
[[nodiscard]] std::string odbc_mariadb(std::uint16_t port, const std::string& database);
[[nodiscard]] std::string odbc_sqlite(const std::string& file);
/// FreeTDS, which speaks the protocol of SQL Server.
[[nodiscard]] std::string odbc_tds(std::uint16_t port, const std::string& database);

}  // namespace holdfast::test
