// The program of docs/getting-started.md: a stale answer, an id and a delivered event.
#include <holdfast/holdfast.hpp>

#include <iostream>
#include <stdexcept>
#include <string>

int main(int argc, char**) {
  using namespace std::chrono_literals;
  const bool down = argc > 1;  // with any argument, the service below fails
  auto db = holdfast::open("sqlite:shop.db");

  // 1. A protected call. It keeps its last good answer in the database.
  holdfast::engine engine{db.store({.create_schema = true})};
  const auto rate = engine.protect("rate", {.expiry = 24h}, [down](const std::string& currency) {
    if (down) throw std::runtime_error("connection refused");
    return "1 EUR = 1.0870 " + currency;
  });
  const auto answer = rate("USD");
  std::cout << *answer << (answer.stale() ? ", stale\n" : ", live\n");

  // 2. An id that no other process gets.
  auto ids = db.sequence("order.id", {.store = {.create_schema = true}});
  const auto order = "order-" + std::to_string(ids.next());

  // 3. An event. It is in the database when publish returns. A worker delivers it.
  auto outbox = db.outbox({.create_schema = true});
  outbox.publish({.type = "order.paid", .key = order, .payload = R"({"euro":30})"});
  holdfast::worker worker{outbox, [](const holdfast::delivery& delivery) {
                            std::cout << "delivered: " << delivery.event().type << ' '
                                      << delivery.event().key << '\n';
                            return holdfast::outcome::done();
                          }};
  worker.run_until_empty();
}
