// The main job: a service that continues to answer while its upstream is dead. The upstream is an
// HTTP server in another process, and processes are really killed.

#include <holdfast/database.hpp>
#include <holdfast/failover.hpp>

#include "demo/child_process.hpp"
#include "demo/scratch_directory.hpp"
#include "demo/stage.hpp"
#include "demo/upstream.hpp"

#include <fcntl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <memory>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>

namespace holdfast::cli {

namespace {

using namespace std::chrono_literals;

/// The clock of the machine, which the demonstration can set forward.
class demo_clock final : public clock {
 public:
  std::chrono::hours ahead{0};
  [[nodiscard]] timestamp now() const noexcept override { return system_clock()->now() + ahead; }
  [[nodiscard]] std::chrono::steady_clock::time_point steady() const noexcept override {
    return std::chrono::steady_clock::now();
  }
};

/// A service with one protected call.
class rate_service {
 public:
  rate_service(const std::string& url, std::uint16_t port,
               std::shared_ptr<demo_clock> clock = std::make_shared<demo_clock>())
      : clock_(std::move(clock)),
        engine_(open(url, {.clock = clock_}).store({.create_schema = true}), {.clock = clock_}),
        rate_(engine_.protect(
            "rate-by-currency", {.expiry = 24h},
            [port](const std::string& currency) { return http_get(port, "/rates/" + currency); })) {
  }

  /// Makes the call and prints its result. Throws errc::internal if it does not contain `expected`.
  void ask(stage& show, const std::string& currency, std::string_view expected) {
    const std::string result = call(currency);
    if (result.find(expected) == std::string::npos)
      throw error(errc::internal, "the demonstration expected '" + std::string(expected) +
                                      "' and got '" + result + "'");
    show.show("rate(\"" + currency + "\")", result);
  }
  /// Describes the result of the call.
  [[nodiscard]] std::string call(const std::string& currency) {
    try {
      const auto answer = rate_(currency);
      if (answer.live()) return *answer + "   live";
      const auto hours = std::chrono::floor<std::chrono::hours>(answer.age(clock_->now())).count();
      return *answer + "   stale, " +
             (hours == 0 ? std::string("less than an hour") : std::to_string(hours) + " hours") +
             " old, because the call " + std::string(to_string(answer.cause().code()));
    } catch (const std::exception& e) {
      return std::string("an exception, the upstream's own: ") + e.what();
    }
  }
  void flush() {
    if (!engine_.flush(std::chrono::steady_clock::now() + 10s))
      throw error(errc::timeout, "the answers were not written within 10 seconds");
  }

 private:
  std::shared_ptr<demo_clock> clock_;
  engine engine_;
  point<std::string(const std::string&)> rate_;
};

void upstream_dies(stage& show) {
  show.paragraph(
      "A service asks an upstream for exchange rates. The upstream is a small HTTP server in "
      "another process. The call is protected: its last good answers are stored in an SQLite "
      "file.");
  show.gap();
  const scratch_directory directory;
  upstream server("1.0842");
  const auto clock = std::make_shared<demo_clock>();
  rate_service rate(directory.url(), server.port(), clock);
  show.typed("auto rate = engine.protect(\"rate-by-currency\", {.expiry = 24h}, http_get);");
  rate.ask(show, "EUR", "1.0842   live");
  rate.ask(show, "CHF", "1.0842   live");
  show.gap();
  show.paragraph(
      "The upstream is killed with -9. Three hours pass (the demonstration sets its clock "
      "forward), and the same calls are made.");
  show.gap();
  server.kill();
  clock->ahead = 3h;
  rate.ask(show, "EUR", "1.0842   stale, 3 hours old");
  rate.ask(show, "CHF", "1.0842   stale, 3 hours old");
  show.good("the last good answers, marked as stale, with their age");
  rate.ask(show, "JPY", "an exception, the upstream's own");
  show.good("a call that was never answered fails with the exception of the upstream");
  show.gap();
  show.paragraph("The upstream returns, with a new rate.");
  show.gap();
  server.restart("1.0911");
  rate.ask(show, "EUR", "1.0911   live");
  show.good("live again, immediately");
}

/// A child process that waits for a URL and a port, makes the call, flushes the store, and kills
/// itself. Create it while this process has no other threads: a child never sees the release of a
/// mutex that another thread holds during fork().
class second_process {
 public:
  second_process() {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) fail();
    child_ = ::fork();
    if (child_ == 0) {
      ::close(ends[1]);
      call_and_kill_self(ends[0]);
    }
    ::close(ends[0]);
    request_pipe_ = ends[1];
    if (child_ < 0) {
      ::close(request_pipe_);
      fail();
    }
  }
  second_process(const second_process&) = delete;
  second_process& operator=(const second_process&) = delete;
  ~second_process() { (void)close_and_wait(); }

  /// Lets the child run. Throws errc::unavailable if it did not get a live answer.
  void run(const std::string& url, std::uint16_t port) {
    const std::string request = std::to_string(port) + ' ' + url;
    if (::write(request_pipe_, request.data(), request.size()) !=
        static_cast<ssize_t>(request.size()))
      fail();
    if (!WIFSIGNALED(close_and_wait()))
      throw error(errc::unavailable, "the second process got no answer");
  }

 private:
  [[noreturn]] static void fail() {
    throw error(errc::unavailable, "cannot start a second process");
  }

  [[noreturn]] static void call_and_kill_self(int request_pipe) {
    (void)::prctl(PR_SET_PDEATHSIG, SIGKILL);  // never outlives the demonstration
    try {
      std::array<char, 4096> request{};
      const ssize_t received = ::read(request_pipe, request.data(), request.size());
      if (received > 0) {
        std::istringstream fields(std::string(request.data(), static_cast<std::size_t>(received)));
        std::uint16_t port = 0;
        std::string url;
        fields >> port >> std::ws;
        std::getline(fields, url);
        rate_service rate(url, port);
        const bool live = rate.call("EUR").ends_with("live");
        rate.flush();
        if (live) (void)::kill(::getpid(), SIGKILL);
      }
    } catch (...) {  // NOLINT(bugprone-empty-catch)
      // The parent sees that the child was not killed.
    }
    ::_exit(1);
  }

  /// A child without a request exits when the pipe is closed.
  int close_and_wait() noexcept {
    if (request_pipe_ < 0) return 0;
    ::close(std::exchange(request_pipe_, -1));
    return wait_for_exit(child_);
  }

  pid_t child_ = -1;
  int request_pipe_ = -1;
};

void process_dies(stage& show, second_process& other) {
  show.paragraph(
      "Answers outlive the process. A second process makes a call, and is killed with -9. Then the "
      "upstream is killed as well.");
  show.gap();
  const scratch_directory directory;
  upstream server("1.0911");
  other.run(directory.url(), server.port());
  server.kill();
  rate_service rate(directory.url(), server.port());
  rate.ask(show, "EUR", "1.0911   stale");
  show.good("a new process, a dead upstream, and an answer");
}

}  // namespace

std::vector<chapter> failover_chapters() {
  const auto other = std::make_shared<second_process>();
  return {{"The upstream dies", upstream_dies},
          {"The process dies as well", [other](stage& show) { process_dies(show, *other); }}};
}

}  // namespace holdfast::cli
