// Events for a message broker that is down: they stay in the outbox, and no attempt is used up.
#include <holdfast/holdfast.hpp>
#include <holdfast/outbox/relay/nats.hpp>

#include <chrono>
#include <iostream>
#include <thread>

int main() {
  using namespace std::chrono_literals;
  auto outbox = holdfast::open("memory:").outbox();
  outbox.publish({.type = "created", .key = "order-7", .payload = R"({"euro":30})"});

  std::jthread publisher([&](const std::stop_token& stop) {
    // region relay
    holdfast::worker worker{outbox};
    worker.handle_other_types(holdfast::relay::nats("nats://127.0.0.1:1/orders.{type}"), 200);
    worker.run(stop);
    // endregion
  });
  std::this_thread::sleep_for(100ms);
  publisher.request_stop();
  publisher.join();

  const auto record = outbox.admin().scan().records.at(0).details;
  std::cout << record.event.type << ", failed attempts: " << record.attempts << "\n";
}
