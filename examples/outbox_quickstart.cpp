// Events in a database file, delivered at least once and in order per key.
#include <holdfast/holdfast.hpp>

#include <chrono>
#include <filesystem>
#include <iostream>
#include <mutex>
#include <string>

using namespace std::chrono_literals;

namespace {

/// A mail server that is down at first.
class mail_server {
 public:
  bool send(const std::string& text) {
    if (++calls_ == 1) return false;
    std::cout << "sent     " << text << "\n";
    return true;
  }

 private:
  int calls_ = 0;
};

}  // namespace

int main() {
  const auto file =
      std::filesystem::temp_directory_path() / ("outbox-" + holdfast::new_event_id() + ".db");
  // region publish
  auto outbox = holdfast::open("sqlite://" + file.string()).outbox({.create_schema = true});
  outbox.publish({.type = "ticket.created", .key = "ticket-7", .payload = R"({"seat":12})"});
  outbox.publish({.type = "ticket.paid", .key = "ticket-7", .payload = R"({"euro":30})"});

  // The same id twice is one event: a caller that got no answer may publish again.
  const auto id = holdfast::new_event_id();
  for (int i = 0; i < 2; ++i) {
    const auto receipt =
        outbox.publish({.type = "ticket.closed", .key = "ticket-7", .payload = "{}", .id = id});
    std::cout << "publish  " << to_string(receipt.status) << "\n";
  }
  // endregion

  // region work
  mail_server mail;
  holdfast::worker_options options;
  options.handling.backoff = {.first = 10ms, .longest = 1s};  // longer in production
  std::stop_source stop;
  holdfast::worker worker{outbox,
                          [&](const holdfast::delivery& d) -> holdfast::outcome {
                            if (!mail.send(d.event().type)) {
                              std::cout << "failed   " << d.event().type << "\n";
                              return holdfast::outcome::retry("the mail server is down");
                            }
                            if (d.event().id == id) stop.request_stop();
                            return holdfast::outcome::done();
                          },
                          options};
  const auto report = worker.run(stop.get_token());
  std::cout << "done     " << report.did.done << ", retried " << report.did.retried << "\n";
  // endregion
  std::cout << "left     " << outbox.admin().stats().events << "\n";
  for (const char* part : {"", "-wal", "-shm"}) std::filesystem::remove(file.string() + part);
}
