#pragma once

/// \file
/// Servers that answer, and do not write.

#include "support/mariadb_server.hpp"
#include "support/postgres_server.hpp"

#include <string>

namespace holdfast::test {

/// Sessions that exist notice it a moment later.
inline void make_read_only(const postgres_server& server, bool on) {
  (void)server.run(std::string("ALTER SYSTEM SET default_transaction_read_only = ") +
                   (on ? "on" : "off"));
  (void)server.run("SELECT pg_reload_conf()");
}
inline void make_read_only(const mariadb_server& server, bool on) {
  (void)server.run(std::string("SET GLOBAL read_only = ") + (on ? "1" : "0"));
}

}  // namespace holdfast::test
