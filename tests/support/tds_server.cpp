#include "support/tds_server.hpp"

#include "support/postgres_server.hpp"
#include "support/shared_server.hpp"

namespace holdfast::test {

namespace {

const postgres_endpoint& keeper() { return shared_server<postgres_server>(); }

}  // namespace

std::string tds_endpoint::run_client(const std::string& sql, const std::string& database) const {
  return keeper().run(sql, database);
}

void tds_endpoint::make_database(const std::string& name) const {
  keeper().run("CREATE DATABASE \"" + name + "\" OWNER holdfast", "postgres");
}

void tds_endpoint::remove_database(const std::string& name) const { keeper().drop_database(name); }

tds_server::tds_server() : tds_endpoint(0) {
  const auto target =
      "host=127.0.0.1 port=" + std::to_string(keeper().port()) + " user=holdfast password=secret";
  prepare(
      {.name = "the TDS server",
       .user = {},
       .data = temporary_.path(),
       .log = temporary_.path() / "tds.log",
       .command =
           [target](std::uint16_t port) {
             return std::vector<std::string>{"/usr/bin/python3",
                                             "-B",
                                             HOLDFAST_TEST_TDS_SERVER,
                                             std::to_string(port),
                                             target,
                                             "holdfast",
                                             "secret"};
           },
       .ready = [](pid_t,
                   const std::string& log) { return log.find("listening") != std::string::npos; },
       .port_taken =
           [](const std::string& log) {
             return log.find("Address already in use") != std::string::npos;
           },
       .before_start = {},
       .stop_signal = SIGTERM},
      [this](std::uint16_t port) { move_to(port); });
  start();
}

tds_server::~tds_server() { kill9(); }

}  // namespace holdfast::test
