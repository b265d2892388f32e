// What operates a Holdfast: a log, numbers for Prometheus, threads for work in the background, and
// the cleanup of the store.

#include <holdfast/holdfast.hpp>
#include <holdfast/store/cleanup.hpp>

#include <chrono>
#include <iostream>
#include <memory>
#include <string>

namespace {

/// A clock for the example: the machine's, moved on by a day when told so.
class moved_clock final : public holdfast::clock {
 public:
  std::chrono::hours ahead{0};
  [[nodiscard]] holdfast::timestamp now() const noexcept override {
    return holdfast::system_clock()->now() + ahead;
  }
  [[nodiscard]] std::chrono::steady_clock::time_point steady() const noexcept override {
    return std::chrono::steady_clock::now();
  }
};

}  // namespace

int main() {
  using namespace std::chrono_literals;
  const auto clock = std::make_shared<moved_clock>();

  // region open
  const auto metrics = holdfast::make_prometheus_registry();
  const auto executor = holdfast::make_thread_pool({.threads = 4, .name = "background"});
  auto db = holdfast::open("memory:", {.clock = clock,
                                       .log =
                                           [](const holdfast::log_record& record) {
                                             std::cout << to_string(record.level) << ": "
                                                       << record.message;
                                             for (const auto& [name, value] : record.fields) {
                                               if (name == "removed")
                                                 std::cout << ", " << name << "=" << value;
                                             }
                                             std::cout << '\n';
                                           },
                                       .metrics = metrics,
                                       .executor = executor});
  // endregion
  auto store = db.store();
  const auto now = clock->now();
  const holdfast::entry old{.name = "country",
                            .key = "FR",
                            .as_of = now,
                            .expire_on = now + 1h,
                            .payload = "{}",
                            .payload_class = "app.country"};
  store->put({&old, 1});
  clock->ahead = 24h;

  // region cleanup
  // Hourly; what comes now is on demand
  holdfast::cleanup cleanup(db, store, {.cron = "0 0 * * * *"});
  const auto report = cleanup.run_now();
  std::cout << to_string(report.result) << ": " << report.removed << " removed\n";
  // endregion

  // region metrics
  // once
  const auto calls =
      metrics->counter("app_calls_total", {{"point", "country-by-code"}}, "Calls, by point");
  // Where the work is done
  calls->add();
  // endregion
  const auto text = metrics->text();
  for (const std::string wanted : {"app_calls_total", "holdfast_cleanup_removed_total"}) {
    const auto line = text.find("\n" + wanted) + 1;
    std::cout << text.substr(line, text.find('\n', line) - line) << '\n';
  }

  // region close
  cleanup.close(std::chrono::steady_clock::now() + 5s);
  const auto closed = executor->close(std::chrono::steady_clock::now() + 5s);
  std::cout << "still running: " << closed.still_running << '\n';
  // endregion
}
