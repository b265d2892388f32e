#include "support/h2_server.hpp"

#include <filesystem>
#include <stdexcept>

namespace holdfast::test {

std::string h2_endpoint::run_client(const std::string& sql, const std::string& database) const {
  auto result = run_program(
      {.argv = {"psql", "-X", "-q", "-A", "-t", "-w", "-F", "\t", "-v", "ON_ERROR_STOP=1",
                "host=127.0.0.1 port=" + std::to_string(port()) +
                    " user=holdfast dbname=" + database + " sslmode=disable",
                "-c", sql},
       .environment = {"PGPASSWORD=secret", "PGCONNECT_TIMEOUT=10", "PGOPTIONS", "PGSERVICE",
                       "PGHOSTADDR"}});
  if (!result.status.success())
    throw std::runtime_error("psql: " + result.status.describe() + ": " + result.error +
                             result.output);
  return std::move(result.output);
}

void h2_endpoint::make_database(const std::string&) const {}  // the first connection makes it

void h2_endpoint::remove_database(const std::string& name) const {
  (void)run_client("DROP ALL OBJECTS DELETE FILES", name);
}

h2_server::h2_server(server_options options) : h2_endpoint(0) {
  constexpr auto jar = "/usr/share/java/h2.jar";
  if (!std::filesystem::exists(jar))
    throw std::runtime_error("no H2 in /usr/share/java: scripts/packages says what the tests need");
  if (options.directory.empty()) temporary_.emplace("h2", "", medium::memory);
  const auto place = temporary_ ? temporary_->path() : options.directory;
  const auto data = place / "data";
  std::filesystem::create_directories(data);
  prepare({.name = "H2",
           .user = {},
           .data = data,
           .log = place / "h2.log",
           .command =
               [data](std::uint16_t port) {
                 return std::vector<std::string>{"java",
                                                 "-Xmx256m",
                                                 "-XX:+UseSerialGC",
                                                 "-XX:TieredStopAtLevel=1",
                                                 "-Duser.timezone=UTC",
                                                 "-Dh2.bindAddress=127.0.0.1",
                                                 "-cp",
                                                 jar,
                                                 "org.h2.tools.Server",
                                                 "-pg",
                                                 "-pgPort",
                                                 std::to_string(port),
                                                 "-baseDir",
                                                 data.string(),
                                                 "-ifNotExists"};
               },
           .ready =
               [](pid_t, const std::string& log) {
                 return log.find("PG server running at") != std::string::npos;
               },
           .port_taken =
               [](const std::string& log) {
                 return log.find("port may be in use") != std::string::npos ||
                        log.find("BindException") != std::string::npos;
               },
           .before_start = {},
           .stop_signal = SIGTERM},
          [this](std::uint16_t port) { move_to(port); });
  start();
}

h2_server::~h2_server() { kill9(); }  // before the directory goes

}  // namespace holdfast::test
