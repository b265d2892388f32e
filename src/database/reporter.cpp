#include <holdfast/error.hpp>
#include <holdfast/failover/engine.hpp>
#include <holdfast/reporter.hpp>
#include <holdfast/store/cleanup.hpp>
#include <holdfast/worker.hpp>

#include "base/thread.hpp"
#include "base/utf8.hpp"
#include "database/database.hpp"
#include "database/instances/backend.hpp"
#include "database/instances/state_text.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <condition_variable>
#include <exception>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

namespace HOLDFAST_NAMESPACE {

namespace {

using namespace std::chrono_literals;
using detail::instances::instance_backend;
using steady = std::chrono::steady_clock;

/// Rows of instances that died are removed so often.
constexpr std::chrono::minutes removal_interval{60};
constexpr std::chrono::minutes log_interval{1};
constexpr std::size_t max_remembered_commands = 1'000;

[[noreturn]] void refuse_option(const std::string& message, const char* option) {
  throw error(errc::invalid_argument, message, {.path = option});
}

bool is_command_word(std::string_view text, std::size_t longest) {
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '.';
  };
  return !text.empty() && text.size() <= longest && std::ranges::all_of(text, allowed);
}

void check_instance_name(std::string_view name) {
  const auto printable = [](char c) { return c > ' ' && c != 0x7F; };
  if (name.empty() || name.size() > 128 || !std::ranges::all_of(name, printable))
    refuse_option("the name of an instance has 1 to 128 printable ASCII characters without spaces",
                  "instance");
}

/// The first reporter of a process has no number.
std::string default_instance_name() {
  static std::atomic<unsigned> created = 0;
  std::array<char, 256> host{};
  if (::gethostname(host.data(), host.size() - 1) != 0) host = {'?'};
  std::string name(host.data());
  std::ranges::replace_if(name, [](char c) { return c <= ' ' || c >= 0x7F; }, '?');
  name = name.substr(0, 100) + ":" + std::to_string(::getpid());
  const auto number = ++created;
  return number == 1 ? name : name + "." + std::to_string(number);
}

}  // namespace

/// The thread owns this together with the reporter, because it may wait for a database that does
/// not answer when the reporter is destroyed.
struct reporter::state {
  std::string kind{};
  std::string instance{};
  reporter_options options{};
  std::shared_ptr<const logger> log{};
  std::unique_ptr<instance_backend> backend{};
  std::function<std::string()> describe{};  // uses the engine, worker or cleanup
  pid_t process = ::getpid();

  std::mutex use_mutex{};  // held while `describe` or `on_command` runs
  bool stopped = false;    // under use_mutex: neither is called any more

  mutable std::mutex mutex{};
  std::condition_variable changed{};
  bool stopping = false;       // under mutex
  bool ended = false;          // under mutex
  reporter_numbers numbers{};  // under mutex

  // For the thread only.
  bool schema_created = false;
  bool row_written = false;
  std::map<std::string, steady::time_point> executed{};  // commands
  std::optional<steady::time_point> last_removal{};
  std::optional<steady::time_point> last_log{};
  bool missing_logged = false;

  void start(std::function<std::string()> description, std::string source_kind, const database& db,
             reporter_options settings);
  void run() noexcept;
  void report();
  void execute(const std::vector<instance_command>& commands);
  void note_failure(const std::string& problem) noexcept;
  void note_missing_tables(const std::string& problem) noexcept;
  void count_failure(const std::string& problem);
  void stop() noexcept;
};

void reporter::state::start(std::function<std::string()> description, std::string source_kind,
                            const database& db, reporter_options settings) {
  if (settings.every < 100ms || settings.every > 1h)
    refuse_option("every must be between 100 ms and 1 h", "every");
  options = std::move(settings);
  instance = options.instance.empty() ? default_instance_name() : options.instance;
  check_instance_name(instance);
  kind = std::move(source_kind);
  describe = std::move(description);
  log = db.shared()->log;
  backend = detail::instances::make_instance_backend(db, options.prefix);
}

void reporter::state::run() noexcept {
  std::unique_lock lock(mutex);
  while (!stopping) {
    lock.unlock();
    try {
      report();
    } catch (const error& failure) {
      if (failure.code() == errc::missing_object) note_missing_tables(failure.what());
      else note_failure(failure.what());
    } catch (const std::exception& failure) {
      note_failure(failure.what());
    } catch (...) {
      note_failure("an unknown exception");
    }
    lock.lock();
    (void)changed.wait_for(lock, options.every, [this] { return stopping; });
  }
  lock.unlock();
  try {
    if (row_written) backend->remove(instance);
  } catch (...) {  // NOLINT(bugprone-empty-catch)
    // The row becomes silent, and is removed after a day.
  }
  lock.lock();
  ended = true;
  changed.notify_all();
}

void reporter::state::report() {
  if (options.create_schema && !schema_created) {
    backend->create_schema();
    schema_created = true;
  }
  std::string text;
  {
    const std::scoped_lock use(use_mutex);
    if (stopped) return;
    text = describe();
  }
  const auto commands =
      backend->report({.instance = instance, .kind = kind, .every = options.every, .state = text},
                      static_cast<bool>(options.on_command));
  row_written = true;
  {
    const std::scoped_lock lock(mutex);
    ++numbers.reports;
    numbers.problem.clear();
  }
  execute(commands);
  const auto now = steady::now();
  if (last_removal && now - *last_removal < removal_interval) return;
  last_removal = now;
  backend->remove_old();
}

