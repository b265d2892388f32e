// holdfast store rekey.

#include <holdfast/database.hpp>
#include <holdfast/store/sealed.hpp>
#include <holdfast/store/tenants.hpp>

#include "commands/groups.hpp"
#include "commands/store/key_ring_options.hpp"
#include "commands/store/location.hpp"
#include "terminal/progress.hpp"
#include "terminal/stop_signals.hpp"
#include "terminal/text.hpp"

#include <stop_token>
#include <string>
#include <vector>

namespace holdfast::cli {

namespace {

/// Parses tenants, `acme` or `acme=ACME_`, to table prefixes by tenant.
auto parse_tenants(const std::vector<std::string>& words) {
  decltype(store_options::realms) realms;
  for (const auto& word : words) {
    const auto equals = word.find('=');
    auto id = word.substr(0, equals);
    if (id.empty())
      throw error(errc::invalid_argument,
                  "a tenant has no id; write for example --tenant acme=ACME_");
    auto prefix = equals == std::string::npos
                      ? tenant_realms({{.id = id}}, tenant_strategy::table_prefix).at(id)
                      : word.substr(equals + 1);
    if (!realms.emplace(std::move(id), std::move(prefix)).second)
      throw error(errc::duplicate, "a tenant occurs twice; name each tenant once");
  }
  return realms;
}

void add_to(rekey_report& sum, const rekey_report& report) {
  sum.total += report.total;
  sum.seen += report.seen;
  sum.changed += report.changed;
  sum.current += report.current;
  sum.tombstones += report.tombstones;
  sum.unreadable += report.unreadable;
  sum.moved += report.moved;
  sum.stopped = sum.stopped || report.stopped;
  if (sum.problem.empty()) sum.problem = report.problem;
}

void print_rekey(console& io, const rekey_report& report, bool json, bool only_count) {
  if (json) {
    io.out << "{\"" << (only_count ? "to_do" : "changed") << "\":" << std::to_string(report.changed)
           << ",\"current\":" << std::to_string(report.current)
           << ",\"tombstones\":" << std::to_string(report.tombstones)
           << ",\"moved\":" << std::to_string(report.moved)
           << ",\"unreadable\":" << std::to_string(report.unreadable) << "}\n";
    return;
  }
  io.out << (only_count ? "to do       " : "changed     ") << grouped(report.changed)
         << "\ncurrent     " << grouped(report.current) << "\ntombstones  "
         << grouped(report.tombstones) << "\nmoved       " << grouped(report.moved)
         << "\nunreadable  " << grouped(report.unreadable) << "\n";
}

}  // namespace

void add_rekey_command(command group) {
  command cmd = group.add("rekey", "Seal payloads again, with the current key");
  cmd.about(
      "Entries that are sealed with the current key are skipped, so the command can be interrupted "
      "and run again: after SIGINT or SIGTERM it says how far it came. An entry that another "
      "process writes or erases meanwhile is also skipped. "
      "Exit code 1 if entries could not be opened, or, with --check, have to be sealed.\n"
      "A key may be removed from the ring when no service seals with it any more, and a later run "
      "had nothing to do.");
  cmd.examples(
      "holdfast store rekey --store postgresql://localhost/app --key-file /etc/app/keys\n"
      "holdfast store rekey --store sqlite:answers.db --key-variable APP_KEYS --name country "
      "--check\n"
      "holdfast store rekey --store sqlite:answers.db --key-file keys --allow-plaintext");
  const database_location location(cmd);
  const key_ring_options keys(cmd);
  const option names =
      cmd.values("--name", "N", "Only this effective name; repeat for more (default all)");
  const option tenants =
      cmd.values("--tenant", "ID=PREFIX", "A tenant and its table prefix; repeat for more");
  const option check =
      cmd.flag("--check", "Change nothing; count the entries that have to be sealed");
  const option plaintext = cmd.flag("--allow-plaintext", "Also seal plaintext payloads");
  const option java = cmd.flag(
      "--allow-java", "Also open payloads that the Java library sealed with the key aesgcm");
  const option base64 =
      cmd.flag("--allow-base64", "Also read payloads in the Base64 of the Java library");
  const option peer =
      cmd.flag("--peer-java", "Seal in the format of the Java library, which shares the table");
  const option zone = cmd.value(
      "--zone", "Z", "Time zone of columns that store none: UTC; on PostgreSQL also Europe/Paris");
  const option json = cmd.flag("--json", "Print one JSON object");
  cmd.run([=](console& io) {
    const stop_signals stop;  // before the database has threads
    const store_options options{.prefix = location.prefix.text(),
                                .peer = peer.is_set() ? holdfast::peer::java : holdfast::peer::none,
                                .zone = zone.text(),
                                .realms = parse_tenants(tenants.all()),
                                .probe = start_probe::off,
                                .start = start_mode::require};
    sealed_options sealing{.keys = keys.read(),
                           .read_java = java.is_set(),
                           .read_base64 = base64.is_set(),
                           .read_plaintext = plaintext.is_set()};
    const auto sealed = make_sealed(location.open_database(io).store(options), std::move(sealing));
    std::vector<std::string> realms;
    for (const auto& [realm, prefix] : options.realms) realms.push_back(realm);
    if (realms.empty()) realms.emplace_back();

    std::stop_source stopping;
    progress shown(io, check.is_set() ? "checked" : "rekeyed", false);
    rekey_report sum;
    for (const auto& realm : realms) {
      add_to(sum, sealed->rekey({.names = names.all(),
                                 .realm = realm,
                                 .only_count = check.is_set(),
                                 .progress =
                                     [&](const rekey_report& so_far) {
                                       shown.update(sum.seen + so_far.seen,
                                                    sum.total + so_far.total);
                                       if (stop.wait(0)) (void)stopping.request_stop();
                                     },
                                 .stop = stopping.get_token()}));
    }
    shown.clear();
    if (sum.stopped) throw stopped(check.is_set() ? "checked" : "rekeyed", sum.seen, sum.total);
    print_rekey(io, sum, json.is_set(), check.is_set());
    if (sum.unreadable > 0)
      io.warn(std::to_string(sum.unreadable) +
              " entries could not be opened; the first: " + sum.problem);
    return sum.unreadable > 0 || (check.is_set() && sum.changed > 0) ? exit_negative : exit_ok;
  });
}

}  // namespace holdfast::cli
