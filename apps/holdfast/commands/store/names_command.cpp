// holdfast store names.

#include "commands/groups.hpp"
#include "commands/store/entry_location.hpp"
#include "commands/store/entry_pages.hpp"
#include "terminal/progress.hpp"
#include "terminal/table.hpp"
#include "terminal/text.hpp"
#include "terminal/time_text.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace holdfast::cli {

namespace {

/// What is known of a name after a number of its entries was read.
struct name_summary {
  std::string name{};
  std::uint64_t entries = 0;  ///< all of them
  std::uint64_t read = 0;
  std::uint64_t bytes = 0;  ///< of payloads
  std::uint64_t expired = 0;
  std::optional<timestamp> oldest{};
  std::optional<timestamp> next_expiry{};  ///< of the entries that have not expired

  [[nodiscard]] bool complete() const noexcept { return read >= entries; }
};

name_summary summarize(store& entries, std::string name, std::uint64_t limit, timestamp now) {
  name_summary summary{.name = std::move(name)};
  summary.entries = entries.count(summary.name);
  const auto unreadable = for_each_entry(entries, summary.name, limit, [&](const entry& e) {
    ++summary.read;
    summary.bytes += e.payload ? e.payload->size() : 0;
    if (!summary.oldest || e.as_of < *summary.oldest) summary.oldest = e.as_of;
    if (e.expire_on < now) ++summary.expired;
    else if (!summary.next_expiry || e.expire_on < *summary.next_expiry)
      summary.next_expiry = e.expire_on;
  });
  summary.read += unreadable;
  return summary;
}

std::string json_or_null(const std::optional<timestamp>& time) {
  return time ? json_string(iso_time(*time)) : "null";
}

std::string summary_json(const name_summary& summary) {
  return "{\"name\":" + json_string(summary.name) +
         ",\"entries\":" + std::to_string(summary.entries) +
         ",\"read\":" + std::to_string(summary.read) +
         ",\"bytes\":" + std::to_string(summary.bytes) +
         ",\"expired\":" + std::to_string(summary.expired) +
         ",\"oldest\":" + json_or_null(summary.oldest) +
         ",\"next_expiry\":" + json_or_null(summary.next_expiry) + "}";
}

/// `+` marks a lower bound: not all entries were read.
std::vector<std::string> summary_row(const name_summary& summary, timestamp now) {
  const std::string mark = summary.complete() ? "" : "+";
  return {printable(summary.name),
          grouped(summary.entries),
          human_bytes(summary.bytes) + mark,
          grouped(summary.expired) + mark,
          summary.oldest ? human_duration(now - *summary.oldest) + mark : "-",
          summary.next_expiry ? "in " + human_duration(*summary.next_expiry - now) : "-"};
}

}  // namespace

void add_names_command(command group) {
  command cmd = group.add("names", "List the names of a store: entries, bytes, age, next expiry");
  cmd.about(
      "Counts all entries of each name, and reads at most --read of them for the other columns; a "
      "+ marks a lower bound. Exit code 1 if the store is empty.");
  cmd.examples(
      "holdfast store names --store sqlite:answers.db\n"
      "holdfast store names --store postgresql://localhost/app --json");
  const store_location location(cmd);
  const option most =
      cmd.value("--read", "COUNT", "Maximum number of entries to read of a name (default 10000)")
          .number(1, 1'000'000'000);
  const option json = cmd.flag("--json", "Print one JSON object per line");
  cmd.run([=](console& io) {
    const auto entries = location.open(io);
    const timestamp now = system_clock()->now();
    progress shown(io, "read", true);
    table rows({"name", "entries", "bytes", "expired", "oldest", "next expiry"}, 1);
    const auto names = names_of(*entries);
    for (std::size_t i = 0; i < names.size(); ++i) {
      const auto summary = summarize(*entries, names[i], most.count(10'000), now);
      if (json.is_set()) io.out << summary_json(summary) << "\n";
      else rows.add(summary_row(summary, now));
      shown.update(i + 1, names.size());
    }
    shown.clear();
    if (!json.is_set() && !names.empty()) rows.print(io.out);
    return names.empty() ? exit_negative : exit_ok;
  });
}

}  // namespace holdfast::cli