void reporter::state::execute(const std::vector<instance_command>& commands) {
  const auto now = steady::now();
  std::erase_if(executed, [&](const auto& entry) {
    return std::ranges::find(commands, entry.first, &instance_command::id) == commands.end();
  });
  for (const auto& command : commands) {
    if (executed.size() >= max_remembered_commands) return;
    if (!executed.emplace(command.id, now).second) continue;
    const std::scoped_lock use(use_mutex);
    if (stopped) return;
    try {
      options.on_command(command);
      const std::scoped_lock lock(mutex);
      ++numbers.commands;
    } catch (const std::exception& failure) {
      note_failure("command " + command.id + ": " + failure.what());
    } catch (...) {
      note_failure("command " + command.id + ": an unknown exception");
    }
  }
}

void reporter::state::count_failure(const std::string& problem) {
  const std::scoped_lock lock(mutex);
  ++numbers.failures;
  numbers.problem = problem;
}

/// Not a failure of the database: a process without the tables is only not shown. If another
/// process creates them, the next report succeeds.
void reporter::state::note_missing_tables(const std::string& problem) noexcept try {
  count_failure(problem);
  if (std::exchange(missing_logged, true)) return;
  log->write(log_level::info,
             "holdfast serve does not show this process: the tables of instances do not exist; "
             "create them (create_schema, --create-schema), or ignore this",
             {{"instance", instance}});
} catch (...) {  // NOLINT(bugprone-empty-catch)
  // No memory for the message.
}

void reporter::state::note_failure(const std::string& problem) noexcept try {
  count_failure(problem);
  const auto now = steady::now();
  if (last_log && now - *last_log < log_interval) return;
  last_log = now;
  log->write(log_level::warning, "instance " + instance + " could not report: " + problem);
} catch (...) {  // NOLINT(bugprone-empty-catch)
  // No memory for the message.
}

void reporter::state::stop() noexcept {
  if (process != ::getpid()) return;  // after fork: the thread, and locks it held, are not here
  {
    const std::scoped_lock use(use_mutex);
    stopped = true;
  }
  std::unique_lock lock(mutex);
  stopping = true;
  changed.notify_all();
  (void)changed.wait_for(lock, 1s, [this] { return ended; });
}

namespace {

/// Starts the thread, which keeps the state alive.
template <class State>
void start_reporting(const std::shared_ptr<State>& state) {
  detail::start_quiet_thread("hf-reporter", [state] { state->run(); }).detach();
}

template <class Source>
std::function<std::string()> description_of(const Source& source) {
  return [&source] { return detail::instances::state_text(source); };
}

}  // namespace

reporter::reporter(const engine& source, const database& db, reporter_options options)
    : state_(std::make_shared<state>()) {
  state_->start(description_of(source), "engine", db, std::move(options));
  start_reporting(state_);
}

reporter::reporter(const worker& source, const database& db, reporter_options options)
    : state_(std::make_shared<state>()) {
  state_->start(description_of(source), "worker", db, std::move(options));
  start_reporting(state_);
}

reporter::reporter(const cleanup& source, const database& db, reporter_options options)
    : state_(std::make_shared<state>()) {
  state_->start(description_of(source), "cleanup", db, std::move(options));
  start_reporting(state_);
}

reporter::reporter(reporter&&) noexcept = default;

reporter::~reporter() {
  if (state_) state_->stop();
}

const std::string& reporter::instance() const noexcept { return state_->instance; }

reporter_numbers reporter::count() const {
  const std::scoped_lock lock(state_->mutex);
  return state_->numbers;
}

std::vector<instance_report> read_instances(const database& db, std::string_view prefix,
                                            std::size_t limit) {
  if (limit == 0) return {};
  return detail::instances::make_instance_backend(db, prefix)
      ->read(std::min<std::size_t>(limit, 10'000));
}

void send_instance_command(const database& db, const instance_command& command,
                           std::chrono::milliseconds valid_for, std::string_view prefix) {
  if (!is_command_word(command.id, 64))
    refuse_option("the id of a command has 1 to 64 letters, digits, '-', '_' or '.'", "id");
  if (!is_command_word(command.kind, 32))
    refuse_option("the kind of a command has 1 to 32 letters, digits, '-', '_' or '.'", "kind");
  check_instance_name(command.instance);
  if (command.body.size() > 4'096 || !detail::is_utf8(command.body))
    refuse_option("the body of a command is UTF-8 of at most 4096 bytes", "body");
  if (valid_for < 1s || valid_for > 24h)
    refuse_option("a command is valid for 1 s to 24 h", "valid_for");
  detail::instances::make_instance_backend(db, prefix)->send(command, valid_for);
}

namespace detail::instances {

std::unique_ptr<instance_backend> make_instance_backend(const database& db,
                                                        std::string_view prefix) {
  const auto& shared = *db.shared();
  if (shared.sql) return make_sql_instances(shared.sql, std::string(prefix));
#if HOLDFAST_HAS_REDIS
  if (shared.redis) return make_redis_instances(shared.redis, prefix);
#endif
  refuse_option("other processes do not see a database in memory; open one on a server or a file",
                "url");
}

}  // namespace detail::instances

}  // namespace HOLDFAST_NAMESPACE
