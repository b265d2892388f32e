#include "support/kill_harness.hpp"

#include "support/temporary_directory.hpp"
#include "support/worker.hpp"

#include <cstdlib>
#include <fstream>
#include <iostream>
#include <optional>
#include <stdexcept>
#include <thread>
#include <utility>

namespace holdfast::test {
namespace {

using clock = std::chrono::steady_clock;

// Harness and workers talk through two files: the worker makes the one to say that it lives, the
// harness makes the other to say stop.
constexpr auto alive_variable = "HOLDFAST_WORKER_ALIVE";
constexpr auto stop_variable = "HOLDFAST_WORKER_STOP";

std::uint64_t choose_seed(std::uint64_t asked) {
  if (const char* given = std::getenv("HOLDFAST_SEED")) return std::strtoull(given, nullptr, 10);
  if (asked != 0) return asked;
  return std::random_device{}();
}

// A worker that fails says why on its last line. Several share the log, so it may be another's
// word, which is more than none.
std::string last_words(const std::filesystem::path& log) {
  std::string last;
  std::ifstream in(log);
  for (std::string line; std::getline(in, line);) last = line;
  return last.empty() ? "" : "; last in the log: " + last;
}

struct running_worker {
  std::optional<child_process> process{};
  std::filesystem::path alive{};
  std::optional<clock::time_point> die_at{};  // known when it lives
  clock::time_point started{};
  std::size_t generation = 0;
};

}  // namespace

kill_harness::kill_harness(kill_options options)
    : options_(std::move(options)), seed_(choose_seed(options_.seed)) {}

kill_report kill_harness::run(const std::string& worker,
                              const std::vector<std::string>& arguments) {
  return run(worker, [&](std::size_t, std::size_t) { return arguments; });
}

kill_report kill_harness::run(
    const std::string& worker,
    const std::function<std::vector<std::string>(std::size_t, std::size_t)>& arguments) {
  std::cout << "kill_harness: HOLDFAST_SEED=" << seed_ << std::endl;
  const temporary_directory place("kills", "", medium::memory);
  const auto stop = place.path() / "stop";
  std::mt19937_64 random(seed_);
  kill_report report{.seed = seed_};
  std::vector<running_worker> workers(options_.workers);

  const auto start = [&](std::size_t number) {
    auto& one = workers[number];
    one.alive = place.path() / (std::to_string(number) + '-' + std::to_string(one.generation));
    auto options = worker_options(worker, arguments(number, one.generation));
    options.environment.push_back(std::string(alive_variable) + '=' + one.alive.string());
    options.environment.push_back(std::string(stop_variable) + '=' + stop.string());
    options.log = options_.log;
    one.process.emplace(std::move(options));
    one.die_at.reset();
    one.started = clock::now();
    ++one.generation;
    ++report.started;
  };
  const auto note_end = [&](std::size_t number, const exit_status& status) {
    if (status.success()) return;
    report.failures.push_back(worker + ' ' + std::to_string(number) + ": " + status.describe() +
                              last_words(options_.log));
  };

  const auto goes_on = [&] {
    return report.killed < options_.kills || (options_.finished && !options_.finished());
  };

  for (std::size_t i = 0; i < workers.size(); ++i) start(i);
  while (goes_on() && report.failures.empty()) {
    for (std::size_t i = 0; i < workers.size() && goes_on(); ++i) {
      auto& one = workers[i];
      const auto now = clock::now();
      if (!one.process) continue;
      if (!one.process->running()) {
        note_end(i, *one.process->wait(std::chrono::milliseconds(0)));
        one.process.reset();
        if (report.failures.empty()) start(i);
      } else if (!one.die_at) {
        if (std::filesystem::exists(one.alive)) {
          const auto span =
              static_cast<std::uint64_t>((options_.longest - options_.shortest).count()) + 1;
          one.die_at = now + options_.shortest + std::chrono::microseconds(random() % span);
        } else if (now - one.started > options_.patience) {
          throw std::runtime_error("kill_harness: worker " + worker +
                                   " gave no sign of life (worker_is_alive)");
        }
      } else if (now >= *one.die_at) {
        const auto status = one.process->kill();
        if (status.signalled && status.code == SIGKILL) {
          ++report.killed;
        } else {
          note_end(i, status);
        }
        start(i);
      }
    }
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }

  std::ofstream(stop) << std::flush;
  for (std::size_t i = 0; i < workers.size(); ++i) {
    if (!workers[i].process) continue;
    const auto status = workers[i].process->wait(options_.patience);
    if (status) {
      note_end(i, *status);
    } else {
      workers[i].process->kill();
      report.failures.push_back(worker + ' ' + std::to_string(i) + ": did not finish when told to");
    }
  }
  return report;
}

void worker_is_alive() {
  const char* file = std::getenv(alive_variable);
  if (file != nullptr) std::ofstream(file) << std::flush;
}

bool worker_should_stop() {
  const char* file = std::getenv(stop_variable);
  return file != nullptr && std::filesystem::exists(file);
}

}  // namespace holdfast::test
