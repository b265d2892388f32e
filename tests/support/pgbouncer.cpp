#include "support/pgbouncer.hpp"

#include <fstream>
#include <stdexcept>

namespace holdfast::test {
namespace {

constexpr auto pgbouncer_user = "postgres";  // it refuses root

void write_setting(const std::filesystem::path& file, const std::string& text) {
  std::ofstream out(file);
  out << text;
  if (!out.flush()) throw std::runtime_error("cannot write " + file.string());
}

}  // namespace

pgbouncer::pgbouncer(const postgres_endpoint& server, std::vector<std::string> settings)
    : place_("pgbouncer", pgbouncer_user, medium::memory) {
  const auto place = place_.path();
  write_setting(place / "users", "\"holdfast\" \"secret\"\n");
  prepare(
      {.name = "PgBouncer",
       .user = pgbouncer_user,
       .data = place,
       .log = place / "pgbouncer.log",
       .command =
           [place, at = server.port(), settings = std::move(settings)](std::uint16_t port) {
             std::string text =
                 "[databases]\n* = host=127.0.0.1 port=" + std::to_string(at) +
                 "\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = " + std::to_string(port) +
                 "\nunix_socket_dir =\npool_mode = transaction\nauth_type = "
                 "scram-sha-256\nauth_file = " +
                 (place / "users").string() + "\n";
             for (const auto& each : settings) text.append(each).append("\n");
             write_setting(place / "pgbouncer.ini", text);
             return std::vector<std::string>{"pgbouncer", (place / "pgbouncer.ini").string()};
           },
       .ready = [](pid_t,
                   const std::string& log) { return log.find("process up") != std::string::npos; },
       .port_taken =
           [](const std::string& log) {
             return log.find("Address already in use") != std::string::npos;
           },
       .before_start = {},
       .stop_signal = SIGTERM},
      [this](std::uint16_t port) { port_ = port; });
  start();
}

pgbouncer::~pgbouncer() { kill9(); }  // before the directory goes

}  // namespace holdfast::test
