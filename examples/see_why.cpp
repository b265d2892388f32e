// See why: what an operator can ask about protected calls, before, during and after an outage.

#include <holdfast/holdfast.hpp>

#include <atomic>
#include <chrono>
#include <iostream>
#include <memory>
#include <stdexcept>
#include <string>

namespace {

/// A clock for the example, which goes on when it is told so.
class stepped_clock final : public holdfast::clock {
 public:
  std::atomic<std::chrono::minutes> ahead{std::chrono::minutes(0)};
  [[nodiscard]] holdfast::timestamp now() const noexcept override {
    return std::chrono::sys_days(std::chrono::year(2026) / 11 / 15) + ahead.load();
  }
  [[nodiscard]] std::chrono::steady_clock::time_point steady() const noexcept override {
    return std::chrono::steady_clock::time_point(std::chrono::hours(1) + ahead.load());
  }
};

}  // namespace

int main() {
  using namespace std::chrono_literals;
  const auto clock = std::make_shared<stepped_clock>();
  std::atomic<bool> up{true};

  // region engine
  const auto decisions = std::make_shared<holdfast::decision_log>();
  holdfast::engine engine{holdfast::make_memory_store({.clock = clock}),
                          {.clock = clock,
                           .insight = {.on_decision =
                                           [decisions](const holdfast::decision& reported) {
                                             decisions->record(reported);
                                           },
                                       .coverage = true,
                                       .sample = 1}}};  // the default is one call in 100
  const auto capital = engine.protect("capital-of", {.expiry = 3h}, [&](std::string country) {
    if (!up) throw std::runtime_error("connection refused");
    return country == "FR" ? std::string("Paris") : std::string("Rome");
  });
  // endregion
  (void)capital("FR");
  clock->ahead = 30min;
  (void)capital("FR");
  (void)capital("IT");
  clock->ahead = 32min;

  std::cout << "# outlook\n";
  // region outlook
  std::cout << explain(engine.outlook("capital-of")) << '\n';
  const auto coverage = engine.coverage("capital-of");
  std::cout << coverage.covered << " of " << coverage.checked << " calls could have been served\n";
  // endregion

  std::cout << "# drill\n";
  // region drill
  (void)engine.drill("capital-of", {.part = 1, .length = 5min});
  for (const char* country : {"FR", "IT", "ES"}) {
    const auto answer = capital(country);
    std::cout << country << ": " << (answer.live() ? "live" : to_string(answer.cause().code()))
              << '\n';
  }
  const auto drill = engine.end_drill("capital-of");
  std::cout << drill.served << " served, " << drill.not_covered << " not covered, at most "
            << std::chrono::floor<std::chrono::minutes>(drill.ages.longest).count() << " min old\n";
  // endregion

  std::cout << "# decision\n";
  clock->ahead = 1h;
  up = false;
  // region decision
  const auto answer = capital("FR");
  const auto reported = decisions->find(holdfast::decision_ref(answer.provenance().decision));
  std::cout << explain(*reported) << '\n';
  try {
    (void)capital("DE");
  } catch (const std::exception&) {
    std::cout << explain(decisions->latest("capital-of", 1).front()) << '\n';
  }
  // endregion
}
