// What relays to message brokers do with one event or a few, and with brokers that are down, frozen
// or full.

#include <holdfast/error.hpp>
#include <holdfast/outbox/memory.hpp>
#include <holdfast/outbox/relay/kafka.hpp>
#include <holdfast/outbox/relay/nats.hpp>
#include <holdfast/outbox/relay/rabbitmq.hpp>

#include "fault/brokers/broker_under_test.hpp"
#include "fault/brokers/rabbitmq.hpp"
#include "support/eventually.hpp"
#include "support/nats_server.hpp"
#include "support/rabbitmq_server.hpp"
#include "support/temporary_directory.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <deque>
#include <fstream>
#include <map>
#include <ostream>
#include <string>
#include <vector>

namespace holdfast::test {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

/// Long where the broker answers; tests of one that does not answer set shorter ones.
const relay::broker_options patient{.connect_timeout = 60s, .timeout = 60s, .pause = 50ms};
const relay::broker_options impatient{.connect_timeout = 1s, .timeout = 1s, .pause = 50ms};

/// Events of an outbox in memory, as a handler gets them.
class claimed_events {
 public:
  explicit claimed_events(const std::vector<event>& events) {
    for (const auto& one : events) (void)outbox_.publish(one);
    claim_ = outbox_.claim({.most = 1000, .run = 1000});
    for (const auto& one : claim_.events) {
      deliveries_.emplace_back(outbox_, one, claim_.fence, std::stop_token());
      pointers_.push_back(&deliveries_.back());
    }
  }
  [[nodiscard]] const std::vector<const delivery*>& all() const { return pointers_; }
  [[nodiscard]] const delivery& front() const { return *pointers_.front(); }

 private:
  outbox outbox_{make_memory_outbox()};
  claimed claim_{};
  std::deque<delivery> deliveries_{};
  std::vector<const delivery*> pointers_{};
};

struct kind_of_broker {
  std::string name;
  std::unique_ptr<broker_under_test> (*make)();
  event_handler (*relay)(const std::string& url, const relay::broker_options& options);
  batch_handler (*batch_relay)(const std::string& url, const relay::broker_options& options);
  std::string attribute_prefix;

