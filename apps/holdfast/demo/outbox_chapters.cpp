// The demonstration of the outbox.

#include <holdfast/database.hpp>
#include <holdfast/outbox.hpp>
#include <holdfast/worker.hpp>

#include "demo/child_process.hpp"
#include "demo/scratch_directory.hpp"
#include "demo/stage.hpp"

#include <unistd.h>

#include <chrono>
#include <csignal>
#include <stop_token>
#include <string>

namespace holdfast::cli {

namespace {

using namespace std::chrono_literals;

// Short leases, so that the next worker does not wait long for the events of the dead one.
const worker_options short_leases{.lease = 100ms, .lock_time = 100ms, .idle = 50ms};

outbox open_outbox(const std::string& url) { return open(url).outbox({.create_schema = true}); }

/// Runs a worker in another process, which kills itself in the handler.
void work_and_die(const std::string& url) {
  run_until_killed(
      [&url] {
        worker doomed(
            open_outbox(url),
            [](const delivery&) {
              (void)::kill(::getpid(), SIGKILL);
              return outcome::done();
            },
            short_leases);
        doomed.run({});
      },
      "the second process could not work on " + url);
}

void events_survive_workers(stage& show) {
  show.paragraph(
      "The outbox stores events until they are delivered. One is published to an SQLite file, if "
      "needed in one transaction with other rows. A worker claims it, and is killed with -9 in its "
      "handler.");
  show.gap();
  const scratch_directory directory;
  show.typed("outbox.publish({.type = \"ticket.created\", .key = \"ticket-7\", .payload = body})");
  open_outbox(directory.url())
      .publish({.type = "ticket.created", .key = "ticket-7", .payload = R"({"seat":12})"});
  work_and_die(directory.url());
  show.bad("the worker died while it handled the event");
  std::stop_source stop;
  std::uint32_t deliveries = 0;
  std::string payload;
  worker next(
      open_outbox(directory.url()),
      [&](const delivery& d) {
        deliveries = d.deliveries();
        payload = d.event().payload;
        stop.request_stop();
        return outcome::done();
      },
      short_leases);
  next.run(stop.get_token());
  show.show("the next worker", payload);
  show.show("delivered", std::to_string(deliveries) + " times");
  show.good("not lost: an event is removed only after a handler has confirmed it");
  show.paragraph(
      "An event that kills every worker is parked after ten deliveries. Each delivery has a fence, "
      "so that a receiver can refuse a late worker.");
}

}  // namespace

std::vector<chapter> outbox_chapters() {
  return {{"An event that survives its worker", events_survive_workers}};
}

}  // namespace holdfast::cli
