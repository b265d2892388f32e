// holdfast store export and import.

#include <holdfast/database.hpp>

#include "commands/groups.hpp"
#include "commands/store/entry_import.hpp"
#include "commands/store/entry_location.hpp"
#include "commands/store/entry_pages.hpp"
#include "commands/store/entry_text.hpp"
#include "terminal/exclusive_options.hpp"
#include "terminal/input.hpp"
#include "terminal/progress.hpp"
#include "terminal/text.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace holdfast::cli {

namespace {

void add_export(command group) {
  command cmd = group.add("export", "Print entries as JSON Lines");
  cmd.about(
      "Exports the entries of a name, or of all names. Without a key ring, sealed payloads are "
      "exported as they are, and can be imported with the same keys only.");
  cmd.examples(
      "holdfast store export --store sqlite:answers.db --name country > country.jsonl\n"
      "holdfast store export --store sqlite:answers.db --all > store.jsonl");
  const entry_location location(cmd);
  const option name = cmd.value("--name", "N", "Effective name");
  const option all = cmd.flag("--all", "Export the entries of all names");
  (void)cmd.flag("--json", "Print JSON Lines (always)");
  cmd.run([=](console& io) {
    require_one("name", {{name, "--name N"}, {all, "--all"}});
    const stop_signals stop;
    const auto entries = location.open(io);
    const auto names = all.is_set() ? names_of(*entries) : std::vector{name.text()};
    std::uint64_t total = 0;
    for (const auto& each : names) total += entries->count(each);
    progress shown(io, "exported", true);
    std::uint64_t count = 0;
    std::size_t unreadable = 0;
    for (const auto& each : names) {
      unreadable += for_each_entry(*entries, each, UINT64_MAX, [&](const entry& e) {
        io.out << entry_json(e) << "\n";
        shown.update(++count, total);
        if (count % 500 == 0 && stop.wait(0)) {
          shown.clear();
          throw stopped("exported", count, total);
        }
      });
    }
    shown.clear();
    if (unreadable > 0)
      io.warn(std::to_string(unreadable) + " rows cannot be read and were skipped");
    return unreadable > 0 ? exit_negative : exit_ok;
  });
}

void add_import(command group) {
  command cmd = group.add("import", "Write entries from JSON Lines");
  cmd.about(
      "Reads the output of export. Skips entries that have expired, or are older than the stored "
      "ones, and prints how many. Stops at a line that is not an entry, after it has written the "
      "lines before. Exit code 1 if no entry was written. After SIGINT or SIGTERM, run it again to "
      "go on.");
  cmd.examples("holdfast store import --store postgresql://localhost/app country.jsonl");
  const entry_location location(cmd);
  const option file = cmd.positional("FILE", "File to read; - or nothing: standard input").file();
  const option json = cmd.flag("--json", "Print the counters as one JSON object");
  cmd.run([=](console& io) {
    const stop_signals stop;
    const auto entries = location.open(io);
    const input_file lines(file.text("-"));
    const auto result = import_entries(io, *entries, lines, stop);
    if (json.is_set()) io.out << to_json(result) << "\n";
    else io.out << to_text(result) << "\n";
    return result.written > 0 || result.read == 0 ? exit_ok : exit_negative;
  });
}

}  // namespace

void add_transfer_commands(command group) {
  add_export(group);
  add_import(group);
}

}  // namespace holdfast::cli
