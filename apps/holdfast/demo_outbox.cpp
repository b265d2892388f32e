#include <holdfast/database.hpp>
#include <holdfast/outbox.hpp>
#include <holdfast/worker.hpp>

#include "scratch_directory.hpp"
#include "stage.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <stop_token>
#include <string>

namespace holdfast::cli {

namespace {

using namespace std::chrono_literals;

// Short, so that nobody waits for the lease of the worker that died.
const worker_options impatient{.lease = 100ms, .lock_time = 100ms, .idle = 50ms};

outbox outbox_at(const std::string& url) { return open(url).outbox({.create_schema = true}); }

/// Works in another process, which dies in the middle of the handler.
void work_and_die(const std::string& url) {
  const pid_t child = fork();
  if (child < 0) throw error(errc::unavailable, "no second process can be started");
  if (child == 0) {
    try {
      worker doomed(
          outbox_at(url),
          [](const delivery&) {
            (void)kill(getpid(), SIGKILL);
            return outcome::done();
          },
          impatient);
      doomed.run({});
    } catch (...) {
      // The parent sees that nobody was killed.
    }
    _exit(1);
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (!WIFSIGNALED(status)) throw error(errc::unavailable, "the second process could not work on " + url);
}

void promises_are_kept(stage& show) {
  show.say(
      "The outbox keeps events until they are delivered. Here one is published in an SQLite file, with the row it belongs to if you like; "
      "a "
      "worker takes it, and is killed with -9 in the middle of its handler.");
  show.gap();
  const scratch_directory place;
  show.typed("outbox.publish({.type = \"ticket.created\", .key = \"ticket-7\", .payload = body})");
  outbox_at(place.url()).publish({.type = "ticket.created", .key = "ticket-7", .payload = R"({"seat":12})"});
  work_and_die(place.url());
  show.bad("the worker died with the event in its hands");
  std::stop_source enough;
  std::uint32_t times = 0;
  std::string delivered;
  worker next(
      outbox_at(place.url()),
      [&](const delivery& d) {
        times = d.deliveries();
        delivered = d.event().payload;
        enough.request_stop();
        return outcome::done();
      },
      impatient);
  next.run(enough.get_token());
  show.show("the next worker", delivered);
  show.show("handed out", std::to_string(times) + " times");
  show.good("delivered after all: it is forgotten when a handler said that it is done, not before");
  show.say("An event that kills every worker is parked after ten times; each delivery has a fence, so that a late worker can be refused.");
}

}  // namespace

std::vector<chapter> outbox_chapters() { return {{"A promise that is kept", promises_are_kept}}; }

}  // namespace holdfast::cli
