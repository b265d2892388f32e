// holdfast store put, get, list, rm, stats and schema.

#include <holdfast/database.hpp>
#include <holdfast/key/failover.hpp>

#include "commands/groups.hpp"
#include "commands/schema_dialect.hpp"
#include "commands/store/entry_location.hpp"
#include "commands/store/entry_pages.hpp"
#include "commands/store/entry_text.hpp"
#include "terminal/arguments.hpp"
#include "terminal/exclusive_options.hpp"
#include "terminal/input.hpp"
#include "terminal/table.hpp"
#include "terminal/text.hpp"
#include "terminal/time_text.hpp"

#include <fnmatch.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace holdfast::cli {

namespace {

constexpr std::size_t largest_payload = std::size_t{64} << 20U;

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
    require_one("key", {{key, "--key K"}, {args, "--args ARG for each argument of the call"}});
    if (key.is_set()) return key.text();
    const std::string point = name.text();
    return key::failover_keys({.name = point})
        .of(read_arguments(args.all(), key::scheme::failover, false));
  }
};

void warn_of_missing(console& io, const std::string& name, const std::string& key) {
  io.warn("no entry " + printable(name) + " " + printable(key));
}

/// A payload in plain text that is put beside sealed ones could not be read by the programs that
/// seal.
void refuse_plaintext_among_sealed(store& entries, const std::string& name) {
  const auto page = entries.find_all(name, 1);
  if (!page.entries.empty() && is_sealed(page.entries.front()))
    throw error(errc::invalid_argument,
                "the payloads of '" + name +
                    "' are sealed, and this one would not be; give --key-file FILE or "
                    "--key-variable NAME");
}

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
      "holdfast store put --store sqlite:answers.db --name country --key XX --tombstone\n"
      "curl -s https://example.org/fr | holdfast store put --store sqlite:answers.db --name "
      "country "
      "--key FR --payload-file -");
  const entry_location location(cmd);
  const entry_selection selection(cmd);
  const option payload = cmd.value("--payload", "JSON", "The payload");
  const option file =
      cmd.value("--payload-file", "FILE", "File with the payload; -: standard input").file();
  const option raw = cmd.flag("--raw", "Accept any text as payload, not only JSON");
  const option tombstone =
      cmd.flag("--tombstone", "Instead of a payload: store that the answer is nothing");
  const option payload_class = cmd.value("--class", "C", "Class of the payload: app.Country");
  const option expire =
      cmd.value("--expire", "TIME", "Time until the entry expires: 90s, 15m, 1h (default), 7d");
  const option json = cmd.flag("--json", "Print the entry as one JSON object");
  cmd.run([=](console& io) {
    require_one(
        "payload",
        {{payload, "--payload JSON"}, {file, "--payload-file FILE"}, {tombstone, "--tombstone"}});
    const auto lifetime = parse_duration(expire.text("1h"));
    if (lifetime.count() == 0)
      throw error(errc::invalid_argument,
                  "--expire is 0, so the entry would not be stored; give a longer time");
    const timestamp now = system_clock()->now();
    entry e{.name = selection.name.text(),
            .key = selection.selected_key(),
            .as_of = now,
            .expire_on = now + lifetime};
    if (!tombstone.is_set()) {
      e.payload = file.is_set() ? read_small_file(file.text(), largest_payload) : payload.text();
      if (!raw.is_set()) require_json_payload(*e.payload);
      e.payload_class = payload_class.text();
    }
    const auto entries = location.open(io);
    if (!location.keys.is_set() && !is_sealed(e)) refuse_plaintext_among_sealed(*entries, e.name);
    entries->put(e);
    const auto stored = entries->find(e.name, e.key);
    if (json.is_set() && stored) io.out << entry_json(*stored) << "\n";
    if (!stored || stored->as_of <= e.as_of) return exit_ok;
    io.warn("not stored: a newer entry exists, of " + iso_time(stored->as_of) +
            "; compare the clocks, or remove it with: holdfast store rm");
    return exit_negative;
  });
}

void add_get(command group) {
  command cmd = group.add("get", "Print the payload of an entry");
  cmd.about(
      "Exit code 1 if the entry does not exist, is a tombstone, or has expired. With --json, null "
      "if it does not exist.");
  cmd.examples(
      "holdfast store get --store sqlite:answers.db --name country --key FR\n"
      "holdfast store get --store sqlite:answers.db --name country --args FR --json");
  const entry_location location(cmd);
  const entry_selection selection(cmd);
  const option json =
      cmd.flag("--json", "Print the whole entry as one JSON object, even if it has expired");
  cmd.run([=](console& io) {
    const auto key = selection.selected_key();
    const auto stored = location.open(io)->find(selection.name.text(), key);
    if (!stored) {
      if (json.is_set()) io.out << "null\n";
      warn_of_missing(io, selection.name.text(), key);
      return exit_negative;
    }
    const bool valid = !stored->tombstone() && system_clock()->now() <= stored->expire_on;
    location.warn_if_sealed(io, is_sealed(*stored));
    if (json.is_set()) io.out << entry_json(*stored) << "\n";
    // Escaped on a terminal, which a payload must not control; verbatim for files and programs.
    else if (valid)
      io.out << (io.out.is_terminal() ? printable(*stored->payload) : *stored->payload) << "\n";
    if (!valid && !json.is_set())
      io.warn(stored->tombstone()
                  ? "the entry is a tombstone: the answer is nothing"
                  : "the entry expired at " + iso_time(stored->expire_on) + "; --json prints it");
    return valid ? exit_ok : exit_negative;
  });
}

