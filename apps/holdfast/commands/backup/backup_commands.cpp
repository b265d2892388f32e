// holdfast backup and restore: everything that Holdfast has on a database, as one file of JSON
// Lines.
//
//     {"kind":"backup","format":1,"holdfast":"0.2.0","created":"...","sets":["store","outbox"]}
//     {"kind":"entry",...}          as `store export` prints it
//     {"kind":"counter",...}        as `seq export` prints it
//     {"kind":"event",...}          and tickets and recurring events, as `outbox export` prints them
//     {"kind":"end","lines":3}      a file without this line is not complete

#include <holdfast/database.hpp>
#include <holdfast/schema.hpp>

#include "commands/backup/backup_file.hpp"
#include "commands/database_location.hpp"
#include "commands/groups.hpp"
#include "commands/import_lines.hpp"
#include "commands/outbox/outbox_transfer.hpp"
#include "commands/seq/counter_transfer.hpp"
#include "commands/store/entry_import.hpp"
#include "commands/store/entry_location.hpp"
#include "commands/store/entry_pages.hpp"
#include "commands/store/entry_text.hpp"
#include "database/doctor/examine.hpp"
#include "terminal/json_fields.hpp"
#include "terminal/progress.hpp"
#include "terminal/stop_signals.hpp"
#include "terminal/text.hpp"
#include "terminal/time_text.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace holdfast::cli {

namespace {

constexpr std::int64_t backup_format = 1;

/// Options that both commands have.
struct backup_location {
  option url;
  option file;
  option prefix;
  option outbox_prefix;
  payload_column_option column;
  password_option password;

  explicit backup_location(command& cmd)
      : url(cmd.positional("URL",
                           "The database: sqlite:app.db, postgresql://host/name, "
                           "mysql://host/name, h2://host/name, redis://host:6379")
                .required()),
        file(cmd.positional("FILE", "File of the backup").required().file()),
        prefix(cmd.value("--prefix", "P", "Prefix of the tables of store and sequences: MYAPP_")),
        outbox_prefix(cmd.value("--outbox-prefix", "P", "Name of the outbox (default {holdfast})")),
        column(cmd),
        password(cmd) {}

  [[nodiscard]] database open(console& io, bool create) const {
    database_options options;
    options.log = io.sink();
    options.password = password.read(io);
    return holdfast::open(url_to_open(url.text(), create), std::move(options));
  }
  [[nodiscard]] std::shared_ptr<store> entries(const database& db, bool create) const {
    return db.store({.prefix = prefix.text(),
                     .create_schema = create,
                     .payload = column.value(),
                     .probe = start_probe::off,
                     .start = start_mode::require});
  }
  [[nodiscard]] std::shared_ptr<block_store> counters(const database& db, bool create) const {
    // Counters are read and raised, and no id is granted: the fence does not matter.
    return db.block_store({.prefix = prefix.text(),
                           .create_schema = create,
                           .allow_unsafe = true,
                           .fence = no_fence{}});
  }
  [[nodiscard]] outbox events(const database& db, std::size_t lanes, bool create) const {
    outbox_options options;
    options.prefix = outbox_prefix.text();
    options.lanes = lanes;
    options.create_schema = create;
    return db.outbox(std::move(options));
  }
};

/// `{"kind":"entry",...}`.
std::string tagged(std::string_view kind, const std::string& object) {
  return "{\"kind\":\"" + std::string(kind) + "\"," + object.substr(1);
}

/// The sets that exist on a database, and the number of lanes of its outbox.
struct existing_sets {
  bool store = false;
  bool sequences = false;
  std::optional<std::size_t> lanes{};  ///< of the outbox, if it exists

  [[nodiscard]] bool none() const noexcept { return !store && !sequences && !lanes; }
};

existing_sets sets_of(const database& db, const backup_location& location) {
  const schema_options names{.prefix = location.prefix.text(),
                             .outbox_prefix = location.outbox_prefix.text()};
  existing_sets sets;
  for (const auto& status : read_schema_status(db, names)) {
    if (status.verdict == schema_verdict::absent) continue;
    if (status.verdict == schema_verdict::newer || status.verdict == schema_verdict::too_old)
      throw error(errc::unsupported_type,
                  "the " + status.set +
                      " has a schema version that this program does not work with; see: holdfast "
                      "schema status");
    if (status.set == "store") sets.store = true;
    if (status.set == "sequences") sets.sequences = true;
    if (status.set == "outbox") sets.lanes = detail::doctor::lane_count(db, names);
  }
  return sets;
}

struct backup_counts {
  std::uint64_t entries = 0;
  std::uint64_t counters = 0;
  outbox_export_result outbox{};
};

class backup_writer {
 public:
  backup_writer(console& io, backup_file& file) : file_(file), progress_(io, "written", false) {}

