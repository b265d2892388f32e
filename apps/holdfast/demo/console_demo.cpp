#include "demo/console_demo.hpp"

#include <holdfast/database.hpp>
#include <holdfast/error.hpp>
#include <holdfast/outbox.hpp>
#include <holdfast/reporter.hpp>
#include <holdfast/worker.hpp>

#include "commands/serve/serve_signals.hpp"
#include "demo/scratch_directory.hpp"
#include "demo/upstream.hpp"
#include "serve/parts.hpp"
#include "serve/server.hpp"
#include "terminal/message_queue.hpp"
#include "terminal/text.hpp"

#include <array>
#include <charconv>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

namespace holdfast::cli {

namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;

constexpr long look_milliseconds = 50;
constexpr auto between_orders = 200ms;
/// The rates cannot be had for a part of each minute.
constexpr auto outage_begin = 20s;
constexpr auto outage_end = 40s;
/// Until then no mail is accepted, so that there are events to replay.
constexpr auto mail_outage = 60s;
constexpr std::uint64_t orders_for_a_poisoned_one = 30;

std::string configuration(const std::string& url) {
  return "[serve]\nlisten = [\"127.0.0.1:0\"]\nlabel = \"demo\"\naccess-log = \"\"\nstate = \"" +
         url + "\"\n[stores.main]\nurl = \"" + url +
         "\"\ncreate-schema = true\n[outboxes.orders]\nurl = \"" + url +
         "\"\ncreate-schema = true\n[sequences]\nurl = \"" + url +
         "\"\ncreate-schema = true\n"
         "[failover.points.exchange-rates]\nexpiry = \"1h\"\nbreaker.enabled = true\n"
         "[failover.points.countries]\nexpiry = \"24h\"\n";
}

/// What a shop does all day. It talks to the server as any program would, over HTTP, and has a
/// worker that delivers its events.
class shop {
 public:
  shop(const std::string& url, std::uint16_t port, std::string token)
      : port_(port),
        token_(std::move(token)),
        events_(holdfast::open(url).outbox({})),
        deliveries_(events_, [this](const delivery& call) { return deliver(call.event()); }),
        reporter_(deliveries_, holdfast::open(url),
                  {.instance = "mail-worker", .create_schema = true}),
        worker_([this](const std::stop_token& stop) { deliveries_.run(stop); }),
        orders_([this](const std::stop_token& stop) { take_orders(stop); }) {}

 private:
  [[nodiscard]] steady_clock::duration age() const { return steady_clock::now() - begin_; }

  void take_orders(const std::stop_token& stop) {
    std::mutex mutex;
    std::condition_variable_any wake;
    for (std::uint64_t order = 1; !stop.stop_requested(); ++order) {
      try {
        take_order(order);
      } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch)
        // The server is busy or stops: the next order may get through.
      }
      std::unique_lock lock(mutex);
      wake.wait_for(lock, stop, between_orders, [] { return false; });
    }
  }

  void take_order(std::uint64_t order) {
    static constexpr std::array<std::string_view, 8> currencies{"EUR", "USD", "GBP", "JPY",
                                                                "CHF", "SEK", "INR", "BRL"};
    static constexpr std::array<std::string_view, 6> countries{"FR", "DE", "IT", "GB", "JP", "BR"};
    const auto second = age() % 1min;
    ask("exchange-rates", currencies[order % currencies.size()],
        second < outage_begin || second >= outage_end, order);
    ask("countries", countries[order % countries.size()], true, order);
    (void)post("/v1/sequences/order.id/next", R"({"count":3})");
    const bool is_poisoned = order % orders_for_a_poisoned_one == 7;
    const auto key = "order-" + std::to_string(order);
    events_.publish({.type = "order.paid",
                     .key = key,
                     .payload = is_poisoned ? R"({"euro":-1})" : R"({"euro":30})"});
    if (order % 5 == 0)
      events_.publish({.type = "mail.welcome", .key = key, .payload = R"({"name":"Ada"})"});
  }

  /// An answer of an upstream, or the last good one if it failed.
  void ask(const std::string& point, std::string_view argument, bool is_up, std::uint64_t order) {
    const auto args = R"({"args":[{"t":"str","v":")" + std::string(argument) + "\"}],";
    const auto path = "/v1/points/" + point;
    if (is_up) (void)post(path + "/answers", args + "\"payload\":" + std::to_string(order) + "}");
    else (void)post(path + "/recover", args + R"("cause":"failed"})");
  }

  [[nodiscard]] std::string post(const std::string& path, const std::string& content) const {
    return http_exchange(port_, "POST " + path +
                                    " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
                                    "Authorization: Bearer " +
                                    token_ +
                                    "\r\nContent-Type: application/json\r\nContent-Length: " +
                                    std::to_string(content.size()) + "\r\n\r\n" + content);
  }

  outcome deliver(const event& delivered) {
    if (delivered.payload.find("-1") != std::string::npos)
      return outcome::permanent("HTTP status 422: the total is negative");
    if (delivered.type == "mail.welcome" && age() < mail_outage)
      return outcome::permanent("SMTP 450: the mailbox is not available");
    return outcome::done();
  }

  const std::uint16_t port_;
  const std::string token_;
  const steady_clock::time_point begin_ = steady_clock::now();
  outbox events_;
  worker deliveries_;
  reporter reporter_;
  std::jthread worker_;
  std::jthread orders_;  // last: uses all of the above
};

std::uint16_t port_of(std::string_view address) {
  std::uint16_t port = 0;
  address.remove_prefix(address.rfind(':') + 1);
  (void)std::from_chars(address.data(), address.data() + address.size(), port);
  return port;
}

void explain(console& io, const std::string& link) {
  io.out << "The console of a small shop, until Ctrl-C ends it:\n\n    " << link
         << "\n\nThe link signs a browser in once, within 10 minutes. What happens there:\n\n"
            "  - Exchange rates cannot be had for 20 seconds of each minute. Calls get the last "
            "good answers\n    meanwhile, and an incident opens.\n"
            "  - In the first minute no mail can be delivered. Replay these events in Outbox, "
            "orders.\n"
            "  - Now and then an order has a negative total, which its receiver always refuses. "
            "Discard it.\n"
            "  - Sequences shows how long the order ids last.\n";
  io.out.flush();
}

}  // namespace

exit_code run_console_demo(console& io) {
  const serve_signals signals;
  const scratch_directory directory;
  const auto records = std::make_shared<record_queue>();
  const auto log = queue_records(records, io.log.least);
  detail::serve::first_credentials credentials;
  auto config =
      detail::serve::config::read_config({}, configuration(directory.url()), {.log = log});
  auto parts = detail::serve::make_parts(
      config, {.show = [&](const auto& created) { credentials = created; }});
  detail::serve::server server(
      {.config = std::move(config), .parts = std::move(parts), .log = log});
  if (credentials.link.empty())
    throw error(errc::unavailable, "the demonstration cannot write its files; check TMPDIR");
  {
    const shop example(directory.url(), port_of(server.addresses().front()), credentials.token);
    explain(io, credentials.link);
    for (int signal = 0; signal != SIGINT && signal != SIGTERM;) {
      signal = signals.wait(look_milliseconds);
      print_records(io, *records);
    }
  }
  (void)server.stop(5s);
  return exit_ok;
}

}  // namespace holdfast::cli