  /// For messages of GoogleTest.
  friend std::ostream& operator<<(std::ostream& out, const kind_of_broker& kind) {
    return out << kind.name;
  }
};

template <class Relay>
kind_of_broker make_kind(std::string name, std::unique_ptr<broker_under_test> (*make)(),
                         std::string prefix) {
  return {std::move(name), make,
          [](const std::string& url, const relay::broker_options& options) {
            return event_handler(Relay(url, options));
          },
          [](const std::string& url, const relay::broker_options& options) {
            return batch_handler(Relay(url, options));
          },
          std::move(prefix)};
}

class OutboxBroker : public ::testing::TestWithParam<kind_of_broker> {
 protected:
  std::unique_ptr<broker_under_test> broker_{GetParam().make()};
  [[nodiscard]] event_handler relay(const relay::broker_options& options = patient) const {
    return GetParam().relay(broker_->relay_url(), options);
  }
};

TEST_P(OutboxBroker, PublishesPayloadAttributesAndHeaders) {
  const claimed_events events({{.type = "t",
                                .key = "k 1",
                                .payload = std::string("\0\xff binary", 9),
                                .content_type = "application/octet-stream",
                                .headers = {{"traceparent", "00-1"},
                                            {"Authorization", "secret"},
                                            {"CC", "another-queue"},
                                            {"Nats-Rollup", "all"},
                                            {"ce_id", "forged"},
                                            {"cloudEvents:id", "forged"}},
                                .aggregate_id = "7"}});
  ASSERT_EQ(relay()(events.front()).code(), outcome::kind::done);
  const auto messages = broker_->read_all();
  ASSERT_EQ(messages.size(), 1U);
  const auto& message = messages.front();
  const auto& sent = events.front().event();
  EXPECT_EQ(message.id, sent.id);
  EXPECT_EQ(message.body, sent.payload);
  EXPECT_EQ(message.destination, "orders.t");
  auto headers = message.headers;
  const auto prefix = GetParam().attribute_prefix;
  EXPECT_EQ(headers[prefix + "id"], sent.id);
  EXPECT_EQ(headers[prefix + "type"], "t");
  EXPECT_EQ(headers[prefix + "specversion"], "1.0");
  EXPECT_EQ(headers[prefix + "subject"], "7");
  EXPECT_EQ(headers[prefix + "partitionkey"], prefix == "ce-" ? "k%201" : "k 1");
  EXPECT_EQ(headers[prefix == "ce-" ? "ce-datacontenttype" : "content-type"],
            "application/octet-stream");
  EXPECT_EQ(headers["traceparent"], "00-1");
  EXPECT_FALSE(headers.contains("Authorization"));
  if (GetParam().name == "RabbitMq") {
    EXPECT_EQ(headers["delivery-mode"], "2");
    EXPECT_FALSE(headers.contains("CC"));
  }
  if (GetParam().name == "Nats") {
    EXPECT_FALSE(headers.contains("Nats-Rollup"));
  }
}

TEST_P(OutboxBroker, PublishesBatchesInOrderOfEachKey) {
  std::vector<event> published;
  for (int i = 0; i < 500; ++i)
    published.push_back({.type = "t",
                         .key = i % 5 == 0 ? "" : "k" + std::to_string(i % 5),
                         .payload = std::to_string(i)});
  const claimed_events events(published);
  const auto handler = GetParam().batch_relay(broker_->relay_url(), patient);
  const auto outcomes = handler(events.all());
  ASSERT_EQ(outcomes.size(), 500U);
  for (const auto& one : outcomes) EXPECT_TRUE(one.is_done()) << one.reason();
  std::map<std::string, int> latest;
  const auto messages = broker_->read_all();
  EXPECT_EQ(messages.size(), 500U);
  for (const auto& message : messages) {
    if (message.key.empty()) continue;
    const int number = std::stoi(message.body);
    const auto [before, first] = latest.try_emplace(message.key, number);
    EXPECT_TRUE(first || before->second < number) << message.body;
    before->second = number;
  }
}

TEST_P(OutboxBroker, PausesWhileTheBrokerIsDownAndContinues) {
  const claimed_events events({{.type = "t"}});
  const auto handler = relay(impatient);
  broker_->kill();
  for (int i = 0; i < 3; ++i) {
    const auto result = handler(events.front());
    EXPECT_EQ(result.code(), outcome::kind::throttled) << result.reason();
    EXPECT_THAT(result.reason(), HasSubstr("127.0.0.1"));
    EXPECT_THAT(result.reason(), ::testing::Not(HasSubstr("guest")));
  }
  broker_->start();
  // A server that has just started may need a while.
  const auto deadline = std::chrono::steady_clock::now() + 60s;
  auto result = handler(events.front());
  while (!result.is_done() && std::chrono::steady_clock::now() < deadline) {
    EXPECT_EQ(result.code(), outcome::kind::throttled) << result.reason();
    result = handler(events.front());
  }
  EXPECT_TRUE(result.is_done()) << result.reason();
}

TEST_P(OutboxBroker, ABrokerThatDiesBetweenTwoEventsUsesUpNoAttempt) {
  const claimed_events events({{.type = "t"}, {.type = "t"}});
  const auto handler = relay(impatient);
  auto result = handler(*events.all()[0]);
  const auto deadline = std::chrono::steady_clock::now() + 60s;
  while (!result.is_done() && std::chrono::steady_clock::now() < deadline)
    result = handler(*events.all()[0]);
  ASSERT_TRUE(result.is_done()) << result.reason();
  broker_->kill();
  result = handler(*events.all()[1]);
  EXPECT_EQ(result.code(), outcome::kind::throttled) << result.reason();
}

TEST_P(OutboxBroker, AFrozenBrokerIsNotWaitedForLongerThanTheLimit) {
  const claimed_events events({{.type = "t"}, {.type = "t"}});
  const auto handler = relay(impatient);
  auto result = handler(*events.all()[0]);
  const auto deadline = std::chrono::steady_clock::now() + 60s;
  while (!result.is_done() && std::chrono::steady_clock::now() < deadline)
    result = handler(*events.all()[0]);
  broker_->pause();
  const auto begin = std::chrono::steady_clock::now();
  result = handler(*events.all()[1]);
  EXPECT_EQ(result.code(), outcome::kind::throttled) << result.reason();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 30s);
  broker_->resume();
}