  void line(const std::string& text) {
    file_.write(text);
    progress_.update(++lines_, total_);
    if (lines_ % 500 == 0 && stop_.wait(0)) {
      progress_.clear();
      throw error(errc::unavailable, "stopped after " + grouped(lines_) +
                                         " lines, and no file was written; run it again");
    }
  }
  void expect(std::uint64_t more) { total_ += more; }
  [[nodiscard]] std::uint64_t lines() const noexcept { return lines_; }
  void finish() { progress_.clear(); }

 private:
  const stop_signals stop_{};
  backup_file& file_;
  progress progress_;
  std::uint64_t lines_ = 0;
  std::uint64_t total_ = 0;
};

/// Sequences are last: an id that an event or an entry of the backup contains is below its counter.
backup_counts write_sets(const database& db, const backup_location& location,
                         const existing_sets& sets, backup_writer& writer) {
  backup_counts counts;
  const auto write = [&](const std::string& text) { writer.line(text); };
  if (sets.store) {
    const auto entries = location.entries(db, false);
    const auto names = names_of(*entries);
    for (const auto& name : names) writer.expect(entries->count(name));
    std::size_t unreadable = 0;
    for (const auto& name : names)
      unreadable += for_each_entry(*entries, name, std::numeric_limits<std::uint64_t>::max(),
                                   [&](const entry& e) {
                                     write(tagged("entry", entry_json(e)));
                                     ++counts.entries;
                                   });
    if (unreadable > 0)
      throw error(errc::malformed,
                  std::to_string(unreadable) +
                      " rows of the store cannot be read; see: holdfast store doctor");
  }
  if (sets.lanes) {
    const auto events = location.events(db, *sets.lanes, false);
    writer.expect(events.admin().stats().events);
    counts.outbox = export_outbox(events, write);
  }
  if (sets.sequences) counts.counters = export_counters(*location.counters(db, false), write);
  return counts;
}

std::string counts_text(const backup_counts& counts) {
  return "entries " + grouped(counts.entries) + ", counters " + grouped(counts.counters) +
         ", events " + grouped(counts.outbox.events) + ", tickets " +
         grouped(counts.outbox.tickets) + ", recurring " + grouped(counts.outbox.recurring);
}

void add_backup(command root) {
  command cmd = root.add("backup", "Write everything that Holdfast has on a database to a file");
  cmd.about(
      "Writes the entries of the store, the events, tickets and recurring events of the outbox, "
      "and "
      "the counters of the sequences, whichever exist. Programs may go on meanwhile: each line is "
      "consistent, and what exists from the beginning to the end is contained; docs/backup.md says "
      "what that means for a restore. The file gets its name when it is complete, and has mode "
      "0600. It replaces an earlier backup, but no other file.");
  cmd.examples(
      "holdfast backup postgresql://localhost/app app.backup --prefix MYAPP_\n"
      "holdfast backup redis://127.0.0.1 outbox.backup --outbox-prefix '{shop}'");
  const backup_location location(cmd);
  const option json = cmd.flag("--json", "Print the counters as one JSON object");
  cmd.run([=](console& io) {
    const auto db = location.open(io, false);
    const auto sets = sets_of(db, location);
    if (sets.none())
      throw error(errc::not_found,
                  "the database has no tables with these names; check --prefix and "
                  "--outbox-prefix");
    backup_file file(location.file.text());
    backup_writer writer(io, file);
    file.write("{\"kind\":\"backup\",\"format\":" + std::to_string(backup_format) +
               ",\"holdfast\":\"" HOLDFAST_VERSION_STRING "\",\"created\":\"" +
               iso_time(system_clock()->now()) +
               "\",\"lanes\":" + std::to_string(sets.lanes.value_or(0)) + "}");
    const auto counts = write_sets(db, location, sets, writer);
    file.write("{\"kind\":\"end\",\"lines\":" + std::to_string(writer.lines()) + "}");
    file.complete();
    writer.finish();
    if (json.is_set())
      io.out << "{\"entries\":" << std::to_string(counts.entries)
             << ",\"counters\":" << std::to_string(counts.counters)
             << ",\"events\":" << std::to_string(counts.outbox.events)
             << ",\"tickets\":" << std::to_string(counts.outbox.tickets)
             << ",\"recurring\":" << std::to_string(counts.outbox.recurring) << "}\n";
    else io.out << counts_text(counts) << "\n";
    return exit_ok;
  });
}

/// Writes the lines of a backup into a database. Opens a set when its first line comes.
class restorer {
 public:
  restorer(const database& db, const backup_location& location, bool create, std::size_t lanes,
           std::int64_t ahead, parked_import parked)
      : db_(db),
        location_(location),
        create_(create),
        lanes_(lanes),
        ahead_(ahead),
        parked_(parked) {}

