#include <holdfast/error.hpp>
#include <holdfast/outbox/relay.hpp>
#include <holdfast/worker.hpp>

#include "background.hpp"
#include "entry_text.hpp"
#include "groups.hpp"
#include "outbox_exec.hpp"
#include "outbox_place.hpp"
#include "outbox_text.hpp"
#include "progress.hpp"
#include "text.hpp"

#if HOLDFAST_HAS_HTTP
#include "http_target.hpp"
#endif

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace holdfast::cli {

namespace {

using std::chrono::milliseconds;

event_handler handler_of_program(std::string command) {
  return [command = std::move(command)](const delivery& what) {
    program_call call{.command = command, .input = relay::to_json(what) + "\n", .pause = std::chrono::seconds(60)};
    const auto& about = what.event();
    call.environment = {"HOLDFAST_EVENT_ID=" + about.id, "HOLDFAST_EVENT_TYPE=" + about.type, "HOLDFAST_EVENT_KEY=" + about.key,
                        "HOLDFAST_EVENT_ATTEMPTS=" + std::to_string(what.attempts()),
                        "HOLDFAST_EVENT_FENCE=" + std::to_string(what.fence())};
    return run_program(call, what.lost());
  };
}

#if HOLDFAST_HAS_HTTP
event_handler handler_of_url(const std::string& url, milliseconds timeout, std::string source, relay::cloud_event_options options) {
  return [to = std::make_shared<http_target>(url, timeout), source = std::move(source), options](const delivery& what) {
    return to->post(relay::cloud_event_headers(what, source, options), what.event().payload, what.event().content_type);
  };
}
#endif

/// Lines for a terminal. A payload of an event cannot drive it.
event_handler handler_of_terminal() {
  return [mutex = std::make_shared<std::mutex>()](const delivery& event) {
    const std::string line = json_for_terminal(relay::to_json(event)) + "\n";
    const std::scoped_lock lock(*mutex);
    output terminal(STDOUT_FILENO);
    terminal << line;
    terminal.flush();
    return outcome::done();
  };
}

/// Lines for standard output. Only a reader that went away throttles them.
event_handler handler_of_output(std::shared_ptr<std::atomic<bool>> reader_gone) {
  if (::isatty(STDOUT_FILENO) != 0) return handler_of_terminal();
  return [lines = relay::json_lines("-"), gone = std::move(reader_gone)](const delivery& what) {
    auto how = lines(what);
    if (how.what() == outcome::kind::throttled) *gone = true;
    return how;
  };
}

void refuse_blank(const option& given, const char* why) {
  if (given.given() && given.text().find_first_not_of(" \t\n\v\f\r") == std::string::npos) throw error(errc::invalid_argument, why);
}

/// Where events go.
struct target_choice {
  option exec;
  option http;
  option file;
  option stream;
  option timeout;
  option pass_credentials;

  explicit target_choice(command& at)
      : exec(at.value("--exec", "CMD", "A program for each event: its JSON on standard input, its exit code is the outcome")),
        http(at.value("--http", "URL", "POST each event there as a CloudEvent, with an Idempotency-Key")),
        file(at.value("--file", "FILE", "Append each event to this file as a line of JSON; - is standard output").file()),
        stream(at.value("--stream", "KEY", "Append each event to this stream of the Redis that has the outbox")),
        timeout(at.value("--timeout", "TIME", "With --http: how long a request may take, the answer included (default 30s)")),
        pass_credentials(at.flag("--pass-credentials", "With --http: pass the Authorization and Cookie headers of events on")) {}

  /// `reader_gone` is set when events go to standard output and nobody reads it any more.
  [[nodiscard]] event_handler chosen([[maybe_unused]] console& io, const outbox_place& place,
                                     const std::shared_ptr<std::atomic<bool>>& reader_gone) const {
    const auto given = std::ranges::count_if(std::vector{exec, http, file, stream}, &option::given);
    if (given != 1) throw error(errc::invalid_argument, "say where events go: one of --exec CMD, --http URL, --file FILE, --stream KEY");
    if (timeout.given() && !http.given()) throw error(errc::invalid_argument, "--timeout is for --http; leave it out");
    if (pass_credentials.given() && !http.given()) throw error(errc::invalid_argument, "--pass-credentials is for --http; leave it out");
    // A shell does nothing for no command, and says that all is well: every event would be acknowledged unseen.
    refuse_blank(exec, "--exec names no program");
    refuse_blank(http, "--http names no URL");
    refuse_blank(file, "--file names no file");
    refuse_blank(stream, "--stream names no key");
    if (exec.given()) return handler_of_program(exec.text());
    if (file.text() == "-") return handler_of_output(reader_gone);
    if (file.given()) return relay::json_lines(file.text());
    if (stream.given()) {
#if HOLDFAST_HAS_REDIS
      if (!place.url.text().starts_with("redis"))
        throw error(errc::invalid_argument, "--stream needs an outbox on Redis; use --exec, --http or --file");
      return relay::redis_stream(redis::client(place.url.text(), {.password = place.password.read(io)}), stream.text());
#else
      throw error(errc::unsupported_type, "this holdfast was built without Redis; use --exec, --http or --file");
#endif
    }
#if HOLDFAST_HAS_HTTP
    // The same name whether it was typed or not; braces are not part of a URI.
    std::string source = "/holdfast/outbox/" + place.prefix.text(outbox_options{}.prefix);
    std::erase_if(source, [](char c) { return c == '{' || c == '}'; });
    return handler_of_url(http.text(), time_of(timeout, "30s"), std::move(source), {.credentials = pass_credentials.given()});
#else
    throw error(errc::unsupported_type,
                "this holdfast was built without HTTP; install libcpp-httplib-dev and build it again, or use --exec");
#endif
  }
};

/// Nothing was delivered, and nothing failed: say why. A store that cannot be asked any more costs nobody the report.
void warn_if_paused(console& io, const outbox& from) {
  try {
    if (const auto left = from.stats(); left.paused && left.overdue.count() > 0)
      io.warn("the outbox is paused, and events are due; see: holdfast outbox resume");
  } catch (const error&) {  // NOLINT(bugprone-empty-catch)
  }
}

/// Runs the worker on a thread of its own, while this one shows what happens and hears signals.
worker_report run_and_show(console& io, worker& with, kept<std::string>& warnings, const std::atomic<bool>& reader_gone, bool until_empty) {
  const stop_signals stop;
  worker_report report;
  std::exception_ptr wrong;
  std::atomic<bool> over = false;
  {
    std::jthread work([&](const std::stop_token& told) {
      try {
        report = until_empty ? with.run_until_empty(told) : with.run(told);
      } catch (...) {
        wrong = std::current_exception();
      }
      over = true;
    });
    progress shown(io, "delivered", true);
    while (!over) {
      if (stop.came(20) || reader_gone) work.request_stop();
      const auto said = warnings.take();
      if (!said.empty()) shown.end();
      for (const auto& line : said) io.warn(line);
      shown.at(with.count().done);
    }
    shown.end();
  }
  for (const auto& line : warnings.take()) io.warn(line);
  if (wrong) std::rethrow_exception(wrong);
  return report;
}

}  // namespace

void add_work_command(command group) {
  command at = group.add("work", "Deliver events, until told to stop");
  at.about(
      "Each event is delivered at least once, those of a key in their order; it is gone when its receiver said so. SIGINT and SIGTERM let\n"
      "the deliveries that run come to their end. With --until-empty it ends when nothing is due; exit code 1 when something failed.\n"
      "\n"
      "--exec: exit code 0 is done, 65 (EX_DATAERR) parks the event, 75 (EX_TEMPFAIL) is not now and does not count, any other is tried "
      "again,\n"
      "a signal is ambiguous. The last line on standard error is kept as the reason. In the environment: HOLDFAST_EVENT_ID, _TYPE, _KEY,\n"
      "_ATTEMPTS, _FENCE. Other variables that begin with HOLDFAST_, such as HOLDFAST_PASSWORD, are not passed to the program.\n"
      "\n"
      "--http: --timeout is for the whole request. At most 64 KiB of the header and 64 KiB of the body of an answer are read, and nothing\n"
      "is decompressed: the status is what counts.");
  at.examples(
      "holdfast outbox work --outbox sqlite:app.db --exec './deliver' --until-empty\n"
      "holdfast outbox work --outbox redis://127.0.0.1 --http https://example.org/events --concurrency 8\n"
      "holdfast outbox work --outbox redis://127.0.0.1 --file events.jsonl --lease 10s");
  const outbox_place place(at);
  const target_choice target(at);
  const option until_empty = at.flag("--until-empty", "End when nothing is due");
  const option lease = at.value("--lease", "TIME", "When a worker dies, others get its events after this (default 30s); renewed meanwhile");
  const option concurrency = at.value("--concurrency", "N", "Deliveries at the same time (default 4)").number(1, 1024);
  const option attempts =
      at.value("--max-attempts", "N", "Failures until an event is parked (default 12); 0: no limit").number(0, 1'000'000);
  const option limit =
      at.value("--inline-limit", "BYTES", "Park events with a larger payload (default 262144); the inline_limit of the publishers")
          .number(1, std::uint64_t{16} << 20U);
  const option policy = at.value("--parked", "", "What the key of a parked event does (default skip)").one_of({"skip", "block", "park"});
  const option compete = at.flag("--compete", "Share the lanes with other workers; otherwise one worker has a lane, the others wait");
  const option json = at.flag("--json", "Print what was done as one JSON object");
  at.run([=](console& io) {
    kept<std::string> warnings;
    worker_options how;
    how.concurrency = static_cast<std::size_t>(concurrency.count(how.concurrency));
    how.lease = time_of(lease, "30s");
    how.lock_time = std::min(how.lock_time, how.lease);
    how.compete = compete.given();
    how.handling.max_attempts = static_cast<std::uint32_t>(attempts.count(how.handling.max_attempts));
    if (policy.text() == "block") how.handling.parked = park_policy::block;
    if (policy.text() == "park") how.handling.parked = park_policy::park;
    how.log = keep_warnings(warnings);
    const auto reader_gone = std::make_shared<std::atomic<bool>>(false);
    auto handler = target.chosen(io, place, reader_gone);
    outbox_options options;
    options.inline_limit = static_cast<std::size_t>(limit.count(options.inline_limit));
    const auto from = place.open(io, std::move(options), keep_warnings(warnings));
    worker with(from, std::move(handler), std::move(how));
    const auto report = run_and_show(io, with, warnings, *reader_gone, until_empty.given());
    if (until_empty.given()) warn_if_paused(io, from);
    // Standard output belongs to the events where they go there.
    const bool shared = target.file.text() == "-";
    if (json.given()) (shared ? io.err : io.out) << work_json(report);
    else if (!shared) io.out << work_text(report);
    io.err.flush();
    const auto& did = report.did;
    const bool all_well = did.retried + did.parked + did.in_doubt + report.still_running == 0 && !*reader_gone;
    return all_well || !until_empty.given() ? exit_fine : exit_no;
  });
}

void add_tail_command(command group) {
  command at = group.add("tail", "Show events as they are published, until told to stop");
  at.about(
      "Looks again and again, so an event that is delivered at once may be missed; each look reads the whole outbox. To see every event,\n"
      "deliver them to a file: holdfast outbox work --file.");
  at.examples("holdfast outbox tail --outbox redis://127.0.0.1\nholdfast outbox tail --outbox sqlite:app.db --json --for 10s");
  const outbox_place place(at);
  const option lasts = at.value("--for", "TIME", "End after so long");
  const option json = at.flag("--json", "One JSON object a line");
  at.run([=](console& io) {
    const stop_signals stop;
    const auto open = place.open(io);
    const auto end = lasts.given() ? std::chrono::steady_clock::now() + time_of(lasts, "0s") : std::chrono::steady_clock::time_point::max();
    std::map<std::size_t, std::int64_t> newest;  // by lane
    bool first = true;
    do {
      std::vector<outbox_record> fresh;
      auto seen = newest;
      std::string after;
      do {
        auto page = open.scan(scan_what::all, after, 500);
        for (auto& each : page.records) {
          const auto lane = each.what.lane;
          if (!first && each.what.sequence > newest[lane]) fresh.push_back(each);
          seen[lane] = std::max(seen[lane], each.what.sequence);
        }
        after = std::move(page.after);
      } while (!after.empty());
      newest = std::move(seen);
      first = false;
      std::ranges::sort(fresh, {}, [](const outbox_record& each) { return each.what.created_at; });
      const timestamp now = system_clock()->now();
      for (const auto& each : fresh) io.out << (json.given() ? record_json(each) : record_line(each, now)) << "\n";
      io.out.flush();
    } while (!stop.came() && std::chrono::steady_clock::now() < end);
    return exit_fine;
  });
}

}  // namespace holdfast::cli
