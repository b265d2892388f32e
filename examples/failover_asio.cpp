// The split phases under callbacks and coroutines, with standalone Asio: begin, then succeed or
// fail, wherever the outcome is known.

#include <holdfast/holdfast.hpp>

#include <asio.hpp>

#include <chrono>
#include <functional>
#include <iostream>
#include <memory>
#include <stdexcept>
#include <string>

using namespace std::chrono_literals;

/// An asynchronous upstream: after a while it answers, or not.
struct price_feed {
  asio::io_context& io;
  bool down = false;

  void async_get(const std::string& symbol,
                 std::function<void(std::exception_ptr, std::string)> done) const {
    auto timer = std::make_shared<asio::steady_timer>(io, 5ms);
    timer->async_wait(
        [timer, symbol, fails = down, done = std::move(done)](const asio::error_code&) {
          if (fails) done(std::make_exception_ptr(std::runtime_error("feed down")), {});
          else done(nullptr, symbol + " 101.25");
        });
  }
  asio::awaitable<std::string> get(std::string symbol) const {
    asio::steady_timer timer(io, 5ms);
    co_await timer.async_wait(asio::use_awaitable);
    if (down) throw std::runtime_error("feed down");
    co_return symbol + " 101.25";
  }
};

using point = holdfast::point<std::string(const std::string&)>;
using answer = holdfast::answer<std::string>;

// region callback
/// Calls the feed and hands the answer on. The call is begun here, and ends in the callback, on
/// whatever thread that runs.
void get_price(const point& prices, const price_feed& feed, const std::string& symbol,
               std::function<void(const answer&)> then) {
  auto call = std::make_shared<holdfast::pending<std::string>>(prices.begin(symbol));
  if (!call->allowed()) return then(call->fail());  // the breaker is open
  feed.async_get(
      symbol, [call, then = std::move(then)](const std::exception_ptr& error, std::string price) {
        then(error ? call->fail(error) : call->succeed(std::move(price)));
      });
}
// endregion

// region coroutine
/// The same as a coroutine: what the feed throws is answered for.
asio::awaitable<answer> price(const point& prices, const price_feed& feed, std::string symbol) {
  auto call = prices.begin(symbol);
  std::exception_ptr error;
  try {
    co_return call.succeed(co_await feed.get(symbol));
  } catch (...) {
    error = std::current_exception();
  }
  co_return call.fail(error);
}
// endregion

int main() {
  asio::io_context io;
  price_feed feed{io};
  holdfast::engine engine{holdfast::make_memory_store()};
  // The upstream is called by hand, so the point needs only its signature.
  const auto prices =
      engine.protect("price-by-symbol", {.expiry = 1h}, [](const std::string&) -> std::string {
        throw std::logic_error("this point is used in split phases only");
      });

  const auto show = [](const answer& a) {
    std::cout << *a << (a.live() ? ", live\n" : ", stale\n");
  };
  const auto run = [&io] {
    io.restart();
    io.run();
  };

  get_price(prices, feed, "ABC", show);
  run();
  feed.down = true;
  get_price(prices, feed, "ABC", show);
  run();

  asio::co_spawn(
      io, [&]() -> asio::awaitable<void> { show(co_await price(prices, feed, "ABC")); },
      asio::detached);
  run();
  feed.down = false;
  asio::co_spawn(
      io, [&]() -> asio::awaitable<void> { show(co_await price(prices, feed, "XYZ")); },
      asio::detached);
  run();
}
