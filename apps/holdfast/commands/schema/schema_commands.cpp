// holdfast schema: the versions of the tables, and their upgrade.

#include <holdfast/database.hpp>
#include <holdfast/schema.hpp>

#include "commands/database_location.hpp"
#include "commands/groups.hpp"
#include "terminal/password_option.hpp"
#include "terminal/table.hpp"
#include "terminal/text.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

namespace holdfast::cli {

namespace {

struct schema_location {
  option url;
  option prefix;
  option outbox_prefix;
  password_option password;

  explicit schema_location(command& cmd)
      : url(cmd.positional("URL",
                           "The database: sqlite:app.db, postgresql://host/name, "
                           "mysql://host/name, h2://host/name, odbc:DSN=name, redis://host:6379")
                .required()),
        prefix(cmd.value("--prefix", "P",
                         "Prefix of the tables of store and sequences: MYAPP_, SCHEMA.MYAPP_")),
        outbox_prefix(
            cmd.value("--outbox-prefix", "P",
                      "Name of the outbox, with a hash tag in braces (default {holdfast})")),
        password(cmd) {}

  [[nodiscard]] database open(console& io) const {
    database_options options;
    options.log = io.sink();
    options.password = password.read(io);
    return holdfast::open(url_to_open(url.text(), false), std::move(options));
  }
  [[nodiscard]] schema_options options() const {
    return {.prefix = prefix.text(), .outbox_prefix = outbox_prefix.text()};
  }
};

std::string version_text(const schema_status& status) {
  return status.version ? std::to_string(*status.version) : "-";
}

std::string_view explanation(schema_verdict verdict) {
  switch (verdict) {
    case schema_verdict::absent:
      return "absent";
    case schema_verdict::current:
      return "current";
    case schema_verdict::older:
      return "older, but works; run: holdfast schema upgrade";
    case schema_verdict::too_old:
      return "too old for this program; run: holdfast schema upgrade";
    case schema_verdict::newer:
      return "newer than this program; update the program";
  }
  return "";
}

std::string joined(const std::vector<std::string>& texts) {
  std::string list;
  for (const auto& text : texts) list.append(list.empty() ? "" : ", ").append(text);
  return list;
}

void print_table(output& out, const std::vector<schema_status>& sets) {
  table rows({"set", "version", "program", "verdict", "tables"});
  for (const auto& status : sets)
    rows.add({status.set, version_text(status), std::to_string(status.current),
              std::string(explanation(status.verdict)), printable(joined(status.tables))});
  rows.print(out);
}

std::string status_json(const schema_status& status) {
  return "{\"set\":" + json_string(status.set) + ",\"tables\":" + json_list(status.tables) +
         ",\"version\":" + (status.version ? std::to_string(*status.version) : "null") +
         ",\"current\":" + std::to_string(status.current) +
         ",\"oldest\":" + std::to_string(status.oldest) +
         ",\"verdict\":" + json_string(to_string(status.verdict)) + "}";
}

bool all_absent(const std::vector<schema_status>& sets) {
  return std::ranges::all_of(
      sets, [](const auto& status) { return status.verdict == schema_verdict::absent; });
}

void warn_if_absent(console& io, bool absent) {
  if (absent)
    io.warn("the database has no tables with these names; check --prefix and --outbox-prefix");
}

void add_status(command group) {
  command cmd = group.add("status", "Show the schema versions of the tables");
  cmd.about(
      "Changes nothing. Exit code 0 if every set that exists has the version of this program, "
      "otherwise 1.");
  cmd.examples(
      "holdfast schema status sqlite:app.db\n"
      "holdfast schema status postgresql://host/name --prefix MYAPP_ --json");
  const schema_location location(cmd);
  const option json = cmd.flag("--json", "Print one JSON object");
  cmd.run([=](console& io) {
    const auto sets = read_schema_status(location.open(io), location.options());
    if (json.is_set()) {
      io.out << "{\"sets\":[";
      for (std::size_t i = 0; i < sets.size(); ++i)
        io.out << (i == 0 ? "" : ",") << status_json(sets[i]);
      io.out << "]}\n";
    } else {
      print_table(io.out, sets);
    }
    const bool absent = all_absent(sets);
    warn_if_absent(io, absent);
    const bool up_to_date = std::ranges::all_of(sets, [](const auto& status) {
      return status.verdict == schema_verdict::absent || status.verdict == schema_verdict::current;
    });
    return up_to_date && !absent ? exit_ok : exit_negative;
  });
}

void add_upgrade(command group) {
  command cmd = group.add("upgrade", "Bring the tables to the schema version of this program");
  cmd.about(
      "Prints the statements and runs them. First update every program that uses the tables: new "
      "programs work with tables of the version before, but old ones refuse new tables.\n"
      "It can be repeated after a failure, and two can run at the same time.");
  cmd.examples(
      "holdfast schema upgrade --dry-run postgresql://host/name\n"
      "holdfast schema upgrade postgresql://host/name --prefix MYAPP_");
  const schema_location location(cmd);
  const option dry_run = cmd.flag("--dry-run", "Only print the statements");
  const option json = cmd.flag("--json", "Print one JSON object for each set of tables");
  cmd.run([=](console& io) {
    const auto mode = dry_run.is_set() ? upgrade_mode::dry_run : upgrade_mode::run;
    const auto upgrades = upgrade_schema(location.open(io), location.options(), mode);
    bool absent = true;
    for (const auto& upgrade : upgrades) {
      const auto& before = upgrade.before;
      if (before.verdict == schema_verdict::absent) continue;
      absent = false;
      if (json.is_set()) {
        io.out << "{\"set\":" << json_string(before.set)
               << ",\"from\":" << (before.version ? std::to_string(*before.version) : "null")
               << ",\"to\":" << std::to_string(before.current)
               << ",\"statements\":" << json_list(upgrade.statements) << "}\n";
        continue;
      }
      io.out << "-- " << before.set << " (" << printable(before.tables.front()) << "): version "
             << version_text(before);
      if (before.version != before.current) io.out << " to " << std::to_string(before.current);
      io.out << (upgrade.statements.empty() ? ", nothing to do\n" : "\n");
      for (const auto& statement : upgrade.statements) io.out << statement << ";\n";
    }
    warn_if_absent(io, absent);
    return absent ? exit_negative : exit_ok;
  });
}

}  // namespace

void add_schema_commands(command root) {
  command group = root.add("schema", "Show and upgrade the schema versions of the tables");
  group.about("docs/upgrading.md describes an upgrade step by step.");
  group.examples(
      "holdfast schema status sqlite:app.db\n"
      "holdfast schema upgrade --dry-run sqlite:app.db");
  add_status(group);
  add_upgrade(group);
}

}  // namespace holdfast::cli
