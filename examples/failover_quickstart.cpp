// A call is protected: while its upstream answers, answers are live; when it fails, the last good
// one is served, marked as stale.

#include <holdfast/holdfast.hpp>
#include <holdfast/nlohmann.hpp>

#include <chrono>
#include <filesystem>
#include <iostream>
#include <stdexcept>
#include <string>

struct country {
  std::string code;
  std::string name;
  NLOHMANN_DEFINE_TYPE_INTRUSIVE(country, code, name)
};

/// What others would do over the network.
struct client {
  bool down = false;
  country fetch(const std::string& code) const {
    if (down) throw std::runtime_error("connection refused");
    return {code, code == "FR" ? "France" : "somewhere"};
  }
};

int main() {
  using namespace std::chrono_literals;
  const auto file = std::filesystem::temp_directory_path() / "holdfast_failover_quickstart.db";
  for (const char* suffix : {"", "-wal", "-shm"}) std::filesystem::remove(file.string() + suffix);
  client upstream;

  // region protect
  auto db = holdfast::open("sqlite://" + file.string());
  holdfast::engine engine{db.store({.create_schema = true})};

  auto country_by_code =
      engine.protect("country-by-code", {.domain = "country", .expiry = 24h},
                     [&upstream](const std::string& code) { return upstream.fetch(code); });
  // endregion

  // region call
  auto show = [](const holdfast::answer<country>& a) {
    std::cout << a->name << (a.live() ? ", live" : ", stale: " + a.cause().type()) << '\n';
  };
  show(country_by_code("FR"));
  upstream.down = true;
  show(country_by_code("FR"));
  // endregion

  // region nothing to serve
  try {
    (void)country_by_code("DE");
  } catch (const std::runtime_error& e) {
    std::cout << "nothing stored, so the upstream's own exception leaves: " << e.what() << '\n';
  }
  const auto tried = country_by_code.try_call("DE");
  std::cout << "without exceptions: " << (tried.has_value() ? "an answer" : "an error") << '\n';
  // endregion

  // region rules
  auto strict = engine.protect(
      "strict-country",
      {.expiry = std::chrono::months(1),
       .classify =
           holdfast::failure_rules{}.pass<std::invalid_argument>().invalidate<std::out_of_range>(),
       .retry = holdfast::retry_options{.attempts = 2, .backoff = 1ms},
       .breaker = holdfast::breaker_options{}},
      [&upstream](const std::string& code) { return upstream.fetch(code); });
  // endregion
  upstream.down = false;
  show(strict("FR"));

  // region close
  const auto report = engine.close(std::chrono::steady_clock::now() + 5s);
  std::cout << "closed, " << report.unsaved << " unsaved, " << report.still_running.size()
            << " still running\n";
  // endregion
}
