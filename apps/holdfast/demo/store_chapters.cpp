// The demonstration of the store.

#include <holdfast/database.hpp>

#include "demo/child_process.hpp"
#include "demo/scratch_directory.hpp"
#include "demo/stage.hpp"

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

/// Writes in another process, which kills itself as soon as `put` has returned.
void write_and_die(const std::string& url, const entry& e) {
  run_until_killed(
      [&] {
        open(url).store({.create_schema = true})->put({&e, 1});
        (void)::kill(::getpid(), SIGKILL);
      },
      "the second process could not write to " + url);
}

void answers_survive(stage& show) {
  show.paragraph(
      "The store keeps the last good answer of a call. Another process writes one to an SQLite "
      "file, and is killed with -9 as soon as the answer is stored.");
  show.gap();
  const scratch_directory directory;
  const auto now = system_clock()->now();
  show.typed("holdfast::open(\"sqlite:answers.db\").store()->put(...)");
  write_and_die(directory.url(), answer(now - 3s, R"({"name":"France"})"));
  const auto store = open(directory.url()).store();
  show.show("after kill -9", *store->find("country", "FR")->payload);
  show.good("it is stored: every commit is synced before put returns");
  const auto late = answer(now - 10s, R"({"name":"older, but written later"})");
  store->put({&late, 1});
  show.show("a late write", *store->find("country", "FR")->payload);
  show.good("an older answer never replaces a newer one");
}

}  // namespace

std::vector<chapter> store_chapters() { return {{"An answer that survives", answers_survive}}; }

}  // namespace holdfast::cli
