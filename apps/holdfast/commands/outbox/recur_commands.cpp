// holdfast outbox recur add, list and remove.

#include <holdfast/error.hpp>
#include <holdfast/outbox.hpp>

#include "commands/groups.hpp"
#include "commands/outbox/event_options.hpp"
#include "commands/outbox/location.hpp"
#include "commands/outbox/record_text.hpp"
#include "terminal/text.hpp"

#include <string>

namespace holdfast::cli {

namespace {

overlap_policy parse_overlap(const option& word) {
  return word.text() == "skip" ? overlap_policy::skip : overlap_policy::queue;
}

catch_up_policy parse_catch_up(const option& word) {
  const auto text = word.text("last");
  if (text == "none") return catch_up_policy::none;
  return text == "all" ? catch_up_policy::all : catch_up_policy::last;
}

void add_recur_add(command group) {
  command cmd = group.add("add", "Define a recurring event, or replace its definition");
  cmd.about(
      "A worker publishes the event at each time that the cron expression matches: minute, hour, "
      "day of month, month, day of week; with six fields the first one is the second.\n"
      "Prints added, changed or unchanged.");
  cmd.examples(
      "holdfast outbox recur add nightly '0 3 * * *' --zone Europe/Paris --outbox sqlite:app.db "
      "--type report.due --payload '{}'\n"
      "holdfast outbox recur add sync '*/10 * * * *' --overlap skip --catch-up none --outbox "
      "redis://127.0.0.1 --type sync.due --payload '{}'");
  const outbox_location location(cmd);
  const event_options content(cmd);
  const option name = cmd.positional("NAME", "Name of the recurring event").required();
  const option cron = cmd.positional("CRON", "Cron expression").required();
  const option zone =
      cmd.value("--zone", "ZONE", "Time zone of the expression: Europe/Paris (default UTC)");
  const option overlap =
      cmd.value("--overlap", "",
                "If the last event is not delivered yet: publish the next one (queue, default), or "
                "leave it out (skip)")
          .one_of({"queue", "skip"});
  const option catch_up =
      cmd.value("--catch-up", "",
                "For times that passed while no worker ran: publish nothing (none), one event "
                "(last, default) or all")
          .one_of({"none", "last", "all"});
  const option limit =
      cmd.value("--catch-up-limit", "N", "With --catch-up all: how many at most (default 100)")
          .number(1, 1000);
  const option tolerance =
      cmd.value("--tolerance", "TIME",
                "A time that passed longer ago needs catching up: 30s, 10m (default 1m)");
  const option json = cmd.flag("--json", "Print one JSON object");
  cmd.run([=](console& io) {
    const recurrence_options defaults;
    const recurrence_options options{
        .zone = zone.text(),
        .overlap = parse_overlap(overlap),
        .catch_up = parse_catch_up(catch_up),
        .catch_up_limit = static_cast<std::size_t>(limit.count(defaults.catch_up_limit)),
        .tolerance = duration_of(tolerance, "1m")};
    // That a definition was replaced is the result of the command, not a warning.
    const log_sink no_log = [](const log_record&) {};
    const auto status =
        location.open(io, {}, no_log).recur(name.text(), cron.text(), options, content.read());
    if (json.is_set())
      io.out << "{\"name\":" << json_string(name.text())
             << ",\"status\":" << json_string(to_string(status)) << "}\n";
    else io.out << to_string(status) << "\n";
    return exit_ok;
  });
}

void add_recur_list(command group) {
  command cmd = group.add("list", "List recurring events with their next time");
  cmd.examples("holdfast outbox recur list --outbox redis://127.0.0.1 --json");
  const outbox_location location(cmd);
  const option json = cmd.flag("--json", "Print one JSON object for each");
  cmd.run([=](console& io) {
    const auto recurring = location.open(io).admin().recurring();
    if (!json.is_set()) {
      print_recurrences(io.out, recurring);
      if (recurring.empty()) io.warn("there are no recurring events");
      return exit_ok;
    }
    for (const auto& one : recurring) io.out << recurrence_json(one) << "\n";
    return exit_ok;
  });
}

void add_recur_remove(command group) {
  command cmd = group.add("remove", "End a recurring event; events that were published stay");
  cmd.about("Exit code 1 if there is no recurring event of this name.");
  cmd.examples("holdfast outbox recur remove nightly --outbox sqlite:app.db");
  const outbox_location location(cmd);
  const option name = cmd.positional("NAME", "Name of the recurring event").required();
  const option json = cmd.flag("--json", "Print one JSON object");
  cmd.run([=](console& io) {
    const bool existed = location.open(io).cancel_recurring(name.text());
    const std::string status = existed ? "removed" : "unknown";
    if (json.is_set())
      io.out << "{\"name\":" << json_string(name.text()) << ",\"status\":" << json_string(status)
             << "}\n";
    else io.out << status << "\n";
    return existed ? exit_ok : exit_negative;
  });
}

}  // namespace

void add_recur_commands(command outbox) {
  command group = outbox.add("recur", "Define, list and remove recurring events");
  group.examples(
      "holdfast outbox recur add nightly '0 3 * * *' --zone Europe/Paris --outbox sqlite:app.db "
      "--type report.due --payload '{}'");
  add_recur_add(group);
  add_recur_list(group);
  add_recur_remove(group);
}

}  // namespace holdfast::cli
