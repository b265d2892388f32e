// holdfast redis doctor.

#include <holdfast/redis.hpp>

#include "commands/groups.hpp"
#include "commands/redis/findings.hpp"
#include "terminal/password_option.hpp"
#include "terminal/text.hpp"

#include <string>
#include <vector>

namespace holdfast::cli {

namespace {

std::string printable_or_unknown(std::string_view text) {
  return printable(text.empty() ? "?" : text);
}

void print_server(console& io, const examined_server& server) {
  const auto& report = server.report;
  io.out << printable(report.address) << "  " << printable_or_unknown(report.role) << "  Redis "
         << printable_or_unknown(report.version) << "  " << printable_or_unknown(report.mode)
         << "  round trip " << grouped(static_cast<std::uint64_t>(report.round_trip.count()))
         << " us\n";
  for (const auto& finding : server.findings) {
    std::string level(to_string(finding.level));
    level.resize(6, ' ');
    io.out << "  " << level << printable(finding.message)
           << (finding.remedy.empty() ? "" : "; " + printable(finding.remedy)) << "\n";
  }
}

std::string json_bool(bool value) { return value ? "true" : "false"; }

std::string server_json(const examined_server& server) {
  const auto& report = server.report;
  std::string out =
      "{\"address\":" + json_string(report.address) +
      ",\"version\":" + json_string(report.version) + ",\"mode\":" + json_string(report.mode) +
      ",\"role\":" + json_string(report.role) + ",\"replicas\":" + std::to_string(report.replicas) +
      ",\"aof\":" + json_bool(report.aof) + ",\"appendfsync\":" + json_string(report.appendfsync) +
      ",\"eviction\":" + json_string(report.eviction) +
      ",\"max_memory\":" + std::to_string(report.max_memory) +
      ",\"used_memory\":" + std::to_string(report.used_memory) +
      ",\"waitaof\":" + json_bool(report.can_wait_disk) +
      ",\"round_trip_us\":" + std::to_string(report.round_trip.count()) + ",\"findings\":[";
  for (std::size_t i = 0; i < server.findings.size(); ++i) {
    const auto& finding = server.findings[i];
    out.append(i == 0 ? "" : ",")
        .append("{\"level\":")
        .append(json_string(to_string(finding.level)));
    out.append(",\"what\":")
        .append(json_string(finding.message))
        .append(",\"cure\":")
        .append(json_string(finding.remedy))
        .append("}");
  }
  return out + "]}";
}

/// `127.0.0.1:6379` and `/run/redis.sock` as URLs. Other texts stay unchanged.
std::string with_scheme(const std::string& address) {
  if (address.starts_with('/')) return "redis+unix://" + address;
  if (address.empty() || address.find('/') != std::string::npos) return address;
  const auto colon = address.rfind(':');
  const bool has_port = colon != std::string::npos && colon + 1 < address.size() &&
                        address.find_first_not_of("0123456789", colon + 1) == std::string::npos;
  return colon == std::string::npos || has_port ? "redis://" + address : address;
}

void add_redis_doctor(command group) {
  command cmd = group.add("doctor", "Check whether a Redis is fit for sequences and the outbox");
  cmd.about(
      "Examines the server, the master that Sentinels name, or every node of a Cluster. Changes "
      "nothing. Exit code 1 if a finding "
      "is bad: data would be lost.\n"
      "Pass a password with --password-file, or in the variable HOLDFAST_REDIS_PASSWORD, rather "
      "than in the URL.");
  cmd.examples(
      "holdfast redis doctor redis://127.0.0.1:6379\n"
      "holdfast redis doctor redis+cluster://10.0.0.1:6379,10.0.0.2:6379 --json");
  const option url =
      cmd.positional(
             "URL",
             "redis://host:6379, rediss://, redis+unix:///path, redis+cluster://host1,host2, "
             "redis+sentinel://host1,host2/mymaster; host:6379 and /path are accepted as well")
          .required();
  const password_option password(cmd);
  const option json = cmd.flag("--json", "Print one JSON object");
  cmd.run([=](console& io) {
    const redis::client client(with_scheme(url.text()), {.password = password.read(io)});
    const auto servers = examine_servers(client);
    bool fit = true;
    for (const auto& server : servers)
      for (const auto& finding : server.findings) fit = fit && finding.level != severity::bad;
    if (json.is_set()) {
      io.out << "{\"fit\":" << json_bool(fit) << ",\"servers\":[";
      for (std::size_t i = 0; i < servers.size(); ++i)
        io.out << (i == 0 ? "" : ",") << server_json(servers[i]);
      io.out << "]}\n";
    } else {
      for (const auto& server : servers) print_server(io, server);
      io.out << (fit ? "fit" : "not fit: see the bad findings") << "\n";
    }
    return fit ? exit_ok : exit_negative;
  });
}

}  // namespace

void add_redis_commands(command root) {
  command group = root.add("redis", "Check a Redis or a Redis Cluster");
  group.examples("holdfast redis doctor redis://127.0.0.1:6379");
  add_redis_doctor(group);
}

}  // namespace holdfast::cli
