/// \file
/// The main job: a service that goes on answering while what it depends on is dead. The upstream is a real HTTP server in a process of its
/// own, and what is killed is really killed.

#include <holdfast/database.hpp>
#include <holdfast/failover.hpp>

#include "demo_upstream.hpp"
#include "scratch_directory.hpp"
#include "stage.hpp"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
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

/// The machine's clock, moved on when the story says so: nobody wants to wait for three hours.
class story_clock final : public clock {
 public:
  std::chrono::hours ahead{0};
  [[nodiscard]] timestamp now() const noexcept override { return system_clock()->now() + ahead; }
  [[nodiscard]] std::chrono::steady_clock::time_point steady() const noexcept override { return std::chrono::steady_clock::now(); }
};

/// A service: one protected call on one store.
class rates {
 public:
  rates(const std::string& url, std::uint16_t port, std::shared_ptr<story_clock> clock = std::make_shared<story_clock>())
      : clock_(std::move(clock)),
        engine_(open(url, {.clock = clock_}).store({.create_schema = true}), {.clock = clock_}),
        rate_(engine_.protect("rate-by-currency", {.expiry = 24h},
                              [port](const std::string& currency) { return http_get(port, "/rates/" + currency); })) {}

  /// Makes the call and shows what came of it. Throws errc::internal when that is not what the story says.
  void ask(stage& show, const std::string& currency, std::string_view story) {
    const std::string seen = outcome(currency);
    if (seen.find(story) == std::string::npos)
      throw error(errc::internal, "the demonstration expected '" + std::string(story) + "' and saw '" + seen + "'");
    show.show("rate(\"" + currency + "\")", seen);
  }
  [[nodiscard]] std::string outcome(const std::string& currency) {
    try {
      const auto answer = rate_(currency);
      if (answer.live()) return *answer + "   live";
      const auto hours = std::chrono::floor<std::chrono::hours>(answer.age(clock_->now())).count();
      return *answer + "   stale, " + (hours == 0 ? std::string("less than an hour") : std::to_string(hours) + " hours") +
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
  std::shared_ptr<story_clock> clock_;
  engine engine_;
  point<std::string(const std::string&)> rate_;
};

void upstream_dies(stage& show) {
  show.say(
      "A service asks an upstream for exchange rates. Here it is a small HTTP server, in a process of its own. The call is protected: its "
      "last "
      "good answers are kept in an SQLite file.");
  show.gap();
  const scratch_directory place;
  upstream server("1.0842");
  const auto clock = std::make_shared<story_clock>();
  rates rate(place.url(), server.port(), clock);
  show.typed("auto rate = engine.protect(\"rate-by-currency\", {.expiry = 24h}, http_get);");
  rate.ask(show, "EUR", "1.0842   live");
  rate.ask(show, "CHF", "1.0842   live");
  show.gap();
  show.say("The upstream is killed with -9. Three hours pass (the clock of this demonstration is moved on), and the same calls are made.");
  show.gap();
  server.kill();
  clock->ahead = 3h;
  rate.ask(show, "EUR", "1.0842   stale, 3 hours old");
  rate.ask(show, "CHF", "1.0842   stale, 3 hours old");
  show.good("the last good answers, marked as stale, with their age");
  rate.ask(show, "JPY", "an exception, the upstream's own");
  show.good("what was never answered cannot be served; nobody invents a rate");
  show.gap();
  show.say("The upstream returns, with a new rate.");
  show.gap();
  server.restart("1.0911");
  rate.ask(show, "EUR", "1.0911   live");
  show.good("live again, at once");
}

/// Another process, which calls and flushes when it is told where, and is killed the moment after. It is made before this one has threads: what
/// they hold at that moment, a child would wait for in vain.
class second_process {
 public:
  second_process() {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) fail();
    child_ = ::fork();
    if (child_ == 0) {
      ::close(ends[1]);
      live_and_die(ends[0]);
    }
    ::close(ends[0]);
    told_ = ends[1];
    if (child_ < 0) {
      ::close(told_);
      fail();
    }
  }
  second_process(const second_process&) = delete;
  second_process& operator=(const second_process&) = delete;
  ~second_process() { (void)end(); }

  void call_and_die(const std::string& url, std::uint16_t port) {
    const std::string words = std::to_string(port) + ' ' + url;
    if (::write(told_, words.data(), words.size()) != static_cast<ssize_t>(words.size())) fail();
    if (!WIFSIGNALED(end())) throw error(errc::unavailable, "the second process got no answer");
  }

 private:
  [[noreturn]] static void fail() { throw error(errc::unavailable, "no second process can be started"); }

  [[noreturn]] static void live_and_die(int from) {
    (void)::prctl(PR_SET_PDEATHSIG, SIGKILL);  // never outlives the demonstration
    try {
      std::array<char, 4096> words{};
      const ssize_t got = ::read(from, words.data(), words.size());
      if (got > 0) {
        std::istringstream told(std::string(words.data(), static_cast<std::size_t>(got)));
        std::uint16_t port = 0;
        std::string url;
        told >> port >> std::ws;
        std::getline(told, url);
        rates rate(url, port);
        const bool live = rate.outcome("EUR").ends_with("live");
        rate.flush();
        if (live) (void)::kill(::getpid(), SIGKILL);
      }
    } catch (...) {  // NOLINT(bugprone-empty-catch)
      // The parent sees that nobody was killed.
    }
    ::_exit(1);
  }

  /// Without a word it ends by itself.
  int end() noexcept {
    int status = 0;
    if (told_ < 0) return status;
    ::close(std::exchange(told_, -1));
    while (::waitpid(child_, &status, 0) < 0 && errno == EINTR) {
    }
    return status;
  }

  pid_t child_ = -1;
  int told_ = -1;
};

void process_dies(stage& show, second_process& other) {
  show.say("Answers outlive the process. A second process makes a call, and is killed with -9. Then the upstream is killed, too.");
  show.gap();
  const scratch_directory place;
  upstream server("1.0911");
  other.call_and_die(place.url(), server.port());
  server.kill();
  rates rate(place.url(), server.port());
  rate.ask(show, "EUR", "1.0911   stale");
  show.good("a new process, a dead upstream, and an answer");
}

}  // namespace

std::vector<chapter> failover_chapters() {
  const auto other = std::make_shared<second_process>();
  return {{"The upstream dies", upstream_dies}, {"The process dies, too", [other](stage& show) { process_dies(show, *other); }}};
}

}  // namespace holdfast::cli
