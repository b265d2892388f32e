// holdfast outbox work and tail.

#include <holdfast/error.hpp>
#include <holdfast/outbox/relay.hpp>
#include <holdfast/worker.hpp>

#include "base/url.hpp"
#include "commands/groups.hpp"
#include "commands/observation.hpp"
#include "commands/outbox/exec_target.hpp"
#include "commands/outbox/http_target.hpp"
#include "commands/outbox/location.hpp"
#include "commands/outbox/record_pages.hpp"
#include "commands/outbox/record_text.hpp"
#include "commands/outbox/relay_target.hpp"
#include "terminal/exclusive_options.hpp"
#include "terminal/message_queue.hpp"
#include "terminal/progress.hpp"
#include "terminal/stop_signals.hpp"
#include "terminal/text.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace holdfast::cli {

namespace {

using std::chrono::milliseconds;

/// Of a message broker, which confirms them together.
constexpr std::size_t events_per_call = 200;

event_handler exec_handler(std::string command) {
  return [command = std::move(command),
          guard = std::make_shared<program_guard>()](const delivery& delivered) {
    program_call call{.command = command,
                      .input = relay::to_json(delivered) + "\n",
                      .retry_delay = std::chrono::seconds(60)};
    const auto& event = delivered.event();
    call.environment = {"HOLDFAST_EVENT_ID=" + event.id, "HOLDFAST_EVENT_TYPE=" + event.type,
                        "HOLDFAST_EVENT_KEY=" + event.key,
                        "HOLDFAST_EVENT_ATTEMPTS=" + std::to_string(delivered.attempts()),
                        "HOLDFAST_EVENT_FENCE=" + std::to_string(delivered.fence())};
    return run_program(call, *guard, delivered.lost());
  };
}

event_handler http_handler(const std::string& url, milliseconds timeout, std::string source,
                           relay::cloud_event_options options) {
  return [target = std::make_shared<http_target>(url, timeout), source = std::move(source),
          options](const delivery& delivered) {
    return target->post(relay::cloud_event_headers(delivered, source, options),
                        delivered.event().payload, delivered.event().content_type);
  };
}

/// Prints lines on a terminal. They are escaped, so that an event cannot control it.
event_handler terminal_handler() {
  return [mutex = std::make_shared<std::mutex>()](const delivery& delivered) {
    const std::string line = json_for_terminal(relay::to_json(delivered)) + "\n";
    const std::scoped_lock lock(*mutex);
    output terminal(STDOUT_FILENO);
    terminal << line;
    terminal.flush();
    return outcome::done();
  };
}

/// Prints lines on standard output. The outcome is `throttled` only if the reader closed it.
event_handler output_handler(std::shared_ptr<std::atomic<bool>> reader_gone) {
  if (::isatty(STDOUT_FILENO) != 0) return terminal_handler();
  return
      [lines = relay::json_lines("-"), gone = std::move(reader_gone)](const delivery& delivered) {
        auto result = lines(delivered);
        if (result.code() == outcome::kind::throttled) *gone = true;
        return result;
      };
}

void refuse_blank(const option& target, const char* message) {
  if (target.is_set() && target.text().find_first_not_of(" \t\n\v\f\r") == std::string::npos)
    throw error(errc::invalid_argument, message);
}

/// Refuses a command that begins with the path of a file that is not a program. Other commands are
/// for the shell to find.
void require_program(const std::string& command) {
  const auto program = command.substr(0, command.find_first_of(" \t\n;&|<>"));
  const bool is_path = program.find('/') != std::string::npos &&
                       program.find_first_of("'\"\\$`*?[]{}()=~!#") == std::string::npos;
  if (!is_path) return;
  struct stat status{};
  if (::stat(program.c_str(), &status) != 0)
    throw error(errc::invalid_argument, "--exec: " + program + " cannot be found: " +
                                            std::generic_category().message(errno) +
                                            "; give a program that exists");
  if (S_ISDIR(status.st_mode) || ::access(program.c_str(), X_OK) != 0)
    throw error(errc::invalid_argument,
                "--exec: " + program + " is not executable; run chmod +x, or give another program");
}

/// Lines in the database file of the outbox would destroy it.
void refuse_database_file(const std::string& name, const std::string& url) {
  if (!url.starts_with("sqlite:")) return;
  const auto parsed = detail::parse_url(url);
  const auto database = (parsed.has_authority ? "/" : "") + parsed.path;
  struct stat of_file{};
  for (const char* suffix : {"", "-wal", "-shm", "-journal"}) {
    struct stat of_database{};
    if (::stat(name.c_str(), &of_file) != 0 ||
        ::stat((database + suffix).c_str(), &of_database) != 0)
      continue;
    if (of_file.st_dev == of_database.st_dev && of_file.st_ino == of_database.st_ino)
      throw error(errc::invalid_argument,
                  "--file: " + name + " is the database of the outbox; give another file");
  }
}

/// Options that select the target of deliveries.
struct target_options {
  option relay_url;
  option exec;
  option http;
  option file;
  option stream;
  option timeout;
  option pass_credentials;

