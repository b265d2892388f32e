#include <holdfast/database.hpp>
#include <holdfast/key/failover.hpp>

#include "arguments.hpp"
#include "entry_pages.hpp"
#include "entry_text.hpp"
#include "groups.hpp"
#include "store_place.hpp"
#include "text.hpp"

#include <string>
#include <utility>

namespace holdfast::cli {

namespace {

/// Which entry: the key verbatim, or the arguments of the call it is the key of.
struct entry_choice {
  option name;
  option key;
  option args;

  explicit entry_choice(command& at)
      : name(at.value("--name", "N", "The effective name: the point's domain, or its name").required()),
        key(at.value("--key", "K", "FAILOVER_KEY, verbatim")),
        args(at.values("--args", "ARG", "Instead of --key: an argument of the call; repeat for more, in order")) {}

  [[nodiscard]] std::string chosen_key() const {
    if (key.given() == args.given())
      throw error(errc::invalid_argument, "say which entry: --key K, or --args ARG for each argument of the call");
    if (key.given()) return key.text();
    const std::string point = name.text();
    return key::failover_keys({.name = point}).of(read_arguments(args.all(), key::scheme::failover, false));
  }
};

void add_put(command group) {
  command at = group.add("put", "Write an entry");
  at.about(
      "The entry's version is now: it replaces what is there. If that is newer, stamped by a clock ahead of ours, the entry is not "
      "stored:\n"
      "this is said on stderr, and the exit code is 1. A payload must be JSON, unless --raw is given.");
  at.examples(
      "holdfast store put --store sqlite:answers.db --create-schema --name country --key FR --payload '{\"name\":\"France\"}'\n"
      "holdfast store put --store sqlite:answers.db --name country --args FR --payload '{}' --class app.Country --expire 24h\n"
      "holdfast store put --store sqlite:answers.db --name country --key XX --tombstone");
  const store_place place(at);
  const entry_choice which(at);
  const option payload = at.value("--payload", "JSON", "The payload");
  const option raw = at.flag("--raw", "The payload is any text, not checked to be JSON");
  const option tombstone = at.flag("--tombstone", "Instead of a payload: the answer is that there is nothing");
  const option payload_class = at.value("--class", "C", "What the payload is: app.Country");
  const option expire = at.value("--expire", "TIME", "How long it may be served: 90s, 15m, 1h (default), 7d");
  at.run([=](console& io) {
    if (payload.given() == tombstone.given()) throw error(errc::invalid_argument, "give the entry a --payload, or say --tombstone");
    const auto lasts = read_duration(expire.text("1h"));
    if (lasts.count() == 0)
      throw error(errc::invalid_argument, "an entry that expires at once would not be written; give --expire more time");
    const timestamp now = system_clock()->now();
    entry made{.name = which.name.text(), .key = which.chosen_key(), .as_of = now, .expire_on = now + lasts};
    if (payload.given()) {
      if (!raw.given()) check_json(payload.text());
      made.payload = payload.text();
      made.payload_class = payload_class.text();
    }
    const auto open = place.open(io);
    open->put(made);
    const auto held = open->find(made.name, made.key);
    if (!held || held->as_of <= made.as_of) return exit_fine;
    io.warn("not stored: a newer entry is there, of " + iso(held->as_of) + "; compare the clocks, or remove it with: holdfast store rm");
    return exit_no;
  });
}

void add_get(command group) {
  command at = group.add("get", "Print an entry's payload");
  at.about("Exit code 1 when there is none, when it says that there is nothing, or when it expired.");
  at.examples(
      "holdfast store get --store sqlite:answers.db --name country --key FR\n"
      "holdfast store get --store sqlite:answers.db --name country --args FR --json");
  const store_place place(at);
  const entry_choice which(at);
  const option json = at.flag("--json", "Print the whole entry as one JSON object, expired or not");
  at.run([=](console& io) {
    const auto found = place.open(io)->find(which.name.text(), which.chosen_key());
    if (!found) return exit_no;
    const bool good = !found->tombstone() && system_clock()->now() <= found->expire_on;
    if (json.given()) io.out << entry_json(*found) << "\n";
    // A payload cannot drive the terminal; a file or a program gets its bytes.
    else if (good) io.out << (io.out.is_terminal() ? printable(*found->payload) : *found->payload) << "\n";
    return good ? exit_fine : exit_no;
  });
}

void add_store_list(command group) {
  command at = group.add("list", "List the entries of a name");
  at.examples(
      "holdfast store list --store sqlite:answers.db --name country\nholdfast store list --store sqlite:answers.db --name country --json");
  const store_place place(at);
  const option name = at.value("--name", "N", "The effective name").required();
  const option limit = at.value("--limit", "COUNT", "At most so many (default 100)").number(1, 1'000'000'000);
  const option json = at.flag("--json", "One JSON object a line");
  at.run([=](console& io) {
    const auto open = place.open(io);
    const timestamp now = system_clock()->now();
    bool headed = json.given();
    const auto unreadable = each_entry(*open, name.text(), limit.count(100), [&](const entry& each) {
      // Not before the first entry: an error must not follow a table's head.
      if (!std::exchange(headed, true)) io.out << "key                                   age       expires   bytes  class\n";
      io.out << (json.given() ? entry_json(each) : entry_line(each, now)) << "\n";
    });
    if (unreadable > 0) io.warn(std::to_string(unreadable) + " rows cannot be read and were left out");
    return exit_fine;
  });
}

void add_rm(command group) {
  command at = group.add("rm", "Remove an entry");
  at.about("Removes the version that is there now. Exit code 1 when there is none.");
  at.examples("holdfast store rm --store sqlite:answers.db --name country --key FR");
  const store_place place(at);
  const entry_choice which(at);
  at.run([=](console& io) {
    const auto open = place.open(io);
    const auto key = which.chosen_key();
    const auto found = open->find(which.name.text(), key);
    return found && open->erase(which.name.text(), key, found->as_of) ? exit_fine : exit_no;
  });
}

void add_store_stats(command group) {
  command at = group.add("stats", "Say how the store is, and how many entries a name has");
  at.examples("holdfast store stats --store sqlite:answers.db --name country --json");
  const store_place place(at);
  const option name = at.value("--name", "N", "Count the entries of this effective name");
  const option json = at.flag("--json", "Print one JSON object");
  at.run([=](console& io) {
    const auto open = place.open(io);
    const auto health = open->health();
    if (!health.available) throw error(errc::unavailable, health.problem);
    const auto entries = name.given() ? open->count(name.text()) : 0;
    if (json.given()) {
      io.out << "{\"available\":true,\"native_upsert\":" << (health.native_upsert ? "true" : "false")
             << (name.given() ? ",\"entries\":" + std::to_string(entries) : "") << "}\n";
    } else {
      io.out << "available      yes\nnative upsert  " << (health.native_upsert ? "yes" : "no, falling back to insert and update") << "\n";
      if (name.given()) io.out << "entries        " << grouped(entries) << "\n";
    }
    return exit_fine;
  });
}

void add_store_schema(command group) {
  command at = group.add("schema", "Print what creates the table");
  at.about("The types are each database's best. --published prints the table as the Java library documents it.");
  at.examples("holdfast store schema --dialect postgresql --prefix MYAPP_\nholdfast store schema --published");
  const option dialect =
      at.value("--dialect", "", "Whose words").one_of({"sqlite", "postgresql", "mysql", "mariadb", "h2", "sqlserver", "oracle"});
  const option prefix = at.value("--prefix", "P", "What the table's name begins with");
  const option column = payload_column_of(at);
  const option published = at.flag("--published", "The published table, for any database");
  at.run([=](console& io) {
    const store_options options{.prefix = prefix.text(), .payload = chosen_column(column)};
    if (published.given() == dialect.given()) throw error(errc::invalid_argument, "say for which database: --dialect D, or --published");
    if (published.given()) {
      io.out << published_schema(options.prefix);
      return exit_fine;
    }
    for (const auto id : {sql::dialect_id::sqlite, sql::dialect_id::postgresql, sql::dialect_id::mysql, sql::dialect_id::mariadb,
                          sql::dialect_id::h2, sql::dialect_id::sqlserver, sql::dialect_id::oracle}) {
      if (dialect.text() != to_string(id)) continue;
      for (const auto& statement : store_schema(id, options)) io.out << statement << ";\n";
    }
    return exit_fine;
  });
}

}  // namespace

void add_store_commands(command root) {
  command group = root.add("store", "The last good answers, on a database");
  group.examples(
      "holdfast store put --store sqlite:answers.db --create-schema --name country --key FR --payload '{\"name\":\"France\"}'\n"
      "holdfast store get --store sqlite:answers.db --name country --key FR");
  add_put(group);
  add_get(group);
  add_store_list(group);
  add_rm(group);
  add_clean_command(group);
  add_store_stats(group);
  add_store_schema(group);
  add_transfer_commands(group);
  add_doctor_command(group);
  add_rekey_command(group);
}

}  // namespace holdfast::cli
