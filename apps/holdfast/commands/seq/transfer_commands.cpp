// holdfast seq export and import.

#include <holdfast/database.hpp>

#include "commands/groups.hpp"
#include "commands/import_lines.hpp"
#include "commands/seq/counter_transfer.hpp"
#include "commands/seq/location.hpp"
#include "terminal/text.hpp"

#include <cstdint>
#include <string>

namespace holdfast::cli {

namespace {

void add_seq_export(command group) {
  command cmd = group.add("export", "Print the counters of all sequences as JSON Lines");
  cmd.about("On Redis, --fence does not matter; give any one.");
  cmd.examples("holdfast seq export --store postgresql://localhost/app > sequences.jsonl");
  const sequence_location location(cmd);
  (void)cmd.flag("--json", "Print JSON Lines (always)");
  cmd.run([=](console& io) {
    const auto counters = location.open_database(io).block_store(location.store_options(io));
    (void)export_counters(*counters, [&](const std::string& line) { io.out << line << "\n"; });
    return exit_ok;
  });
}

void add_seq_import(command group) {
  command cmd = group.add("import", "Raise counters to those of JSON Lines");
  cmd.about(
      "Reads the output of export. A counter never goes back. If ids were granted after the "
      "export, "
      "--ahead keeps them from being granted again. Exit code 1 if there was no counter.");
  cmd.examples(
      "holdfast seq import --store sqlite:ids.db --create-schema --ahead 1000000 sequences.jsonl");
  const sequence_location location(cmd);
  const option file = cmd.positional("FILE", "File to read; - or nothing: standard input").file();
  const option ahead =
      cmd.value("--ahead", "COUNT", "Raise each counter by this many numbers more (default 0)")
          .number(0, std::uint64_t{1} << 62U);
  const option json = cmd.flag("--json", "Print the number of counters as one JSON object");
  cmd.run([=](console& io) {
    const auto counters = location.open_database(io).block_store(location.store_options(io));
    std::uint64_t count = 0;
    import_lines(
        io, file.text("-"), "imported",
        [&](std::string_view line) {
          import_counter(*counters, line, static_cast<std::int64_t>(ahead.count(0)));
          ++count;
        },
        [] {});
    if (json.is_set()) io.out << "{\"counters\":" << std::to_string(count) << "}\n";
    else io.out << "imported " << grouped(count) << (count == 1 ? " counter\n" : " counters\n");
    return count > 0 ? exit_ok : exit_negative;
  });
}

}  // namespace

void add_seq_transfer(command group) {
  add_seq_export(group);
  add_seq_import(group);
}

}  // namespace holdfast::cli
