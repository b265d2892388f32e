#include <holdfast/database.hpp>

#include "scratch_directory.hpp"
#include "stage.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <string>

namespace holdfast::cli {

namespace {

using namespace std::chrono_literals;

entry answer(timestamp as_of, std::string payload) {
  return {.name = "country",
          .key = "FR",
          .as_of = as_of,
          .expire_on = as_of + 24h,
          .payload = std::move(payload),
          .payload_class = "app.country"};
}

/// Writes in another process, which is killed the moment after it was told that its answer is safe.
void write_and_die(const std::string& url, const entry& e) {
  const pid_t child = fork();
  if (child < 0) throw error(errc::unavailable, "no second process can be started");
  if (child == 0) {
    try {
      open(url).store({.create_schema = true})->put({&e, 1});
      (void)kill(getpid(), SIGKILL);
    } catch (...) {
      // The parent sees that nobody was killed.
    }
    _exit(1);
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (!WIFSIGNALED(status)) throw error(errc::unavailable, "the second process could not write to " + url);
}

void answers_survive(stage& show) {
  show.say(
      "The store keeps the last good answer of a call. Here another process writes one to an SQLite file, and is killed with -9 the moment "
      "it was told that the answer is safe.");
  show.gap();
  const scratch_directory place;
  const auto now = system_clock()->now();
  show.typed("holdfast::open(\"sqlite:answers.db\").store()->put(...)");
  write_and_die(place.url(), answer(now - 3s, R"({"name":"France"})"));
  const auto store = open(place.url()).store();
  show.show("after kill -9", *store->find("country", "FR")->payload);
  show.good("it is there: every commit was synced before put returned");
  const auto late = answer(now - 10s, R"({"name":"older, but written later"})");
  store->put({&late, 1});
  show.show("a late write", *store->find("country", "FR")->payload);
  show.good("an older answer never replaces a newer one");
}

}  // namespace

std::vector<chapter> store_chapters() { return {{"An answer that survives", answers_survive}}; }

}  // namespace holdfast::cli
