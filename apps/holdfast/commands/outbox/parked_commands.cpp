// holdfast outbox parked, replay and discard.

#include <holdfast/error.hpp>
#include <holdfast/outbox.hpp>

#include "commands/groups.hpp"
#include "commands/outbox/location.hpp"
#include "commands/outbox/record_pages.hpp"
#include "commands/outbox/record_text.hpp"
#include "terminal/progress.hpp"
#include "terminal/table.hpp"
#include "terminal/text.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace holdfast::cli {

namespace {

/// Options that select parked events.
struct parked_selection {
  option ids;
  option all;
  option type;
  option reason;

  explicit parked_selection(command& cmd)
      : ids(cmd.rest("ID", "Ids of parked events")),
        all(cmd.flag("--all", "All parked events")),
        type(cmd.value("--type", "T", "All parked events of this type")),
        reason(cmd.value("--error", "TEXT", "All parked events whose error contains this text")) {}

  [[nodiscard]] bool matches(const outbox_record& record) const {
    return (!type.is_set() || record.details.event.type == type.text()) &&
           (!reason.is_set() || record.details.last_error.find(reason.text()) != std::string::npos);
  }

  /// Warns that no parked event has the type and the error. Returns the exit code for that.
  [[nodiscard]] exit_code report_no_match(console& io) const {
    if (!type.is_set() && !reason.is_set()) return exit_ok;
    io.warn("no parked event has " +
            (type.is_set() ? "the type '" + printable(type.text()) + "'" : std::string()) +
            (type.is_set() && reason.is_set() ? " and " : "") +
            (reason.is_set() ? "an error with '" + printable(reason.text()) + "'" : std::string()) +
            "; see: holdfast outbox parked --groups");
    return exit_negative;
  }

  /// The ids of the selected events, in the order of publication.
  [[nodiscard]] std::vector<std::string> selected_ids(const outbox& source) const {
    const bool by_filter = all.is_set() || type.is_set() || reason.is_set();
    if (ids.is_set() == by_filter)
      throw error(errc::invalid_argument,
                  "a selection is required; give either IDs, or --all, --type T, --error TEXT");
    if (all.is_set() && (type.is_set() || reason.is_set()))
      throw error(errc::invalid_argument, "--all and " +
                                              std::string(type.is_set() ? "--type" : "--error") +
                                              " exclude each other; give one of them, not both");
    if (ids.is_set()) return ids.all();
    struct position {
      std::size_t lane = 0;
      std::int64_t sequence = 0;
      std::string id{};
      auto operator<=>(const position&) const = default;
    };
    std::vector<position> positions;
    for_each_record(source, scan_what::parked, [&](const outbox_record& record) {
      if (matches(record))
        positions.push_back({.lane = record.details.lane,
                             .sequence = record.details.sequence,
                             .id = record.details.event.id});
      return true;
    });
    // Events of one key are replayed in this order.
    std::sort(positions.begin(), positions.end());
    std::vector<std::string> selected;
    selected.reserve(positions.size());
    for (auto& event : positions) selected.push_back(std::move(event.id));
    return selected;
  }
};

/// Prints the number of parked events by type and error.
void print_parked_groups(console& io, const outbox& source, bool json) {
  std::map<std::pair<std::string, std::string>, std::uint64_t> counts;
  for_each_record(source, scan_what::parked, [&](const outbox_record& record) {
    ++counts[{record.details.event.type, record.details.last_error}];
    return true;
  });
  for (const auto& [group, count] : counts) {
    const auto& [type, reason] = group;
    if (json)
      io.out << "{\"type\":" << json_string(type) << ",\"error\":" << json_string(reason)
             << ",\"events\":" << std::to_string(count) << "}\n";
    else io.out << grouped(count) << "  " << printable(type) << "  " << printable(reason) << "\n";
  }
}

void add_parked(command group) {
  command cmd = group.add("parked", "List events that could not be delivered");
  cmd.examples(
      "holdfast outbox parked --outbox sqlite:app.db\n"
      "holdfast outbox parked --outbox redis://127.0.0.1 --groups");
  const outbox_location location(cmd);
  const option groups = cmd.flag("--groups", "Count the events by type and error instead");
  const option limit = cmd.value("--limit", "COUNT", "Maximum number of events (default 100)")
                           .number(1, 1'000'000'000);
  const option json = cmd.flag("--json", "Print one JSON object per line");
  cmd.run([=](console& io) {
    const auto source = location.open(io);
    if (groups.is_set()) {
      print_parked_groups(io, source, json.is_set());
      return exit_ok;
    }
    const timestamp now = system_clock()->now();
    std::uint64_t remaining = limit.count(100);
    long_table rows(io.out, record_header());
    for_each_record(source, scan_what::parked, [&](const outbox_record& record) {
      if (json.is_set()) io.out << record_json(record) << "\n";
      else rows.add(record_row(record, now), printable(record.details.last_error));
      return --remaining > 0;
    });
    rows.finish();
    return exit_ok;
  });
}

/// Adds replay or discard. `past` is the label of the count: `replayed`.
void add_parked_action(command group, const std::string& name, std::string_view summary,
                       std::string_view about, std::string_view past,
                       std::size_t (outbox_admin::*function)(std::span<const std::string>) const) {
  command cmd = group.add(name, summary);
  cmd.about(about);
  cmd.examples("holdfast outbox " + name +
               " --outbox sqlite:app.db 018f2b6e-5c1e-7000-8000-000000000001\nholdfast outbox " +
               name + " --outbox redis://127.0.0.1 --type mail --error 'status 410'");
  const outbox_location location(cmd);
  const parked_selection selection(cmd);
  const option json = cmd.flag("--json", "Print one JSON object");
  cmd.run([=, past = std::string(past)](console& io) {
    const auto source = location.open(io);
    const auto ids = selection.selected_ids(source);
    const auto admin = source.admin();
    std::uint64_t count = 0;
    progress shown(io, past, false);
    constexpr std::size_t batch_size = 500;
    for (std::size_t begin = 0; begin < ids.size(); begin += batch_size) {
      const auto size = std::min(batch_size, ids.size() - begin);
      count += (admin.*function)(std::span(ids).subspan(begin, size));
      shown.update(count, ids.size());
    }
    shown.clear();
    if (json.is_set()) io.out << "{" << json_string(past) << ":" << std::to_string(count) << "}\n";
    else io.out << past << " " << grouped(count) << "\n";
    if (ids.empty()) return selection.report_no_match(io);
    return count > 0 ? exit_ok : exit_negative;
  });
}

}  // namespace

void add_parked_commands(command group) {
  add_parked(group);
  add_parked_action(group, "replay", "Deliver parked events again",
                    "Their failures are counted from 0 again.", "replayed", &outbox_admin::replay);
  add_parked_action(group, "discard", "Delete parked events",
                    "The key of a discarded event is unblocked if it was blocked.", "discarded",
                    &outbox_admin::discard);
}

}  // namespace holdfast::cli
