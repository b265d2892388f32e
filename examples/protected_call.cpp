#include <holdfast/holdfast.hpp>

#include <iostream>
#include <stdexcept>

int main() {
  using namespace std::chrono_literals;
  auto db = holdfast::open("sqlite:answers.db");
  holdfast::engine engine{db.store({.create_schema = true})};

  bool down = false;  // stands for a service that other people run
  const auto rate = engine.protect("rate", {.expiry = 24h}, [&](const std::string& currency) {
    if (down) throw std::runtime_error("connection refused");
    return "1 EUR = 1.0870 " + currency;
  });

  std::cout << *rate("USD") << '\n';
  down = true;
  const auto answer = rate("USD");
  std::cout << *answer << (answer.stale() ? " (stale)\n" : "\n");
  std::cout << "because: " << answer.cause().message() << '\n';
}
