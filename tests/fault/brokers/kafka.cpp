#include "fault/brokers/broker_under_test.hpp"
#include "support/child_process.hpp"
#include "support/eventually.hpp"
#include "support/raw_client.hpp"
#include "support/temporary_directory.hpp"

#include <librdkafka/rdkafka.h>

#include <array>
#include <csignal>
#include <fstream>
#include <stdexcept>

namespace holdfast::test {
namespace {

constexpr int brokers = 2;
constexpr auto topic = "orders.t";

struct destroy_consumer {
  void operator()(rd_kafka_t* consumer) const { rd_kafka_destroy(consumer); }
};
using kafka_consumer = std::unique_ptr<rd_kafka_t, destroy_consumer>;
struct destroy_topic {
  void operator()(rd_kafka_topic_t* topic_handle) const { rd_kafka_topic_destroy(topic_handle); }
};
using kafka_topic = std::unique_ptr<rd_kafka_topic_t, destroy_topic>;

void require(bool condition, const std::string& action) {
  if (!condition) throw std::runtime_error("Kafka: " + action + " failed");
}

class kafka_under_test final : public broker_under_test {
 public:
  kafka_under_test()
      : process_({.argv = {HOLDFAST_KAFKA_MOCK, std::to_string(brokers)},
                  .log = directory_.path() / "addresses"}) {
    require(eventually([this] {
              std::ifstream in(directory_.path() / "addresses");
              return static_cast<bool>(std::getline(in, addresses_)) && !in.eof();
            }),
            "start");
  }
  std::string relay_url() const override { return "kafka://" + addresses_ + "/orders.{type}"; }
  void kill() override {
    process_.signal(SIGUSR1);
    const auto refuses = [this] {
      try {
        const raw_client probe(addresses_.substr(0, addresses_.find(',')));
        return false;
      } catch (const std::exception&) {
        return true;
      }
    };
    require(eventually(refuses), "closing the ports");
  }
  void start() override { process_.signal(SIGUSR2); }
  void pause() override { process_.signal(SIGSTOP); }
  void resume() override { process_.signal(SIGCONT); }

  std::vector<broker_message_read> read_all() override {
    const auto consumer = open_consumer();
    const kafka_topic source(rd_kafka_topic_new(consumer.get(), topic, nullptr));
    const int partitions = count_partitions(consumer.get(), source);
    std::vector<broker_message_read> result;
    for (int partition = 0; partition < partitions; ++partition)
      read_partition(source, partition, result);
    return result;
  }

 private:
  kafka_consumer open_consumer() const {
    auto* settings = rd_kafka_conf_new();
    const auto set = [&](const char* name, const std::string& value) {
      require(rd_kafka_conf_set(settings, name, value.c_str(), nullptr, 0) == RD_KAFKA_CONF_OK,
              name);
    };
    set("bootstrap.servers", addresses_);
    set("enable.partition.eof", "true");
    kafka_consumer consumer(rd_kafka_new(RD_KAFKA_CONSUMER, settings, nullptr, 0));
    require(consumer != nullptr, "consumer");
    return consumer;
  }

  static int count_partitions(rd_kafka_t* consumer, const kafka_topic& source) {
    const rd_kafka_metadata_t* metadata = nullptr;
    require(rd_kafka_metadata(consumer, 0, source.get(), &metadata, 60'000) ==
                RD_KAFKA_RESP_ERR_NO_ERROR,
            "metadata");
    const int partitions = metadata->topics[0].partition_cnt;
    rd_kafka_metadata_destroy(metadata);
    return partitions;
  }

  static void read_partition(const kafka_topic& source, int partition,
                             std::vector<broker_message_read>& result) {
    require(rd_kafka_consume_start(source.get(), partition, RD_KAFKA_OFFSET_BEGINNING) == 0,
            "consume");
    for (bool at_end = false; !at_end;) {
      rd_kafka_message_t* message = rd_kafka_consume(source.get(), partition, 60'000);
      require(message != nullptr, "reading a message");
      at_end = message->err == RD_KAFKA_RESP_ERR__PARTITION_EOF;
      require(at_end || message->err == RD_KAFKA_RESP_ERR_NO_ERROR, "reading a message");
      if (!at_end) result.push_back(message_of(message));
      rd_kafka_message_destroy(message);
    }
    rd_kafka_consume_stop(source.get(), partition);
  }

  static broker_message_read message_of(const rd_kafka_message_t* message) {
    broker_message_read result{.body = {static_cast<const char*>(message->payload), message->len},
                               .destination = rd_kafka_topic_name(message->rkt)};
    if (message->key != nullptr)
      result.key.assign(static_cast<const char*>(message->key), message->key_len);
    rd_kafka_headers_t* headers = nullptr;
    require(rd_kafka_message_headers(message, &headers) == RD_KAFKA_RESP_ERR_NO_ERROR, "headers");
    const char* name = nullptr;
    const void* value = nullptr;
    std::size_t size = 0;
    for (std::size_t i = 0;
         rd_kafka_header_get_all(headers, i, &name, &value, &size) == RD_KAFKA_RESP_ERR_NO_ERROR;
         ++i)
      result.headers[name].assign(static_cast<const char*>(value), size);
    result.id = result.headers["ce_id"];
    return result;
  }

  temporary_directory directory_{"kafka"};
  std::string addresses_{};
  child_process process_;
};

}  // namespace

std::unique_ptr<broker_under_test> make_kafka_under_test() {
  return std::make_unique<kafka_under_test>();
}

}  // namespace holdfast::test