INSTANTIATE_TEST_SUITE_P(
    All, OutboxBroker,
    ::testing::Values(make_kind<relay::rabbitmq>("RabbitMq", make_rabbitmq_under_test,
                                                 "cloudEvents:"),
                      make_kind<relay::nats>("Nats", make_nats_under_test, "ce-"),
                      make_kind<relay::kafka>("Kafka", make_kafka_under_test, "ce_")),
    [](const auto& test) { return test.param.name; });

TEST(OutboxRabbitMq, AnUnroutableEventIsNotDelivered) {
  const rabbitmq_server server;
  declare_queue(open_amqp(server.address()), "orders", "orders.#");
  const relay::rabbitmq handler("amqp://" + server.address() + "/?exchange=events", patient);
  const claimed_events events({{.type = "orders.new"}, {.type = "mail"}, {.type = "orders.paid"}});
  const auto outcomes = handler(events.all());
  EXPECT_TRUE(outcomes[0].is_done());
  EXPECT_EQ(outcomes[1].code(), outcome::kind::retry);
  EXPECT_THAT(outcomes[1].reason(), HasSubstr("bind a queue"));
  EXPECT_TRUE(outcomes[2].is_done());
  // The same connection continues.
  EXPECT_TRUE(handler(*events.all()[2]).is_done());
}

TEST(OutboxRabbitMq, WrongSettingsPauseDeliveriesWithAReason) {
  const rabbitmq_server server;
  const claimed_events events({{.type = "t"}});
  const auto refused = [&](const std::string& user, const std::string& path) {
    const relay::rabbitmq handler("amqp://" + user + server.address() + path, patient);
    const auto result = handler(events.front());
    EXPECT_EQ(result.code(), outcome::kind::throttled);
    EXPECT_THAT(result.reason(), ::testing::Not(HasSubstr("wrong-password")));
    return result.reason();
  };
  EXPECT_THAT(refused("guest:wrong-password@", "/"), HasSubstr("ACCESS_REFUSED"));
  EXPECT_THAT(refused("", "/no-such-vhost"), HasSubstr("login failed"));
  EXPECT_THAT(refused("", "/?exchange=none"), HasSubstr("no exchange 'none'"));
}

TEST(OutboxRabbitMq, AFullQueueThatRejectsPausesDeliveries) {
  const rabbitmq_server server;
  const std::string overflow = "reject-publish";
  std::array<amqp_table_entry_t, 2> entries{};
  entries[0].key = amqp_cstring_bytes("x-max-length");
  entries[0].value.kind = AMQP_FIELD_KIND_I32;
  entries[0].value.value.i32 = 1;
  entries[1].key = amqp_cstring_bytes("x-overflow");
  entries[1].value.kind = AMQP_FIELD_KIND_UTF8;
  entries[1].value.value.bytes = amqp_text(overflow);
  declare_queue(open_amqp(server.address()), "small", "#",
                {.num_entries = 2, .entries = entries.data()});
  const relay::rabbitmq handler("amqp://" + server.address() + "/?exchange=events", patient);
  // Ten of one key: after the first that is refused no other is published.
  const claimed_events events(std::vector<event>(10, {.type = "t", .key = "k"}));
  const auto outcomes = handler(events.all());
  const auto failed = std::ranges::find_if_not(outcomes, &outcome::is_done);
  ASSERT_NE(failed, outcomes.end());
  EXPECT_THAT(failed->reason(), HasSubstr("queue may be full"));
  for (auto next = failed; next != outcomes.end(); ++next)
    EXPECT_EQ(next->code(), outcome::kind::throttled);
}

