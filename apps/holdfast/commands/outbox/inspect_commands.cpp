// holdfast outbox list, show, explain and stats.

#include <holdfast/outbox.hpp>

#include "commands/groups.hpp"
#include "commands/outbox/location.hpp"
#include "commands/outbox/record_pages.hpp"
#include "commands/outbox/record_text.hpp"
#include "terminal/progress.hpp"
#include "terminal/table.hpp"
#include "terminal/text.hpp"
#include "terminal/time_text.hpp"

#include <chrono>
#include <cstdint>
#include <string>

namespace holdfast::cli {

namespace {

void add_outbox_list(command group) {
  command cmd = group.add("list", "List events and their states");
  cmd.about(
      "The order is that of the backend, not that of delivery. The column tries has the number of "
      "failures and of deliveries.");
  cmd.examples(
      "holdfast outbox list --outbox sqlite:app.db\n"
      "holdfast outbox list --outbox redis://127.0.0.1 --state waiting --type mail --json\n"
      "holdfast outbox list --outbox redis://127.0.0.1 --tickets");
  const outbox_location location(cmd);
  const option state =
      cmd.value("--state", "", "Only events in this state")
          .one_of({"due", "waiting", "claimed", "following", "parked", "blocking"});
  const option type = cmd.value("--type", "T", "Only events of this type");
  const option key = cmd.value("--key", "K", "Only events with this key");
  const option tickets =
      cmd.flag("--tickets", "List tickets that have not expired, instead of events");
  const option limit = cmd.value("--limit", "COUNT", "Maximum number of events (default 100)")
                           .number(1, 1'000'000'000);
  const option json = cmd.flag("--json", "Print one JSON object per line");
  cmd.run([=](console& io) {
    const auto source = location.open(io);
    const timestamp now = system_clock()->now();
    std::uint64_t remaining = limit.count(100);
    std::uint64_t scanned = 0;
    long_table rows(io.out, record_header());
    progress shown(io, "scanned", true);
    for_each_record(source, tickets.is_set() ? scan_what::tickets : scan_what::all,
                    [&](const outbox_record& record) {
                      shown.update(++scanned);
                      if (state.is_set() && state.text() != to_string(record.state)) return true;
                      if (type.is_set() && type.text() != record.details.event.type) return true;
                      if (key.is_set() && key.text() != record.details.event.key) return true;
                      shown.clear();
                      if (json.is_set())
                        io.out << record_json(record, tickets.is_set() ? "ticket" : "event")
                               << "\n";
                      else rows.add(record_row(record, now), printable(record.details.last_error));
                      return --remaining > 0;
                    });
    shown.clear();
    rows.finish();
    if (scanned == 0) location.warn_if_unused(io, source.admin().stats());
    return exit_ok;
  });
}

void add_show(command group) {
  command cmd = group.add("show", "Print an event and its state");
  cmd.about("Exit code 1 if it does not exist: it was delivered, discarded, or never published.");
  cmd.examples("holdfast outbox show --outbox sqlite:app.db 018f2b6e-5c1e-7000-8000-000000000001");
  const outbox_location location(cmd);
  const option id = cmd.positional("ID", "Id of the event").required();
  (void)cmd.flag("--json", "Print one JSON object (always)");
  cmd.run([=](console& io) {
    const auto record = location.open(io).find(id.text());
    if (!record) return exit_negative;
    io.out << record_json(*record) << "\n";
    return exit_ok;
  });
}

void add_explain(command group) {
  command cmd = group.add("explain", "Explain why an event is not delivered yet");
  cmd.about("Exit code 1 if it does not exist.");
  cmd.examples(
      "holdfast outbox explain --outbox sqlite:app.db 018f2b6e-5c1e-7000-8000-000000000001");
  const outbox_location location(cmd);
  const option id = cmd.positional("ID", "Id of the event").required();
  const option json = cmd.flag("--json", "Print one JSON object");
  cmd.run([=](console& io) {
    const auto source = location.open(io);
    const auto record = source.find(id.text());
    const std::string reason = source.admin().explain(id.text());
    const bool waits = record && record->state == event_state::waiting && record->until;
    if (json.is_set()) {
      io.out << "{\"id\":" << json_string(id.text()) << ",\"state\":"
             << (record ? json_string(to_string(record->state)) : std::string("null"))
             << ",\"why\":" << json_string(reason)
             << (waits ? ",\"until\":" + json_string(iso_time(*record->until)) : "") << "}\n";
    } else {
      io.out << printable(reason) << (waits ? "; due at " + iso_time(*record->until) : "") << "\n";
    }
    return record ? exit_ok : exit_negative;
  });
}

void add_outbox_stats(command group) {
  command cmd = group.add(
      "stats", "Show the number of waiting events, and counters since the outbox was created");
  cmd.about(
      "The backend keeps these counts, so the command is fast for any number of events. With "
      "--max-overdue and --max-parked, exit code 1 if one of them is exceeded.");
  cmd.examples(
      "holdfast outbox stats --outbox redis://127.0.0.1 --json\n"
      "holdfast outbox stats --outbox sqlite:app.db --max-overdue 5m --max-parked 0");
  const outbox_location location(cmd);
  const option overdue = cmd.value("--max-overdue", "TIME",
                                   "Exit code 1 if an event or a ticket has been due for longer");
  const option parked = cmd.value("--max-parked", "N", "Exit code 1 if more events are parked")
                            .number(0, 1'000'000'000);
  const option json = cmd.flag("--json", "Print one JSON object");
  cmd.run([=](console& io) {
    const auto limit =
        overdue.is_set() ? duration_of(overdue, "0s") : std::chrono::milliseconds::max();
    const auto admin = location.open(io).admin();
    const auto stats = admin.stats();
    const auto recurring = admin.recurring();
    if (json.is_set()) io.out << stats_json(stats, recurring);
    else print_stats(io.out, stats, recurring);
    if (recurring.empty()) location.warn_if_unused(io, stats);
    const bool exceeded =
        stats.overdue > limit || (parked.is_set() && stats.parked > parked.count(0));
    return exceeded ? exit_negative : exit_ok;
  });
}

}  // namespace

void add_inspect_commands(command group) {
  add_outbox_list(group);
  add_show(group);
  add_explain(group);
  add_outbox_stats(group);
}

}  // namespace holdfast::cli