  void add(std::string_view line) {
    const auto kind = json_fields::of_line(parser_, line).text("kind");
    if (kind == "entry") {
      batch_.push_back(read_entry_(line));
      if (batch_.size() == 500) write_entries();
    } else if (kind == "counter") {
      if (!counters_) counters_ = location_.counters(db_, create_);
      import_counter(*counters_, line, ahead_);
      ++counter_count_;
    } else if (kind != "backup" && kind != "end") {
      if (!events_)
        events_.emplace(location_.events(db_, lanes_, create_),
                        outbox_import_options{.parked = parked_});
      events_->add(line);
    }
  }
  void flush() {
    write_entries();
    if (events_) events_->flush();
  }
  [[nodiscard]] const import_result& entries() const noexcept { return entry_result_; }
  [[nodiscard]] std::uint64_t counters() const noexcept { return counter_count_; }
  [[nodiscard]] outbox_import_result events() const {
    return events_ ? events_->result() : outbox_import_result();
  }

 private:
  void write_entries() {
    if (batch_.empty()) return;
    if (!store_) store_ = location_.entries(db_, create_);
    put_entries(*store_, batch_, entry_result_);
    batch_.clear();
  }

  const database& db_;
  const backup_location& location_;
  bool create_;
  std::size_t lanes_;
  std::int64_t ahead_;
  parked_import parked_;
  simdjson::dom::parser parser_{};
  entry_reader read_entry_{};
  std::vector<entry> batch_{};
  import_result entry_result_{};
  std::uint64_t counter_count_ = 0;
  std::shared_ptr<store> store_{};
  std::shared_ptr<block_store> counters_{};
  std::optional<outbox_importer> events_{};
};

void add_restore(command root) {
  command cmd = root.add("restore", "Write a backup into a database");
  cmd.about(
      "Newer entries of the store stay, counters never go back, and each event id is published "
      "once, so it can be repeated after a failure. --ahead keeps ids from being granted again "
      "that "
      "were granted after the backup. Events that were delivered after the backup are delivered "
      "again: receivers know their ids. Attempts start again. Parked events are parked again, "
      "which "
      "needs an outbox without other events and without a running worker.\n"
      "Exit code 1 if something of the backup was not restored, for example expired entries.");
  cmd.examples(
      "holdfast restore postgresql://localhost/app app.backup --create-schema --ahead 1000000\n"
      "holdfast restore redis://127.0.0.1 outbox.backup --outbox-prefix '{shop}'");
  const backup_location location(cmd);
  const option create = cmd.flag("--create-schema", "Create the tables if they do not exist");
  const option lanes =
      cmd.value("--lanes", "N", "Number of lanes of the outbox (default that of the backup)")
          .number(1, 256);
  const option ahead =
      cmd.value("--ahead", "COUNT", "Raise each counter by this many numbers more (default 0)")
          .number(0, std::uint64_t{1} << 62U);
  const option parked =
      cmd.value("--parked", "", "What happens to events that were parked (default park)")
          .one_of({"park", "skip", "deliver"});
  const option json = cmd.flag("--json", "Print the counters as one JSON object");
  cmd.run([=](console& io) {
    const auto header = check_backup(location.file.text());
    const auto db = location.open(io, create.is_set());
    const auto mode = parked.text("park");
    restorer target(db, location, create.is_set(),
                    static_cast<std::size_t>(lanes.count(std::max<std::uint64_t>(header.lanes, 1))),
                    static_cast<std::int64_t>(ahead.count(0)),
                    mode == "skip"      ? parked_import::skip
                    : mode == "deliver" ? parked_import::deliver
                                        : parked_import::park);
    import_lines(
        io, location.file.text(), "restored", [&](std::string_view line) { target.add(line); },
        [&] { target.flush(); });
    const auto& entries = target.entries();
    const auto events = target.events();
    if (json.is_set())
      io.out << "{\"store\":" << to_json(entries) << ",\"outbox\":" << to_json(events)
             << ",\"counters\":" << std::to_string(target.counters()) << "}\n";
    else
      io.out << "store: " << to_text(entries) << "\noutbox: " << to_text(events)
             << "\nsequences: counters " << grouped(target.counters()) << "\n";
    if (events.refused > 0) io.warn("the first event that was refused: " + events.problem);
    const bool complete = entries.expired + entries.older + events.refused + events.skipped == 0;
    return complete ? exit_ok : exit_negative;
  });
}

}  // namespace

void add_backup_commands(command root) {
  add_backup(root);
  add_restore(root);
}

}  // namespace holdfast::cli
