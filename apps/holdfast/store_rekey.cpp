#include <holdfast/database.hpp>
#include <holdfast/store/sealed.hpp>
#include <holdfast/store/tenants.hpp>

#include "groups.hpp"
#include "progress.hpp"
#include "store_place.hpp"
#include "text.hpp"

#include <string>
#include <vector>

namespace holdfast::cli {

namespace {

/// Where the keys come from. Never from the command line itself, which every user of the machine can read.
struct key_choice {
  option file;
  option variable;

  explicit key_choice(command& at)
      : file(at.value("--key-file", "FILE", "The key ring: one id:base64 a line, the current key first").file()),
        variable(at.value("--key-variable", "NAME", "Instead of a file: the environment variable that holds the key ring")) {}

  [[nodiscard]] sealing_ring read() const {
    if (file.given() == variable.given())
      throw error(errc::invalid_argument, "say where the keys are: --key-file FILE, or --key-variable NAME");
    return file.given() ? sealing_ring::from_file(file.text()) : sealing_ring::from_environment(variable.text());
  }
};

/// `acme` or `acme=ACME_`, as realms of the store.
store_options with_tenants(store_options options, const std::vector<std::string>& words) {
  for (const auto& word : words) {
    const auto equals = word.find('=');
    auto id = word.substr(0, equals);
    if (id.empty()) throw error(errc::invalid_argument, "a tenant has no id; write --tenant acme=ACME_");
    auto before = equals == std::string::npos ? tenant_realms({{.id = id}}, tenant_strategy::table_prefix).at(id) : word.substr(equals + 1);
    if (!options.realms.emplace(std::move(id), std::move(before)).second)
      throw error(errc::duplicate, "a tenant is there twice; name each once");
  }
  return options;
}

void add_up(rekey_report& all, const rekey_report& more) {
  all.total += more.total;
  all.seen += more.seen;
  all.changed += more.changed;
  all.current += more.current;
  all.tombstones += more.tombstones;
  all.unreadable += more.unreadable;
  all.moved += more.moved;
  if (all.problem.empty()) all.problem = more.problem;
}

void print(console& io, const rekey_report& report, bool json, bool only_count) {
  if (json) {
    io.out << "{\"" << (only_count ? "to_do" : "changed") << "\":" << std::to_string(report.changed)
           << ",\"current\":" << std::to_string(report.current) << ",\"tombstones\":" << std::to_string(report.tombstones)
           << ",\"moved\":" << std::to_string(report.moved) << ",\"unreadable\":" << std::to_string(report.unreadable) << "}\n";
    return;
  }
  io.out << (only_count ? "to do       " : "changed     ") << grouped(report.changed) << "\ncurrent     " << grouped(report.current)
         << "\ntombstones  " << grouped(report.tombstones) << "\nmoved       " << grouped(report.moved) << "\nunreadable  "
         << grouped(report.unreadable) << "\n";
}

}  // namespace

void add_rekey_command(command group) {
  command at = group.add("rekey", "Seal the payloads anew, with the current key");
  at.about(
      "Entries that are sealed with the current key are skipped: it can be interrupted and run again. An entry that somebody else\n"
      "writes or erases meanwhile is left to them. Exit code 1 when some could not be opened, or, with --check, were not done yet.\n"
      "A key may be removed from the ring when no service seals with it any more and a run after that found nothing to do.");
  at.examples(
      "holdfast store rekey --store postgresql://localhost/app --key-file /etc/app/keys\n"
      "holdfast store rekey --store sqlite:answers.db --key-variable APP_KEYS --name country --check\n"
      "holdfast store rekey --store sqlite:answers.db --key-file keys --allow-plaintext");
  const database_place place(at);
  const key_choice keys(at);
  const option names = at.values("--name", "N", "Only this effective name; repeat for more. All unless given");
  const option tenants = at.values("--tenant", "ID=PREFIX", "A tenant and what stands in front of its table; repeat for more");
  const option check = at.flag("--check", "Change nothing; say what there is to do");
  const option plaintext = at.flag("--allow-plaintext", "Also seal what is not sealed at all");
  const option java = at.flag("--allow-java", "Also open what the Java library sealed with the key aesgcm");
  const option base64 = at.flag("--allow-base64", "Also read the Java library's Base64");
  const option peer = at.flag("--peer-java", "The table is shared with the Java library: seal as it does");
  const option zone = at.value("--zone", "Z", "The zone of time columns without one: UTC; on PostgreSQL also Europe/Paris");
  const option json = at.flag("--json", "Print one JSON object");
  at.run([=](console& io) {
    const auto options = with_tenants({.prefix = place.prefix.text(),
                                       .peer = peer.given() ? holdfast::peer::java : holdfast::peer::none,
                                       .zone = zone.text(),
                                       .probe = start_probe::off},
                                      tenants.all());
    sealed_options how{.keys = keys.read(), .read_java = java.given(), .read_base64 = base64.given(), .read_plaintext = plaintext.given()};
    const auto sealed = make_sealed(place.open_database(io).store(options), std::move(how));
    std::vector<std::string> realms;
    for (const auto& [realm, before] : options.realms) realms.push_back(realm);
    if (realms.empty()) realms.emplace_back();

    progress shown(io, check.given() ? "looked at" : "rekeyed", false);
    rekey_report all;
    for (const auto& realm : realms) {
      add_up(all,
             sealed->rekey({.names = names.all(), .realm = realm, .only_count = check.given(), .progress = [&](const rekey_report& so_far) {
                              shown.at(all.seen + so_far.seen, all.total + so_far.total);
                            }}));
    }
    shown.end();
    print(io, all, json.given(), check.given());
    if (all.unreadable > 0) io.warn(std::to_string(all.unreadable) + " entries could not be opened; the first: " + all.problem);
    return all.unreadable > 0 || (check.given() && all.changed > 0) ? exit_no : exit_fine;
  });
}

}  // namespace holdfast::cli
