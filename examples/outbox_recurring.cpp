// Recurring events: one event for each due time, however many workers run.
#include <holdfast/holdfast.hpp>

#include <chrono>
#include <iostream>
#include <memory>
#include <string>

using namespace std::chrono_literals;

namespace {

/// A clock that the example moves, so that it need not wait for a night.
class moving_clock final : public holdfast::clock {
 public:
  [[nodiscard]] holdfast::timestamp now() const noexcept override { return now_; }
  [[nodiscard]] std::chrono::steady_clock::time_point steady() const noexcept override {
    return std::chrono::steady_clock::time_point(now_.time_since_epoch());
  }
  void advance(std::chrono::microseconds time) { now_ += time; }

 private:
  holdfast::timestamp now_ =
      std::chrono::sys_days(std::chrono::year(2026) / 3 / 27) + std::chrono::hours(12);
};

}  // namespace

int main() {
  const auto clock = std::make_shared<moving_clock>();
  const auto outbox = holdfast::open("memory:", {.clock = clock}).outbox();
  // region recur
  // At every start of every process. The same definition changes nothing.
  for (int start = 0; start < 2; ++start) {
    const auto status =
        outbox.recur("nightly", "30 2 * * *",
                     {.zone = "Europe/Paris", .catch_up = holdfast::catch_up_policy::last},
                     {.type = "report.due", .payload = R"({"report":"sales"})"});
    std::cout << "recur    " << to_string(status) << "\n";
  }
  // endregion

  // region work
  holdfast::worker_options options;
  options.clock = clock;
  holdfast::worker worker{outbox,
                          [](const holdfast::delivery& d) {
                            std::cout << d.event().type << " of "
                                      << d.event().headers.at("Holdfast-Due") << "\n";
                            return holdfast::outcome::done();
                          },
                          options};
  for (int day = 0; day < 3; ++day) {
    clock->advance(24h);
    worker.run_until_empty();
  }
  // endregion

  std::cout << "a week without a worker\n";
  clock->advance(24h * 7);
  worker.run_until_empty();
  for (const auto& recurring : outbox.admin().recurring()) {
    std::cout << recurring.name << "  published " << recurring.published << ", skipped "
              << recurring.skipped << "\n";
  }
  std::cout << "cancel   " << (outbox.cancel_recurring("nightly") ? "yes" : "no") << "\n";
}
