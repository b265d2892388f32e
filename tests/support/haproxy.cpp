#include "support/haproxy.hpp"

#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <utility>

namespace holdfast::test {
namespace {

constexpr auto haproxy_user = "postgres";  // it has the client program of the checks

void write_proxy_file(const std::filesystem::path& file, const std::string& text) {
  std::ofstream out(file);
  out << text;
  if (!out.flush()) throw std::runtime_error("cannot write " + file.string());
}

/// Succeeds for a server that accepts writes. HAProxy passes the address of the server as the third
/// and fourth argument.
std::filesystem::path write_check(const std::filesystem::path& place) {
  const auto file = place / "check";
  write_proxy_file(file,
                   "#!/bin/sh\n"
                   "export PGPASSWORD=secret PGCONNECT_TIMEOUT=2\n"
                   "state=$(psql -X -q -A -t -h \"$3\" -p \"$4\" -U holdfast -d holdfast "
                   "-c 'SELECT pg_is_in_recovery()' 2>/dev/null)\n"
                   "[ \"$state\" = f ]\n");
  std::filesystem::permissions(file, std::filesystem::perms(0755));
  return file;
}

std::string configuration(std::uint16_t port, const std::vector<std::uint16_t>& servers,
                          const std::filesystem::path& check) {
  std::string text =
      "global\n  insecure-fork-wanted\n  external-check\n"
      "defaults\n  mode tcp\n  timeout connect 2s\n  timeout client 1h\n  timeout server 1h\n"
      "  timeout check 1s\n  option external-check\n"
      "  external-check path \"/usr/bin:/bin\"\n  external-check command " +
      check.string() + "\nlisten primary\n  bind 127.0.0.1:" + std::to_string(port) +
      "\n  default-server inter 500ms fall 2 rise 1\n";
  for (const auto server : servers)
    text +=
        "  server s" + std::to_string(server) + " 127.0.0.1:" + std::to_string(server) + " check\n";
  return text;
}

}  // namespace

haproxy::haproxy(std::vector<std::uint16_t> servers)
    : place_("haproxy", haproxy_user, medium::memory) {
  const auto place = place_.path();
  const auto check = write_check(place);
  prepare(
      {.name = "HAProxy",
       .user = haproxy_user,
       .data = place,
       .log = place / "haproxy.log",
       .command =
           [place, check, servers = std::move(servers)](std::uint16_t port) {
             const auto file = place / "haproxy.cfg";
             write_proxy_file(file, configuration(port, servers, check));
             return std::vector<std::string>{"haproxy", "-f", file.string(), "-db"};
           },
       // The standby is found by the first checks.
       .ready = [](pid_t,
                   const std::string& log) { return log.find(" is DOWN") != std::string::npos; },
       .port_taken =
           [](const std::string& log) {
             return log.find("cannot bind socket") != std::string::npos;
           },
       .before_start = {},
       .stop_signal = SIGTERM},
      [this](std::uint16_t port) { port_ = port; });
  start();
}

haproxy::~haproxy() { kill9(); }  // before the directory goes

}  // namespace holdfast::test