TEST(OutboxRabbitMq, AServerShortOfMemoryPausesDeliveries) {
  const rabbitmq_server server({"vm_memory_high_watermark.absolute = 1KB"});
  const relay::rabbitmq handler("amqp://" + server.address() + "/?routing_key=none", impatient);
  const claimed_events events({{.type = "t"}});
  // It notices a few seconds after it has started.
  outcome result;
  EXPECT_TRUE(eventually(
      [&] {
        result = handler(events.front());
        return result.reason().find("does not accept messages now") != std::string::npos;
      },
      60s));
  EXPECT_EQ(result.code(), outcome::kind::throttled) << result.reason();
  EXPECT_EQ(handler(events.front()).code(), outcome::kind::throttled);
}

TEST(OutboxNats, AnEventWithoutAStreamIsNotDelivered) {
  const nats_server server;
  const relay::nats handler("nats://" + server.address() + "/nothing.{type}", patient);
  const claimed_events events({{.type = "t"}, {.type = "with space"}, {.type = "*"}});
  const auto outcomes = handler(events.all());
  EXPECT_EQ(outcomes[0].code(), outcome::kind::retry);
  EXPECT_THAT(outcomes[0].reason(), HasSubstr("no stream has the subject nothing.t"));
  EXPECT_EQ(outcomes[1].code(), outcome::kind::permanent);
  EXPECT_EQ(outcomes[2].code(), outcome::kind::permanent);
}

TEST(OutboxNats, AnEventThatIsTooLargeIsParked) {
  const temporary_directory directory;
  const auto settings = directory.path() / "nats.conf";
  std::ofstream(settings) << "max_payload: 1024\n";
  const nats_server server({"-c", settings.string()});
  const relay::nats handler("nats://" + server.address(), patient);
  const claimed_events events({{.type = "t", .payload = std::string(2000, 'x')}, {.type = "u"}});
  const auto outcomes = handler(events.all());
  EXPECT_EQ(outcomes[0].code(), outcome::kind::permanent) << outcomes[0].reason();
  EXPECT_EQ(outcomes[1].code(), outcome::kind::retry) << outcomes[1].reason();
}

TEST(OutboxNats, LogsInWithPasswordOrToken) {
  const claimed_events events({{.type = "t"}});
  const auto reason = [&](const nats_server& server, const std::string& user) {
    return relay::nats("nats://" + user + server.address(), patient)(events.front()).reason();
  };
  const nats_server with_password({"--user", "ann", "--pass", "pw"});
  EXPECT_THAT(reason(with_password, "ann:pw@"), HasSubstr("no stream"));
  EXPECT_THAT(reason(with_password, "ann:wrong@"), HasSubstr("cannot use"));
  const nats_server with_token({"--auth", "t0ken"});
  EXPECT_THAT(reason(with_token, "t0ken@"), HasSubstr("no stream"));
  EXPECT_THAT(reason(with_token, ""), HasSubstr("cannot use"));
}

TEST(OutboxKafka, ATopicThatIsNotValidParksTheEvent) {
  const auto broker = make_kafka_under_test();
  const relay::kafka handler(broker->relay_url(), patient);
  const claimed_events events({{.type = "t"}, {.type = "with space"}});
  const auto outcomes = handler(events.all());
  EXPECT_TRUE(outcomes[0].is_done()) << outcomes[0].reason();
  EXPECT_EQ(outcomes[1].code(), outcome::kind::permanent);
}

}  // namespace
}  // namespace holdfast::test
