// What the relays to message brokers have in common, with a broker that answers as a test says.

#include "outbox/relay/broker_relay.hpp"

#include <holdfast/error.hpp>
#include <holdfast/outbox/memory.hpp>

#include "outbox/relay/broker_url.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <deque>
#include <functional>
#include <string>
#include <vector>

namespace holdfast::detail::outbox {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using kind = confirmation::kind;

/// The payloads of each wave, and the answers to them.
struct script {
  std::vector<std::vector<std::string>> waves{};
  std::function<confirmation(const std::string& payload)> answer = [](const std::string&) {
    return confirmation{kind::confirmed, {}};
  };
  bool reachable = true;
  bool pipelines_keys = false;
  int connections = 0;
};

class scripted_session final : public broker_session {
 public:
  explicit scripted_session(script& plan) : plan_(plan) {}
  void publish(std::span<const broker_message> messages, std::span<confirmation> confirmations,
               std::chrono::steady_clock::time_point /*deadline*/) override {
    auto& wave = plan_.waves.emplace_back();
    for (std::size_t i = 0; i < messages.size(); ++i) {
      wave.push_back(messages[i].event->payload);
      confirmations[i] = plan_.answer(messages[i].event->payload);
      if (confirmations[i].status == kind::disconnected) usable_ = false;
    }
  }
  bool usable() override { return usable_; }

 private:
  script& plan_;
  bool usable_ = true;
};

class scripted_broker final : public broker {
 public:
  explicit scripted_broker(script& plan) : plan_(plan) {}
  const std::string& name() const noexcept override { return name_; }
  message_format format() const noexcept override {
    return {.attribute_prefix = "ce-", .pipelines_keys = plan_.pipelines_keys};
  }
  bool is_reserved_header(std::string_view) const noexcept override { return false; }
  std::string problem_of(const broker_message& message) const override {
    return message.event->payload == "bad" ? "it is bad" : "";
  }
  std::unique_ptr<broker_session> connect(std::chrono::milliseconds) const override {
    ++plan_.connections;
    if (!plan_.reachable) throw error(errc::unavailable, "refused");
    return std::make_unique<scripted_session>(plan_);
  }

 private:
  script& plan_;
  std::string name_ = "test://broker";
};

class BrokerRelay : public ::testing::Test {
 protected:
  script plan_{};

