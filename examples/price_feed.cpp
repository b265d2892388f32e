// A price feed with soft expiry: prices younger than a second are served without a call; older ones
// are served at once, and refreshed behind; after a minute without the feed there is no price any
// more.

#include <holdfast/holdfast.hpp>
#include <holdfast/nlohmann.hpp>

#include <atomic>
#include <chrono>
#include <iostream>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>

namespace app {

struct price {
  std::string symbol;
  int cents = 0;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(price, symbol, cents)

}  // namespace app

namespace {

/// A clock for the example, which goes on when it is told so.
class stepped_clock final : public holdfast::clock {
 public:
  std::atomic<std::chrono::milliseconds> ahead{std::chrono::milliseconds(0)};
  [[nodiscard]] holdfast::timestamp now() const noexcept override { return start_ + ahead.load(); }
  [[nodiscard]] std::chrono::steady_clock::time_point steady() const noexcept override {
    return std::chrono::steady_clock::now();
  }

 private:
  holdfast::timestamp start_ = holdfast::system_clock()->now();
};

}  // namespace

int main() {
  using namespace std::chrono_literals;
  const auto clock = std::make_shared<stepped_clock>();
  std::atomic<int> cents{100};
  std::atomic<bool> up{true};

  // region point
  holdfast::engine engine{holdfast::make_memory_store({.clock = clock}), {.clock = clock}};
  const auto feed =
      engine.protect("price-by-symbol", {.expiry = 1min, .soft_expiry = 1s, .single_flight = true},
                     [&](const std::string& symbol) -> app::price {
                       if (!up) throw std::runtime_error("the feed is down");
                       return {symbol, cents++};
                     });
  // endregion

  const auto show = [&](const char* when) {
    const auto answer = feed("ACME");
    std::cout << when << ": " << answer->cents << ", "
              << (answer.live() ? "live" : to_string(answer.cause().code())) << ", "
              << std::chrono::floor<std::chrono::seconds>(answer.age(clock->now())).count()
              << " s old\n";
  };
  const auto numbers = [&] { return engine.points().front().numbers; };
  const auto wait_for = [&](auto done) {
    while (!done()) std::this_thread::sleep_for(1ms);
  };

  show("the first call");  // the feed is called
  show("at once again");   // young enough: no call
  clock->ahead = 2s;
  show("2 s later");  // too old, so it is served and refreshed behind
  wait_for([&] { return numbers().refreshed == 1; });
  show("refreshed");

  up = false;
  clock->ahead = 30s;
  show("the feed is down");  // the refresh fails, and only the counters show it
  wait_for([&] { return numbers().refresh_failed == 1; });
  clock->ahead = 63s;
  try {
    show("a minute later");
  } catch (const std::exception& e) {
    std::cout << "a minute later: " << e.what() << '\n';
  }
}