  explicit target_options(command& cmd)
      : relay_url(cmd.value("--relay", "URL",
                            "Publish each event to this broker, stream, URL or file: amqp://, "
                            "nats://, kafka://, redis+stream://, https://, file:")),
        exec(cmd.value(
            "--exec", "CMD",
            "Run a program for each event; it reads JSON, and its exit code is the outcome")),
        http(cmd.value("--http", "URL",
                       "POST each event to this URL as a CloudEvent, with an Idempotency-Key")),
        file(cmd.value("--file", "FILE",
                       "Append each event to this file as a line of JSON; -: standard output")
                 .file()),
        stream(
            cmd.value("--stream", "KEY", "Append each event to this stream of the outbox's Redis")),
        timeout(cmd.value("--timeout", "TIME",
                          "With --relay and --http: time limit of an answer (default 30s)")),
        pass_credentials(
            cmd.flag("--pass-credentials",
                     "With --relay and --http: send the Authorization and Cookie headers of "
                     "events")) {}

  /// The value of --file, or the file of --relay file:FILE. Empty: neither.
  [[nodiscard]] std::string file_name() const {
    const std::string url = relay_url.text();
    if (!url.starts_with("file:")) return file.text();
    const auto name = url.substr(url.starts_with("file://") ? 7 : 5);
    if (name.empty()) throw error(errc::invalid_argument, "--relay file: names no file");
    return name;
  }

  /// Sets `reader_gone` if events are printed and the reader closes the output.
  [[nodiscard]] delivery_target target(
      console& io, const outbox_location& location,
      const std::shared_ptr<std::atomic<bool>>& reader_gone) const {
    require_one("target", {{relay_url, "--relay URL"},
                           {exec, "--exec CMD"},
                           {http, "--http URL"},
                           {file, "--file FILE"},
                           {stream, "--stream KEY"}});
    const bool sends_requests = http.is_set() || relay_url.is_set();
    if (timeout.is_set() && !sends_requests)
      throw error(errc::invalid_argument, "--timeout is only for --relay and --http; remove it");
    if (pass_credentials.is_set() && !sends_requests)
      throw error(errc::invalid_argument,
                  "--pass-credentials is only for --relay and --http; remove it");
    refuse_blank(relay_url, "--relay names no URL; give a URL");
    // For a blank command the shell does nothing and succeeds: every event would be acknowledged
    // without a delivery.
    refuse_blank(exec, "--exec names no program; give a command");
    refuse_blank(http, "--http names no URL; give a URL");
    refuse_blank(file, "--file names no file; give a file name, or - for standard output");
    refuse_blank(stream, "--stream names no key; give the key of a stream");
    if (exec.is_set()) {
      require_program(exec.text());
      return {.handler = exec_handler(exec.text())};
    }
    const auto name = file_name();
    if (name == "-") return {.handler = output_handler(reader_gone)};
    if (!name.empty()) {
      refuse_database_file(name, location.url.text());
      return {.handler = relay::json_lines(name)};
    }
    if (stream.is_set()) return {.handler = stream_handler(io, location)};
    // The same source with and without --prefix. A URI has no braces.
    const auto prefix =
        location.prefix.is_set() ? location.prefix.text() : location.open(io).backend()->prefix();
    std::string source = "/holdfast/outbox/" + prefix;
    std::erase_if(source, [](char c) { return c == '{' || c == '}'; });
    const relay_request request{.url = relay_url.text(http.text()),
                                .timeout = duration_of(timeout, "30s"),
                                .source = std::move(source),
                                .credentials = pass_credentials.is_set()};
    if (http.is_set() || request.url.starts_with("http://") || request.url.starts_with("https://"))
      return {.handler = http_handler(request.url, request.timeout, request.source,
                                      {.credentials = request.credentials})};
    return make_relay_target(request);
  }