  /// Publishes `key:payload` each, in one call.
  std::vector<outcome> publish(const std::vector<std::pair<std::string, std::string>>& events) {
    holdfast::outbox box(make_memory_outbox());
    for (const auto& [key, payload] : events)
      (void)box.publish(
          {.type = "t", .key = key, .payload = payload, .content_type = "text/plain"});
    const auto claim = box.claim({.most = 100, .run = 100});
    std::deque<delivery> deliveries;
    std::vector<const delivery*> pointers;
    for (const auto& one : claim.events)
      pointers.push_back(&deliveries.emplace_back(box, one, claim.fence, std::stop_token()));
    broker_relay relay(std::make_unique<scripted_broker>(plan_), "{type}", {.pause = 20ms});
    return relay.publish(pointers);
  }
};

TEST_F(BrokerRelay, SendsTheNextEventOfAKeyAfterTheOneBeforeWasConfirmed) {
  const auto outcomes = publish({{"a", "a1"}, {"a", "a2"}, {"a", "a3"}, {"b", "b1"}, {"b", "b2"}});
  for (const auto& one : outcomes) EXPECT_TRUE(one.is_done());
  EXPECT_THAT(plan_.waves,
              ElementsAre(ElementsAre("a1", "b1"), ElementsAre("a2", "b2"), ElementsAre("a3")));
}

TEST_F(BrokerRelay, SendsWholeKeysToABrokerThatKeepsTheirOrder) {
  plan_.pipelines_keys = true;
  (void)publish({{"a", "a1"}, {"a", "a2"}, {"b", "b1"}});
  EXPECT_THAT(plan_.waves, ElementsAre(ElementsAre("a1", "a2", "b1")));
}

TEST_F(BrokerRelay, StopsWithAKeyAtItsFirstFailure) {
  plan_.answer = [](const std::string& payload) {
    return payload == "a1" ? confirmation{kind::refused, "no queue"}
                           : confirmation{kind::confirmed, {}};
  };
  const auto outcomes = publish({{"a", "a1"}, {"a", "a2"}, {"b", "b1"}, {"b", "b2"}});
  EXPECT_EQ(outcomes[0].code(), outcome::kind::retry);
  EXPECT_EQ(outcomes[1].code(), outcome::kind::throttled);
  EXPECT_TRUE(outcomes[2].is_done());
  EXPECT_TRUE(outcomes[3].is_done());
  EXPECT_THAT(plan_.waves, ElementsAre(ElementsAre("a1", "b1"), ElementsAre("b2")));
}

TEST_F(BrokerRelay, AnEventThatCannotBeSentIsParkedAndNotSent) {
  const auto outcomes = publish({{"a", "a1"}, {"a", "bad"}, {"a", "a3"}});
  EXPECT_TRUE(outcomes[0].is_done());
  EXPECT_EQ(outcomes[1].code(), outcome::kind::permanent);
  EXPECT_EQ(outcomes[2].code(), outcome::kind::throttled);
  EXPECT_THAT(plan_.waves, ElementsAre(ElementsAre("a1")));
}

TEST_F(BrokerRelay, ABrokerThatCannotBeReachedUsesUpNoAttempt) {
  plan_.reachable = false;
  const auto outcomes = publish({{"a", "a1"}, {"", "x"}});
  for (const auto& one : outcomes) {
    EXPECT_EQ(one.code(), outcome::kind::throttled);
    EXPECT_THAT(one.reason(), HasSubstr("cannot use test://broker: refused"));
  }
}

TEST_F(BrokerRelay, ALostConnectionCountsOnlyIfTheBrokerCanBeReached) {
  plan_.answer = [this](const std::string&) {
    plan_.reachable = false;
    return confirmation{kind::disconnected, "gone"};
  };
  EXPECT_EQ(publish({{"", "x"}})[0].code(), outcome::kind::throttled);
  plan_ = {};
  plan_.answer = [](const std::string&) { return confirmation{kind::disconnected, "gone"}; };
  EXPECT_EQ(publish({{"", "x"}})[0].code(), outcome::kind::ambiguous);
  EXPECT_EQ(plan_.connections, 2);
}

TEST(BrokerUrl, HasHostsCredentialsAndParameters) {
  const broker_url_rules rules{"nats", "tls", 4222, 4223, {"creds"}};
  const auto url = parse_broker_url("tls://ann:p%40w@a,b:7/orders.{type}?creds=f", rules, {});
  EXPECT_TRUE(url.tls);
  EXPECT_EQ(url.name, "tls://a:4223,b:7");
  EXPECT_EQ(url.password, "p@w");
  EXPECT_EQ(url.path, "orders.{type}");
  EXPECT_EQ(url.parameter("creds"), "f");
  const auto ipv6 = parse_broker_url("nats://[::1]", rules, {.password = "other"});
  EXPECT_EQ(ipv6.name, "nats://[::1]:4222");
  EXPECT_EQ(ipv6.password, "other");
  EXPECT_EQ(parse_broker_url("nats://a,[::1]:7", rules, {}).endpoints.back().host, "::1");
  for (const char* bad : {"http://a", "nats:a", "nats://", "nats://a,,b", "nats://a:x,b",
                          "nats://a?other=1", "nats://a:0,b"})
    EXPECT_THROW((void)parse_broker_url(bad, rules, {}), error) << bad;
  EXPECT_THROW((void)parse_broker_url("nats://a", rules, {.timeout = 0ms}), error);
}

TEST(DestinationTemplate, ReplacesPlaceholders) {
  const event sample{.type = "paid", .key = "k", .aggregate_type = "order"};
  EXPECT_EQ(destination_template("{aggregate_type}.{type}/{key}").expand(sample), "order.paid/k");
  for (const char* bad : {"{", "}", "{other}", "{type"})
    EXPECT_THROW(destination_template{bad}, error) << bad;
}

}  // namespace
}  // namespace holdfast::detail::outbox