void add_store_list(command group) {
  command cmd = group.add("list", "List the entries of a name");
  cmd.examples(
      "holdfast store list --store sqlite:answers.db --name country\n"
      "holdfast store list --store sqlite:answers.db --name country --json");
  const entry_location location(cmd);
  const option name = cmd.value("--name", "N", "Effective name").required();
  const option limit = cmd.value("--limit", "COUNT", "Maximum number of entries (default 100)")
                           .number(1, 1'000'000'000);
  const option json = cmd.flag("--json", "Print one JSON object per line");
  cmd.run([=](console& io) {
    const auto entries = location.open(io);
    const timestamp now = system_clock()->now();
    long_table rows(io.out, {"key", "age", "expires", "bytes", "class"});
    const auto unreadable =
        for_each_entry(*entries, name.text(), limit.count(100), [&](const entry& e) {
          if (json.is_set()) io.out << entry_json(e) << "\n";
          else rows.add(entry_row(e, now));
        });
    rows.finish();
    if (unreadable > 0)
      io.warn(std::to_string(unreadable) + " rows cannot be read and were skipped");
    return exit_ok;
  });
}

/// Removes the entries whose keys match a shell pattern. Returns how many. Pages are read by key,
/// so that removing does not disturb the listing.
std::uint64_t remove_matching(store& entries, const std::string& name, const std::string& pattern) {
  std::uint64_t removed = 0;
  (void)for_each_entry(entries, name, UINT64_MAX, [&](const entry& e) {
    if (::fnmatch(pattern.c_str(), e.key.c_str(), 0) == 0 && entries.erase(name, e.key, e.as_of))
      ++removed;
  });
  return removed;
}

void add_rm(command group) {
  command cmd = group.add("rm", "Remove an entry, or all entries whose keys match a pattern");
  cmd.about(
      "Removes the current version. Exit code 1 if no entry was removed. In a pattern, * stands "
      "for "
      "any characters, ? for one, and [a-z] for one of a range.");
  cmd.examples(
      "holdfast store rm --store sqlite:answers.db --name country --key FR\n"
      "holdfast store rm --store sqlite:answers.db --name country --match 'F*'");
  const entry_location location(cmd);
  const entry_selection selection(cmd);
  const option match =
      cmd.value("--match", "PATTERN", "Instead of --key: remove the entries whose keys match");
  const option json = cmd.flag("--json", "Print the number of removed entries as one JSON object");
  cmd.run([=](console& io) {
    require_one("key", {{selection.key, "--key K"},
                        {selection.args, "--args ARG for each argument of the call"},
                        {match, "--match PATTERN"}});
    const auto& name = selection.name;
    std::uint64_t removed = 0;
    if (match.is_set()) {
      removed = remove_matching(*location.open(io), name.text(), match.text());
      if (!json.is_set()) io.out << "removed " << grouped(removed) << "\n";
    } else {
      const auto entries = location.open(io);
      const auto key = selection.selected_key();
      const auto stored = entries->find(name.text(), key);
      removed = stored && entries->erase(name.text(), key, stored->as_of) ? 1 : 0;
      if (removed == 0) warn_of_missing(io, name.text(), key);
    }
    if (json.is_set()) io.out << "{\"removed\":" << std::to_string(removed) << "}\n";
    return removed > 0 ? exit_ok : exit_negative;
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
std::vector<std::string> published_schema(const std::string& prefix) {
  (void)store_schema(sql::dialect_id::sqlite, {.prefix = prefix});  // checks the prefix
  const std::string table = prefix + "FAILOVER_STORE";
  const std::string index = "IDX_" + table.substr(table.rfind('.') + 1) + "_EXPIRE_ON";
  return {"CREATE TABLE " + table +
              " (\n"
              "  FAILOVER_NAME VARCHAR(50) NOT NULL,\n"
              "  FAILOVER_KEY VARCHAR(256) NOT NULL,\n"
              "  AS_OF TIMESTAMP(9) WITH TIME ZONE NOT NULL,\n"
              "  EXPIRE_ON TIMESTAMP(9) WITH TIME ZONE NOT NULL,\n"
              "  PAYLOAD VARCHAR(4000),\n"
              "  PAYLOAD_CLASS VARCHAR(256),\n"
              "  PRIMARY KEY (FAILOVER_NAME, FAILOVER_KEY)\n"
              ")",
          "CREATE INDEX " + index + " ON " + table + " (EXPIRE_ON)"};
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
  const option json = cmd.flag("--json", "Print the statements as one JSON object");
  cmd.run([=](console& io) {
    const store_options options{.prefix = prefix.text(), .payload = column.value()};
    require_one("table", {{dialect, "--dialect D"}, {published, "--published"}});
    print_schema(io.out,
                 published.is_set() ? published_schema(options.prefix)
                                    : store_schema(schema_dialect(dialect), options),
                 json.is_set());
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
  add_names_command(group);
  add_transfer_commands(group);
  add_store_doctor(group);
  add_rekey_command(group);
}

}  // namespace holdfast::cli