  [[nodiscard]] event_handler stream_handler([[maybe_unused]] console& io,
                                             const outbox_location& location) const {
#if HOLDFAST_HAS_REDIS
    if (!location.url.text().starts_with("redis"))
      throw error(errc::invalid_argument,
                  "--stream requires an outbox on Redis; use --relay, --exec, --http or --file");
    return relay::redis_stream(
        redis::client(location.url.text(), {.password = location.password.read(io)}),
        stream.text());
#else
    (void)location;
    throw error(errc::unsupported_type,
                "this program was built without Redis; use --relay, --exec, --http or --file");
#endif
  }
};

/// From all threads. The log of the database owns them, because a report or a check that waits for
/// a database may outlive the command.
struct work_messages {
  record_queue records{};
  message_queue<std::string> notices{};
};

/// Records of the worker for the thread that prints them. A reader that closes the output is not a
/// failure to report.
log_sink queue_work_records(const std::shared_ptr<work_messages>& messages, log_level least,
                            std::shared_ptr<const std::atomic<bool>> reader_gone) {
  return [queue = queue_records({messages, &messages->records}, least),
          gone = std::move(reader_gone)](const log_record& record) {
    if (!*gone) queue(record);
  };
}

/// Explains why due events were not delivered. Ignores errors: the report of the worker is more
/// important.
void warn_if_paused(console& io, const outbox& source) {
  try {
    if (const auto stats = source.admin().stats(); stats.paused && stats.overdue.count() > 0)
      io.warn("the outbox is paused, and events are due; see: holdfast outbox resume");
  } catch (const error&) {  // NOLINT(bugprone-empty-catch)
  }
}

void print_messages(console& io, work_messages& messages, progress& shown) {
  const auto records = messages.records.drain();
  const auto notices = messages.notices.drain();
  if (!records.empty() || !notices.empty()) shown.clear();
  for (const auto& record : records) record.write_to(io);
  for (const auto& notice : notices) io.note(notice);
}

/// How a worker does, for people who watch it: on a terminal, in a log of JSON, and with --status.
class work_status {
 public:
  /// An interval of 0 prints nothing.
  explicit work_status(std::chrono::milliseconds interval) : interval_(interval) {}

  [[nodiscard]] bool is_due() const {
    return interval_.count() > 0 && std::chrono::steady_clock::now() - printed_ >= interval_;
  }
  void print(const console& io, const worker_numbers& numbers) {
    const auto now = std::chrono::steady_clock::now();
    const double seconds = std::chrono::duration<double>(now - printed_).count();
    const auto rate = static_cast<std::uint64_t>(static_cast<double>(numbers.done - delivered_) /
                                                 std::max(seconds, 0.001));
    printed_ = now;
    delivered_ = numbers.done;
    if (!io.log.json) {
      io.note("delivered " + grouped(numbers.done) + " (" + grouped(rate) + "/s), retried " +
              grouped(numbers.retried) + ", parked " + grouped(numbers.parked) + ", in flight " +
              grouped(numbers.in_flight));
      return;
    }
    const std::array<std::pair<std::string_view, std::string>, 5> counts{
        {{"delivered", std::to_string(numbers.done)},
         {"per_second", std::to_string(rate)},
         {"retried", std::to_string(numbers.retried)},
         {"parked", std::to_string(numbers.parked)},
         {"in_flight", std::to_string(numbers.in_flight)}}};
    std::vector<log_field> fields;
    for (const auto& [name, value] : counts) fields.push_back({.name = name, .value = value});
    io.note("status", fields);
  }

 private:
  std::chrono::milliseconds interval_;
  std::chrono::steady_clock::time_point printed_ = std::chrono::steady_clock::now();
  std::uint64_t delivered_ = 0;
};

/// Runs the worker on another thread. This thread prints warnings and progress, and waits for
/// signals. `on_stop` is called once, when it is asked to stop.
worker_report run_worker(console& io, worker& events, work_messages& messages,
                         const std::atomic<bool>& reader_gone, bool until_empty, work_status status,
                         const std::function<void()>& on_stop) {
  const stop_signals stop;
  worker_report report;
  std::exception_ptr failure;
  std::atomic<bool> finished = false;
  progress shown(io, "delivered", true);
  {
    std::jthread thread([&](const std::stop_token& stop_requested) {
      try {
        report = until_empty ? events.run_until_empty(stop_requested) : events.run(stop_requested);
      } catch (...) {
        failure = std::current_exception();
      }
      finished = true;
    });
    while (!finished) {
      if ((stop.wait(20) || reader_gone) && thread.request_stop()) on_stop();
      print_messages(io, messages, shown);
      // A worker runs for months: lines without end would fill its log.
      if (io.err.is_terminal() && !io.log.json) shown.update(events.count().done);
      if (status.is_due()) {
        shown.clear();
        status.print(io, events.count());
      }
    }
    shown.clear();
  }
  print_messages(io, messages, shown);
  if (failure) std::rethrow_exception(failure);
  return report;
}

}  // namespace

