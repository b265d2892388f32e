#include "support/nats_server.hpp"

#include <utility>

namespace holdfast::test {

nats_server::nats_server(std::vector<std::string> arguments) : place_("nats", {}, medium::memory) {
  const auto place = place_.path();
  prepare({.name = "NATS",
           .user = {},
           .data = place,
           .log = place / "nats.log",
           .command =
               [place, arguments = std::move(arguments)](std::uint16_t port) {
                 std::vector<std::string> argv{
                     "nats-server",        "-a",  "127.0.0.1", "-p",
                     std::to_string(port), "-js", "-sd",       place.string()};
                 argv.insert(argv.end(), arguments.begin(), arguments.end());
                 return argv;
               },
           .ready =
               [](pid_t, const std::string& log) {
                 return log.find("Server is ready") != std::string::npos;
               },
           .port_taken =
               [](const std::string& log) {
                 return log.find("address already in use") != std::string::npos;
               },
           .before_start = {},
           .stop_signal = SIGTERM},
          [this](std::uint16_t port) { port_ = port; });
  start();
}

nats_server::~nats_server() { kill9(); }  // before the directory goes

}  // namespace holdfast::test
