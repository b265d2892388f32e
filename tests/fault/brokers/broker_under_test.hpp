#pragma once

/// \file
/// Message brokers as the fault tests of relays use them: real servers, and readers that do not
/// depend on the code under test.

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace holdfast::test {

struct broker_message_read {
  std::string id{};  ///< message id, as the broker has it
  std::string key{};
  std::string body{};
  std::string destination{};
  std::map<std::string, std::string> headers{};
};

/// Not running any more after the destructor. Thread-safety: one thread at a time; clients may come
/// from anywhere.
class broker_under_test {
 public:
  broker_under_test() = default;
  broker_under_test(const broker_under_test&) = delete;
  broker_under_test& operator=(const broker_under_test&) = delete;
  virtual ~broker_under_test() = default;

  /// For a relay. Its destination is `orders.{type}`, which exists.
  [[nodiscard]] virtual std::string relay_url() const = 0;
  /// kill -9. Kafka, whose stand-in keeps its messages in memory, closes its ports instead.
  virtual void kill() = 0;
  virtual void start() = 0;
  /// SIGSTOP and SIGCONT.
  virtual void pause() = 0;
  virtual void resume() = 0;
  /// All messages, in the order of the broker. Those of a partition of Kafka are adjacent.
  [[nodiscard]] virtual std::vector<broker_message_read> read_all() = 0;
};

[[nodiscard]] std::unique_ptr<broker_under_test> make_rabbitmq_under_test();
[[nodiscard]] std::unique_ptr<broker_under_test> make_nats_under_test();
[[nodiscard]] std::unique_ptr<broker_under_test> make_kafka_under_test();

}  // namespace holdfast::test
