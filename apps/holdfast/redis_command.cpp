#include <holdfast/redis.hpp>

#include "groups.hpp"
#include "password_option.hpp"
#include "redis_findings.hpp"
#include "text.hpp"

#include <string>
#include <vector>

namespace holdfast::cli {

namespace {

struct examined {
  redis::server_report report;
  std::vector<finding> findings{};
};

std::string shown(std::string_view what, std::string_view otherwise) { return printable(what.empty() ? otherwise : what); }

void print(console& io, const examined& server) {
  const auto& r = server.report;
  io.out << printable(r.address) << "  " << shown(r.role, "?") << "  Redis " << shown(r.version, "?") << "  " << shown(r.mode, "?")
         << "  round trip " << grouped(static_cast<std::uint64_t>(r.round_trip.count())) << " us\n";
  for (const auto& each : server.findings) {
    std::string level(to_string(each.level));
    level.resize(6, ' ');
    io.out << "  " << level << printable(each.what) << (each.cure.empty() ? "" : "; " + printable(each.cure)) << "\n";
  }
}

std::string truth(bool yes) { return yes ? "true" : "false"; }

std::string to_json(const examined& server) {
  const auto& r = server.report;
  std::string out =
      "{\"address\":" + json_string(r.address) + ",\"version\":" + json_string(r.version) + ",\"mode\":" + json_string(r.mode) +
      ",\"role\":" + json_string(r.role) + ",\"replicas\":" + std::to_string(r.replicas) + ",\"aof\":" + truth(r.aof) +
      ",\"appendfsync\":" + json_string(r.appendfsync) + ",\"eviction\":" + json_string(r.eviction) +
      ",\"max_memory\":" + std::to_string(r.max_memory) + ",\"used_memory\":" + std::to_string(r.used_memory) +
      ",\"waitaof\":" + truth(r.can_wait_disk) + ",\"round_trip_us\":" + std::to_string(r.round_trip.count()) + ",\"findings\":[";
  for (std::size_t i = 0; i < server.findings.size(); ++i) {
    const auto& each = server.findings[i];
    out.append(i == 0 ? "" : ",").append("{\"level\":").append(json_string(to_string(each.level)));
    out.append(",\"what\":").append(json_string(each.what)).append(",\"cure\":").append(json_string(each.cure)).append("}");
  }
  return out + "]}";
}

void add_redis_doctor(command group) {
  command at = group.add("doctor", "Say whether a Redis is fit for sequences and the outbox");
  at.about(
      "Asks the server, or every node of a Cluster, and changes nothing. Exit code 1 when something is bad: data would be lost.\n"
      "A password is better given with --password-file, or in the variable HOLDFAST_REDIS_PASSWORD, than in the URL.");
  at.examples(
      "holdfast redis doctor redis://127.0.0.1:6379\n"
      "holdfast redis doctor redis+cluster://10.0.0.1:6379,10.0.0.2:6379 --json");
  const option url = at.positional("URL", "redis://host:6379, rediss://, redis+unix:///path, redis+cluster://host1,host2").required();
  const password_option password(at);
  const option json = at.flag("--json", "Print one JSON object");
  at.run([=](console& io) {
    const redis::client with(url.text(), {.password = password.read(io)});
    std::vector<examined> servers;
    for (auto& report : with.probe()) servers.push_back({.report = std::move(report)});
    bool fit = true;
    for (auto& each : servers) {
      each.findings = examine(each.report, with.is_cluster());
      if (auto slots = examine_slots(with, each.report)) each.findings.push_back(std::move(*slots));
      for (const auto& found : each.findings) fit = fit && found.level != severity::bad;
    }
    if (json.given()) {
      io.out << "{\"fit\":" << truth(fit) << ",\"servers\":[";
      for (std::size_t i = 0; i < servers.size(); ++i) io.out << (i == 0 ? "" : ",") << to_json(servers[i]);
      io.out << "]}\n";
    } else {
      for (const auto& each : servers) print(io, each);
      io.out << (fit ? "fit" : "not fit: see what is bad") << "\n";
    }
    return fit ? exit_fine : exit_no;
  });
}

}  // namespace

void add_redis_commands(command root) {
  command group = root.add("redis", "A Redis, or a Redis Cluster, for sequences and the outbox");
  group.examples("holdfast redis doctor redis://127.0.0.1:6379");
  add_redis_doctor(group);
}

}  // namespace holdfast::cli