void add_work_command(command group) {
  command cmd = group.add("work", "Deliver events until stopped");
  cmd.about(
      "Each event is delivered at least once, and events of one key in order. It is removed when "
      "its receiver has confirmed it. After SIGINT or SIGTERM the running deliveries are finished. "
      "With --until-empty the command ends when no event is due; exit code 1 if a delivery "
      "failed. Without it, 'holdfast serve' shows the worker, if the tables of instances exist.\n"
      "\n"
      "--exec: exit code 0 confirms the event, 65 (EX_DATAERR) parks it, 75 (EX_TEMPFAIL) delays "
      "it without counting a failure, any other code is a failure, and a signal is ambiguous. The "
      "last line on standard error is stored as the reason. The environment has HOLDFAST_EVENT_ID, "
      "_TYPE, _KEY, _ATTEMPTS and _FENCE. Other variables that begin with HOLDFAST_, such as "
      "HOLDFAST_PASSWORD, are not passed to the program.\n"
      "\n"
      "--relay: the URL says where to: "
      "amqp://user@host/vhost?exchange=E&routing_key=orders.{type}, "
      "nats://host/orders.{type}, kafka://host:9092/orders.{type}, redis+stream://host?stream=KEY, "
      "https://host/path, file:FILE. {type}, {key} and {aggregate_type} are those of the event. "
      "HOLDFAST_RELAY_PASSWORD is the password; HOLDFAST_RELAY_CA, _CERTIFICATE and _KEY are PEM "
      "files for TLS. --http URL, --file FILE and --stream KEY are other names for some of these.\n"
      "\n"
      "--http: --timeout limits the whole request. At most 64 KiB of the header and 64 KiB of the "
      "body of an answer are read, and nothing is decompressed: only the status counts.");
  cmd.examples(
      "holdfast outbox work --outbox sqlite:app.db --exec './deliver' --until-empty\n"
      "holdfast outbox work --outbox sqlite:app.db --relay "
      "'amqp://guest@localhost/?exchange=events&routing_key=orders.{type}'\n"
      "holdfast outbox work --outbox redis://127.0.0.1 --http https://example.org/events "
      "--concurrency 8\n"
      "holdfast outbox work --outbox redis://127.0.0.1 --file events.jsonl --listen "
      "127.0.0.1:9100");
  const outbox_location location(cmd);
  const target_options target(cmd);
  const option until_empty = cmd.flag("--until-empty", "End when no event is due");
  const option lease =
      cmd.value("--lease", "TIME",
                "Time after which other workers get the events of a dead worker (default 30s)");
  const option concurrency =
      cmd.value("--concurrency", "N", "Number of concurrent deliveries (default 4)")
          .number(1, 1024);
  const option attempts =
      cmd.value("--max-attempts", "N",
                "Number of failures until an event is parked (default 12); 0: no limit")
          .number(0, 1'000'000);
  const option inline_limit =
      cmd.value("--inline-limit", "BYTES",
                "Park events with a larger payload (default 262144); the inline_limit of the "
                "publishers")
          .number(1, std::uint64_t{16} << 20U);
  const option policy =
      cmd.value("--parked", "",
                "What happens to later events of the key of a parked event (default skip)")
          .one_of({"skip", "block", "park"});
  const option compete =
      cmd.flag("--compete",
               "Share lanes with other workers; otherwise only one worker at a time uses a lane");
  const option time_limit =
      cmd.value("--time-limit", "TIME",
                "Time limit of a delivery (default 5m), then it has failed; 0s: no limit");
  const option verbose =
      cmd.flag("--verbose", "Also print when deliveries succeed again, and who holds the lanes");
  const option status =
      cmd.value("--status", "TIME",
                "Print a line with the counters at this interval (default 10s on a terminal and "
                "with --log json, else none); 0s: none");
  const option json = cmd.flag("--json", "Print the counters as one JSON object");
  const observation_address observed(cmd);
  cmd.run([=](console& io) {
    const auto metrics = observed.metrics();
    const bool is_watched = io.err.is_terminal() || io.log.json;
    const auto status_interval = duration_of(status, is_watched ? "10s" : "0s");
    const auto messages = std::make_shared<work_messages>();
    worker_options options;
    options.concurrency = static_cast<std::size_t>(concurrency.count(options.concurrency));
    options.lease = duration_of(lease, "30s");
    options.lock_time = std::min(options.lock_time, options.lease);
    options.compete = compete.is_set();
    options.handling.max_attempts =
        static_cast<std::uint32_t>(attempts.count(options.handling.max_attempts));
    if (policy.text() == "block") options.handling.parked = park_policy::block;
    if (policy.text() == "park") options.handling.parked = park_policy::park;
    options.handling.time_limit = duration_of(time_limit, "5m");
    const auto reader_gone = std::make_shared<std::atomic<bool>>(false);
    // --verbose: as --log-level info.
    if (verbose.is_set()) io.log.least = std::min(io.log.least, log_level::info);
    options.log = queue_work_records(messages, io.log.least, reader_gone);
    auto receiver = target.target(io, location, reader_gone);
    outbox_options source_options;
    source_options.inline_limit =
        static_cast<std::size_t>(inline_limit.count(source_options.inline_limit));
    const auto [db, source] = location.open_with_database(
        io, std::move(source_options),
        {.log = queue_notices({messages, &messages->notices},
                              queue_work_records(messages, io.log.least, reader_gone)),
         .metrics = metrics});
    const auto events =
        receiver.handler
            ? std::make_unique<worker>(source, std::move(receiver.handler), std::move(options))
            : std::make_unique<worker>(source, std::move(options));
    if (receiver.batch) events->handle_other_types(std::move(receiver.batch), events_per_call);
    const auto monitored =
        observed.start(io, metrics, {.name = "database", .ask = [asked = source] {
                                       return detail::serve::problem_of_outbox(asked);
                                     }});
    // A run that ends by itself is not an instance to watch.
    const auto reported = until_empty.is_set()
                              ? nullptr
                              : report_process(*events, db, location.url.text(),
                                               {.create_schema = location.create.is_set()});
    const auto report = run_worker(io, *events, *messages, *reader_gone, until_empty.is_set(),
                                   work_status(status_interval), [&monitored] {
                                     if (monitored) monitored->begin_drain();
                                   });
    if (until_empty.is_set()) warn_if_paused(io, source);
    // With --file - the standard output has only events.
    const bool prints_events = target.file_name() == "-";
    if (json.is_set()) (prints_events ? io.err : io.out) << worker_report_json(report);
    else if (!prints_events) io.out << worker_report_text(report);
    io.err.flush();
    const auto& counters = report.did;
    const bool succeeded =
        counters.retried + counters.parked + counters.in_doubt + report.still_running == 0 &&
        !*reader_gone;
    return succeeded || !until_empty.is_set() ? exit_ok : exit_negative;
  });
}

