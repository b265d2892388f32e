// holdfast store put, get, list, rm, stats and schema.

#include <holdfast/database.hpp>
#include <holdfast/key/failover.hpp>

#include "commands/groups.hpp"
#include "commands/schema_dialect.hpp"
#include "commands/store/entry_pages.hpp"
#include "commands/store/entry_text.hpp"
#include "commands/store/location.hpp"
#include "terminal/arguments.hpp"
#include "terminal/text.hpp"
#include "terminal/time_text.hpp"

#include <string>
#include <utility>

namespace holdfast::cli {

namespace {

/// Options that select one entry: by its key, or by the arguments of the call.
struct entry_selection {
  option name;
  option key;
  option args;

  explicit entry_selection(command& cmd)
      : name(cmd.value("--name", "N", "Effective name: the domain of the point, or its name")
                 .required()),
        key(cmd.value("--key", "K", "Key of the entry (FAILOVER_KEY)")),
        args(cmd.values("--args", "ARG",
                        "Instead of --key: an argument of the call; repeat for more, in order")) {}

  [[nodiscard]] std::string selected_key() const {
    if (key.is_set() == args.is_set())
      throw error(
          errc::invalid_argument,
          "exactly one key is required; give --key K, or --args ARG for each argument of the call");
    if (key.is_set()) return key.text();
    const std::string point = name.text();
    return key::failover_keys({.name = point})
        .of(read_arguments(args.all(), key::scheme::failover, false));
  }
};

void add_put(command group) {
  command cmd = group.add("put", "Write an entry");
  cmd.about(
      "The version of the entry is the current time, so it replaces an older entry. If the "
      "existing entry is newer (another machine's clock is ahead), nothing is stored, a warning is "
      "printed, and the exit code is 1. A payload must be JSON, unless --raw is set.");
  cmd.examples(
      "holdfast store put --store sqlite:answers.db --create-schema --name country --key FR "
      "--payload '{\"name\":\"France\"}'\n"
      "holdfast store put --store sqlite:answers.db --name country --args FR --payload '{}' "
      "--class app.Country --expire 24h\n"
      "holdfast store put --store sqlite:answers.db --name country --key XX --tombstone");
  const store_location location(cmd);
  const entry_selection selection(cmd);
  const option payload = cmd.value("--payload", "JSON", "The payload");
  const option raw = cmd.flag("--raw", "Accept any text as payload, not only JSON");
  const option tombstone =
      cmd.flag("--tombstone", "Instead of a payload: store that the answer is nothing");
  const option payload_class = cmd.value("--class", "C", "Class of the payload: app.Country");
  const option expire =
      cmd.value("--expire", "TIME", "Time until the entry expires: 90s, 15m, 1h (default), 7d");
  cmd.run([=](console& io) {
    if (payload.is_set() == tombstone.is_set())
      throw error(errc::invalid_argument,
                  "exactly one payload is required; give --payload JSON or --tombstone");
    const auto lifetime = parse_duration(expire.text("1h"));
    if (lifetime.count() == 0)
      throw error(errc::invalid_argument,
                  "--expire is 0, so the entry would not be stored; give a longer time");
    const timestamp now = system_clock()->now();
    entry e{.name = selection.name.text(),
            .key = selection.selected_key(),
            .as_of = now,
            .expire_on = now + lifetime};
    if (payload.is_set()) {
      if (!raw.is_set()) require_json_payload(payload.text());
      e.payload = payload.text();
      e.payload_class = payload_class.text();
    }
    const auto entries = location.open(io);
    entries->put(e);
    const auto stored = entries->find(e.name, e.key);
    if (!stored || stored->as_of <= e.as_of) return exit_ok;
    io.warn("not stored: a newer entry exists, of " + iso_time(stored->as_of) +
            "; compare the clocks, or remove it with: holdfast store rm");
    return exit_negative;
  });
}

void add_get(command group) {
  command cmd = group.add("get", "Print the payload of an entry");
  cmd.about("Exit code 1 if the entry does not exist, is a tombstone, or has expired.");
  cmd.examples(
      "holdfast store get --store sqlite:answers.db --name country --key FR\n"
      "holdfast store get --store sqlite:answers.db --name country --args FR --json");
  const store_location location(cmd);
  const entry_selection selection(cmd);
  const option json =
      cmd.flag("--json", "Print the whole entry as one JSON object, even if it has expired");
  cmd.run([=](console& io) {
    const auto stored = location.open(io)->find(selection.name.text(), selection.selected_key());
    if (!stored) return exit_negative;
    const bool valid = !stored->tombstone() && system_clock()->now() <= stored->expire_on;
    if (json.is_set()) io.out << entry_json(*stored) << "\n";
    // Escaped on a terminal, which a payload must not control; verbatim for files and programs.
    else if (valid)
      io.out << (io.out.is_terminal() ? printable(*stored->payload) : *stored->payload) << "\n";
    return valid ? exit_ok : exit_negative;
  });
}

void add_store_list(command group) {
  command cmd = group.add("list", "List the entries of a name");
  cmd.examples(
      "holdfast store list --store sqlite:answers.db --name country\n"
      "holdfast store list --store sqlite:answers.db --name country --json");
  const store_location location(cmd);
  const option name = cmd.value("--name", "N", "Effective name").required();
  const option limit = cmd.value("--limit", "COUNT", "Maximum number of entries (default 100)")
                           .number(1, 1'000'000'000);
  const option json = cmd.flag("--json", "Print one JSON object per line");
  cmd.run([=](console& io) {
    const auto entries = location.open(io);
    const timestamp now = system_clock()->now();
    bool needs_header = !json.is_set();
    const auto unreadable =
        for_each_entry(*entries, name.text(), limit.count(100), [&](const entry& e) {
          // Printed with the first entry, so that an error does not follow a header.
          if (std::exchange(needs_header, false))
            io.out << "key                                   age       expires   bytes  class\n";
          io.out << (json.is_set() ? entry_json(e) : entry_line(e, now)) << "\n";
        });
    if (unreadable > 0)
      io.warn(std::to_string(unreadable) + " rows cannot be read and were skipped");
    return exit_ok;
  });
}

void add_rm(command group) {
  command cmd = group.add("rm", "Remove an entry");
  cmd.about("Removes the current version. Exit code 1 if the entry does not exist.");
  cmd.examples("holdfast store rm --store sqlite:answers.db --name country --key FR");
  const store_location location(cmd);
  const entry_selection selection(cmd);
  cmd.run([=](console& io) {
    const auto entries = location.open(io);
    const auto key = selection.selected_key();
    const auto stored = entries->find(selection.name.text(), key);
    const bool erased = stored && entries->erase(selection.name.text(), key, stored->as_of);
    return erased ? exit_ok : exit_negative;
  });
}

void add_store_stats(command group) {
  command cmd =
      group.add("stats", "Show the health of the store, and the number of entries of a name");
  cmd.examples("holdfast store stats --store sqlite:answers.db --name country --json");
  const store_location location(cmd);
  const option name = cmd.value("--name", "N", "Count the entries of this effective name");
  const option json = cmd.flag("--json", "Print one JSON object");
  cmd.run([=](console& io) {
    const auto entries = location.open(io);
    const auto health = entries->health();
    if (!health.available) throw error(errc::unavailable, health.problem);
    const auto count = name.is_set() ? entries->count(name.text()) : 0;
    if (json.is_set()) {
      io.out << "{\"available\":true,\"native_upsert\":"
             << (health.native_upsert ? "true" : "false")
             << (name.is_set() ? ",\"entries\":" + std::to_string(count) : "") << "}\n";
    } else {
      io.out << "available      yes\nnative upsert  "
             << (health.native_upsert ? "yes" : "no, falling back to insert and update") << "\n";
      if (name.is_set()) io.out << "entries        " << grouped(count) << "\n";
    }
    return exit_ok;
  });
}

/// The table that the Java library documents.
std::string published_schema(const std::string& prefix) {
  (void)store_schema(sql::dialect_id::sqlite, {.prefix = prefix});  // checks the prefix
  const std::string table = prefix + "FAILOVER_STORE";
  const std::string index = "IDX_" + table.substr(table.rfind('.') + 1) + "_EXPIRE_ON";
  return "CREATE TABLE " + table +
         " (\n"
         "  FAILOVER_NAME VARCHAR(50) NOT NULL,\n"
         "  FAILOVER_KEY VARCHAR(256) NOT NULL,\n"
         "  AS_OF TIMESTAMP(9) WITH TIME ZONE NOT NULL,\n"
         "  EXPIRE_ON TIMESTAMP(9) WITH TIME ZONE NOT NULL,\n"
         "  PAYLOAD VARCHAR(4000),\n"
         "  PAYLOAD_CLASS VARCHAR(256),\n"
         "  PRIMARY KEY (FAILOVER_NAME, FAILOVER_KEY)\n"
         ");\n"
         "CREATE INDEX " +
         index + " ON " + table + " (EXPIRE_ON);\n";
}

void add_store_schema(command group) {
  command cmd = group.add("schema", "Print the SQL that creates the table");
  cmd.about(
      "With --dialect the column types are those that suit the database best. With --published "
      "they are those in the documentation of the Java library.");
  cmd.examples(
      "holdfast store schema --dialect postgresql --prefix MYAPP_\n"
      "holdfast store schema --published");
  const option dialect =
      cmd.value("--dialect", "", "SQL dialect of the database")
          .one_of({"sqlite", "postgresql", "mysql", "mariadb", "h2", "sqlserver", "oracle"});
  const option prefix = cmd.value("--prefix", "P", "Prefix of the table name");
  const payload_column_option column(cmd);
  const option published =
      cmd.flag("--published", "Print the table that the Java library documents");
  cmd.run([=](console& io) {
    const store_options options{.prefix = prefix.text(), .payload = column.value()};
    if (published.is_set() == dialect.is_set())
      throw error(errc::invalid_argument,
                  "exactly one table is required; give --dialect D or --published");
    if (published.is_set()) io.out << published_schema(options.prefix);
    else print_schema(io.out, store_schema(schema_dialect(dialect), options));
    return exit_ok;
  });
}

}  // namespace

void add_store_commands(command root) {
  command group =
      root.add("store", "Read and write stored entries: the last good answers of calls");
  group.examples(
      "holdfast store put --store sqlite:answers.db --create-schema --name country --key FR "
      "--payload '{\"name\":\"France\"}'\n"
      "holdfast store get --store sqlite:answers.db --name country --key FR");
  add_put(group);
  add_get(group);
  add_store_list(group);
  add_rm(group);
  add_clean_command(group);
  add_store_stats(group);
  add_store_schema(group);
  add_transfer_commands(group);
  add_store_doctor(group);
  add_rekey_command(group);
}

}  // namespace holdfast::cli
