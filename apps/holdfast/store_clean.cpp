#include <holdfast/executor.hpp>
#include <holdfast/store/cleanup.hpp>

#include "background.hpp"
#include "entry_text.hpp"
#include "groups.hpp"
#include "progress.hpp"
#include "store_place.hpp"
#include "text.hpp"

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace holdfast::cli {
namespace {

/// One run now, whoever else cleans: it is harmless twice.
exit_code clean_once(console& io, store& what, bool json) {
  constexpr std::size_t step = 1000;
  const timestamp now = system_clock()->now();
  std::uint64_t removed = 0;
  progress shown(io, "removed", false);
  for (std::size_t last = step; last != 0;) {
    last = what.expire(now, step);
    removed += last;
    shown.at(removed);
  }
  shown.end();
  if (json) io.out << "{\"removed\":" << std::to_string(removed) << "}\n";
  else io.out << "removed " << grouped(removed) << "\n";
  return exit_fine;
}

std::string report_text(const cleanup_report& report) {
  std::string text = iso(report.started) + "  ";
  if (report.result == cleanup_result::held_elsewhere) text += "left to " + printable(report.holder);
  else if (report.result == cleanup_result::failed) text += "failed: " + printable(report.problem);
  else if (report.result == cleanup_result::lost) text += "removed " + grouped(report.removed) + ", then another one took over";
  else text += "removed " + grouped(report.removed) + (report.result == cleanup_result::limited ? ", more in the next run" : "");
  return text + "\n";
}

std::string report_json(const cleanup_report& report) {
  const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(report.duration).count();
  return "{\"started\":\"" + iso(report.started) + "\",\"result\":\"" + std::string(to_string(report.result)) +
         "\",\"removed\":" + std::to_string(report.removed) + ",\"duration_ms\":" + std::to_string(took) +
         ",\"holder\":" + json_string(report.holder) + ",\"problem\":" + json_string(report.problem) + "}\n";
}

exit_code watch(console& io, const store_place& place, cleanup_options how, bool json) {
  const stop_signals stop;
  kept<std::string> warnings;
  kept<cleanup_report> reports;
  how.prefix = place.prefix.text();
  how.on_run = [&reports](const cleanup_report& one) { reports.add(one); };
  // Its threads end before what they write to does.
  const auto threads = make_thread_pool({.threads = 2, .linger = std::chrono::seconds(30)});
  const auto db = place.open_database(io, {.log = keep_warnings(warnings), .executor = threads});
  cleanup cleaner(db, place.open_store(db), std::move(how));
  for (bool ending = false; !ending;) {
    ending = stop.came();
    // A run that ends within the deadline gives its lease back; one that does not is followed when it ends.
    if (ending) cleaner.close(std::chrono::steady_clock::now() + std::chrono::seconds(30));
    for (const auto& line : warnings.take()) io.warn(line);
    for (const auto& one : reports.take()) io.out << (json ? report_json(one) : report_text(one));
    io.out.flush();
  }
  return exit_fine;
}

}  // namespace

void add_clean_command(command group) {
  command at = group.add("clean", "Remove the entries that have expired");
  at.about(
      "Without --watch it cleans once and ends. With --watch it stays and cleans on a schedule, until SIGTERM or SIGINT; of all that watch "
      "one store, on any machine, one cleans at a time: the holder of a lease, a row of {prefix}HOLDFAST_LEASE.");
  at.examples(
      "holdfast store clean --store sqlite:answers.db\n"
      "holdfast store clean --store postgresql://db/app --watch --cron '0 */10 * * * *'");
  const store_place place(at);
  const option stay = at.flag("--watch", "Stay, and clean on a schedule, one machine at a time");
  const option cron = at.value("--cron", "EXPR", "With --watch, when: second minute hour day-of-month month day-of-week, UTC; hourly");
  const option jitter = at.value("--jitter", "TIME", "With --watch: each run is later by up to this; 60s");
  const option json = at.flag("--json", "Print one JSON object for each run");
  at.run([=](console& io) {
    if (!stay.given() && (cron.given() || jitter.given()))
      throw error(errc::invalid_argument, "--cron and --jitter say when to clean again and again; add --watch");
    if (!stay.given()) return clean_once(io, *place.open(io), json.given());
    cleanup_options how;
    if (cron.given()) how.cron = cron.text();
    if (jitter.given()) how.jitter = std::chrono::duration_cast<std::chrono::milliseconds>(read_duration(jitter.text()));
    return watch(io, place, std::move(how), json.given());
  });
}

}  // namespace holdfast::cli
