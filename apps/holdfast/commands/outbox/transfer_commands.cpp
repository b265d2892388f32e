// holdfast outbox export and import.

#include "commands/groups.hpp"
#include "commands/import_lines.hpp"
#include "commands/outbox/location.hpp"
#include "commands/outbox/outbox_transfer.hpp"
#include "terminal/text.hpp"

#include <string>

namespace holdfast::cli {

namespace {

void add_outbox_export(command group) {
  command cmd = group.add("export", "Print events, tickets and recurring events as JSON Lines");
  cmd.about(
      "Contains every event that exists while it runs, parked events first, the others in the "
      "order "
      "of their keys. Changes nothing. Uses at most 64 MiB of memory; what is more is sorted in "
      "temporary files in TMPDIR.");
  cmd.examples(
      "holdfast outbox export --outbox redis://127.0.0.1 > outbox.jsonl\n"
      "holdfast outbox export --outbox sqlite:app.db --prefix '{shop}' > outbox.jsonl");
  const outbox_location location(cmd);
  (void)cmd.flag("--json", "Print JSON Lines (always)");
  cmd.run([=](console& io) {
    export_outbox(location.open(io), [&](const std::string& line) { io.out << line << "\n"; });
    return exit_ok;
  });
}

void add_outbox_import(command group) {
  command cmd = group.add("import", "Publish events, tickets and recurring events from JSON Lines");
  cmd.about(
      "Reads the output of export. Each id is published once, so it can be repeated. Waiting "
      "events "
      "keep their time, claimed ones are due, and attempts start again. Parked events are parked "
      "again, which needs an outbox without other events and without a running worker. Exit code 1 "
      "if an event was refused, or nothing was published.");
  cmd.examples(
      "holdfast outbox import --outbox postgresql://localhost/app outbox.jsonl\n"
      "holdfast outbox import --outbox redis://127.0.0.1 --parked deliver outbox.jsonl");
  const outbox_location location(cmd);
  const option file = cmd.positional("FILE", "File to read; - or nothing: standard input").file();
  const option parked =
      cmd.value("--parked", "", "What happens to events that were parked (default park)")
          .one_of({"park", "skip", "deliver"});
  const option json = cmd.flag("--json", "Print the counters as one JSON object");
  cmd.run([=](console& io) {
    const auto mode = parked.text("park");
    outbox_importer importer(location.open(io),
                             {.parked = mode == "skip"      ? parked_import::skip
                                        : mode == "deliver" ? parked_import::deliver
                                                            : parked_import::park});
    return import_events(io, importer, file.text("-"), json.is_set());
  });
}

}  // namespace

exit_code import_events(console& io, outbox_importer& importer, const std::string& file,
                        bool json) {
  import_lines(
      io, file, "imported", [&](std::string_view line) { importer.add(line); },
      [&] { importer.flush(); });
  const auto& result = importer.result();
  if (json) io.out << to_json(result) << "\n";
  else io.out << to_text(result) << "\n";
  if (result.refused > 0) io.warn("the first event that was refused: " + result.problem);
  const auto done =
      result.events + result.duplicates + result.parked + result.tickets + result.recurring;
  return result.refused > 0 || done == 0 ? exit_negative : exit_ok;
}

void add_outbox_transfer(command group) {
  add_outbox_export(group);
  add_outbox_import(group);
}

}  // namespace holdfast::cli
