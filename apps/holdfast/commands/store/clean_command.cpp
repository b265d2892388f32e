// holdfast store clean.

#include <holdfast/executor.hpp>
#include <holdfast/store/cleanup.hpp>

#include "commands/groups.hpp"
#include "commands/observation.hpp"
#include "commands/store/location.hpp"
#include "terminal/message_queue.hpp"
#include "terminal/progress.hpp"
#include "terminal/stop_signals.hpp"
#include "terminal/text.hpp"
#include "terminal/time_text.hpp"

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace holdfast::cli {
namespace {

/// Cleans now, without a lease: concurrent runs are harmless.
exit_code clean_once(console& io, store& entries, bool json) {
  constexpr std::size_t batch_size = 1000;
  const timestamp now = system_clock()->now();
  std::uint64_t removed = 0;
  progress shown(io, "removed", false);
  for (std::size_t batch = batch_size; batch != 0;) {
    batch = entries.expire(now, batch_size);
    removed += batch;
    shown.update(removed);
  }
  shown.clear();
  if (json) io.out << "{\"removed\":" << std::to_string(removed) << "}\n";
  else io.out << "removed " << grouped(removed) << "\n";
  return exit_ok;
}

std::string report_text(const cleanup_report& report) {
  std::string text = iso_time(report.started) + "  ";
  if (report.result == cleanup_result::held_elsewhere)
    text += "skipped, the lease is held by " + printable(report.holder);
  else if (report.result == cleanup_result::failed) text += "failed: " + printable(report.problem);
  else if (report.result == cleanup_result::lost)
    text += "removed " + grouped(report.removed) + ", then another process took over";
  else
    text += "removed " + grouped(report.removed) +
            (report.result == cleanup_result::limited ? ", more in the next run" : "");
  return text + "\n";
}

std::string report_json(const cleanup_report& report) {
  const auto duration =
      std::chrono::duration_cast<std::chrono::milliseconds>(report.duration).count();
  return "{\"started\":\"" + iso_time(report.started) + "\",\"result\":\"" +
         std::string(to_string(report.result)) +
         "\",\"removed\":" + std::to_string(report.removed) +
         ",\"duration_ms\":" + std::to_string(duration) +
         ",\"holder\":" + json_string(report.holder) +
         ",\"problem\":" + json_string(report.problem) + "}\n";
}

exit_code clean_on_schedule(console& io, const store_location& location, cleanup_options options,
                            const observation_address& observed, bool json) {
  const stop_signals stop;
  const auto metrics = observed.metrics();
  const auto records = std::make_shared<record_queue>();
  const auto notices = std::make_shared<message_queue<std::string>>();
  message_queue<cleanup_report> reports;
  options.prefix = location.prefix.text();
  options.on_run = [&reports](const cleanup_report& report) { reports.push(report); };
  // Declared after the queues, so that its threads end before the queues do.
  const auto threads = make_thread_pool({.threads = 2, .linger = std::chrono::seconds(30)});
  const auto db = location.open_database(
      io, {.log = queue_notices(notices, queue_records(records, io.log.least)),
           .metrics = metrics,
           .executor = threads});
  const auto cleaned = location.open_store(db);
  cleanup cleaner(db, cleaned, std::move(options));
  const auto monitored = observed.start(
      io, metrics,
      {.name = "database", .ask = [cleaned] { return detail::serve::problem_of_store(*cleaned); }});
  const auto reported =
      report_process(cleaner, db, location.url.text(),
                     {.prefix = location.prefix.text(), .create_schema = location.create.is_set()});
  for (bool stopping = false; !stopping;) {
    stopping = stop.wait();
    if (stopping && monitored) monitored->begin_drain();
    // A run that ends before the deadline releases its lease.
    if (stopping) cleaner.close(std::chrono::steady_clock::now() + std::chrono::seconds(30));
    print_records(io, *records);
    for (const auto& line : notices->drain()) io.note(line);
    for (const auto& report : reports.drain())
      io.out << (json ? report_json(report) : report_text(report));
    io.out.flush();
  }
  return exit_ok;
}

}  // namespace

void add_clean_command(command group) {
  command cmd = group.add("clean", "Remove expired entries");
  cmd.about(
      "Without --watch it cleans once. With --watch it cleans on a schedule, until SIGTERM or "
      "SIGINT. Of all processes that watch a store, on any machine, only the holder of a lease "
      "cleans. The lease is a row of {prefix}HOLDFAST_LEASE. 'holdfast serve' shows a process that "
      "watches, if the tables of instances exist.");
  cmd.examples(
      "holdfast store clean --store sqlite:answers.db\n"
      "holdfast store clean --store postgresql://db/app --watch --cron '0 */10 * * * *' "
      "--listen 127.0.0.1:9100");
  const store_location location(cmd);
  const option watch =
      cmd.flag("--watch", "Clean on a schedule until stopped, one process at a time");
  const option cron = cmd.value(
      "--cron", "EXPR",
      "With --watch: second minute hour day-of-month month day-of-week, in UTC (default hourly)");
  const option jitter =
      cmd.value("--jitter", "TIME", "With --watch: maximum random delay of each run (default 60s)");
  const option json = cmd.flag("--json", "Print one JSON object for each run");
  const observation_address observed(cmd);
  cmd.run([=](console& io) {
    if (!watch.is_set() && (cron.is_set() || jitter.is_set()))
      throw error(errc::invalid_argument, "--cron and --jitter need a schedule; add --watch");
    if (!watch.is_set() && (observed.listen.is_set() || observed.allow_plain.is_set()))
      throw error(errc::invalid_argument,
                  "--listen and --allow-plain are for a process that runs; add --watch");
    if (!watch.is_set()) return clean_once(io, *location.open(io), json.is_set());
    cleanup_options options;
    if (cron.is_set()) options.cron = cron.text();
    if (jitter.is_set())
      options.jitter =
          std::chrono::duration_cast<std::chrono::milliseconds>(parse_duration(jitter.text()));
    return clean_on_schedule(io, location, std::move(options), observed, json.is_set());
  });
}

}  // namespace holdfast::cli