void add_tail_command(command group) {
  command cmd = group.add("tail", "Print events as they are published, until stopped");
  cmd.about(
      "Scans the whole outbox repeatedly, so it can miss an event that is delivered immediately. "
      "To see every event, deliver them to a file: holdfast outbox work --file.");
  cmd.examples(
      "holdfast outbox tail --outbox redis://127.0.0.1\n"
      "holdfast outbox tail --outbox sqlite:app.db --json --for 10s");
  const outbox_location location(cmd);
  const option duration = cmd.value("--for", "TIME", "End after this time");
  const option json = cmd.flag("--json", "Print one JSON object per line");
  cmd.run([=](console& io) {
    const stop_signals stop;
    const auto source = location.open(io);
    const auto end = duration.is_set()
                         ? std::chrono::steady_clock::now() + duration_of(duration, "0s")
                         : std::chrono::steady_clock::time_point::max();
    std::map<std::size_t, std::int64_t> newest;  // sequence by lane
    bool first_scan = true;
    do {
      std::vector<outbox_record> published;
      auto scanned = newest;
      for_each_record(source, scan_what::all, [&](const outbox_record& record) {
        const auto lane = record.details.lane;
        const auto sequence = record.details.sequence;
        if (!first_scan && sequence > newest[lane]) published.push_back(record);
        scanned[lane] = std::max(scanned[lane], sequence);
        return true;
      });
      newest = std::move(scanned);
      first_scan = false;
      std::ranges::sort(published, {},
                        [](const outbox_record& record) { return record.details.created_at; });
      const timestamp now = system_clock()->now();
      for (const auto& record : published)
        io.out << (json.is_set() ? record_json(record) : record_line(record, now)) << "\n";
      io.out.flush();
    } while (!stop.wait() && std::chrono::steady_clock::now() < end);
    return exit_ok;
  });
}

}  // namespace holdfast::cli
