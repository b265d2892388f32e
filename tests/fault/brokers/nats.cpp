#include "fault/brokers/broker_under_test.hpp"
#include "support/nats_server.hpp"

#include <nats/nats.h>

#include <array>
#include <cstdlib>
#include <stdexcept>

namespace holdfast::test {
namespace {

void require(natsStatus status, const char* action) {
  if (status != NATS_OK)
    throw std::runtime_error(std::string("NATS: ") + action + ": " + natsStatus_GetText(status));
}

/// A connection with JetStream.
class jetstream {
 public:
  explicit jetstream(const std::string& address) {
    require(natsConnection_ConnectTo(&connection_, ("nats://" + address).c_str()), "connect");
    require(natsConnection_JetStream(&context_, connection_, nullptr), "jetstream");
  }
  jetstream(const jetstream&) = delete;
  jetstream& operator=(const jetstream&) = delete;
  ~jetstream() {
    jsCtx_Destroy(context_);
    natsConnection_Destroy(connection_);
  }
  jsCtx* operator->() = delete;
  [[nodiscard]] jsCtx* get() const { return context_; }

 private:
  natsConnection* connection_ = nullptr;
  jsCtx* context_ = nullptr;
};

class nats_under_test final : public broker_under_test {
 public:
  nats_under_test() {
    const jetstream server(server_.address());
    jsStreamConfig stream;
    jsStreamConfig_Init(&stream);
    std::array<const char*, 1> subjects{"orders.>"};
    stream.Name = "ORDERS";
    stream.Subjects = subjects.data();
    stream.SubjectsLen = subjects.size();
    stream.Storage = js_FileStorage;
    require(js_AddStream(nullptr, server.get(), &stream, nullptr, nullptr), "add a stream");
  }
  std::string relay_url() const override {
    return "nats://" + server_.address() + "/orders.{type}";
  }
  void kill() override { server_.kill9(); }
  void start() override { server_.start(); }
  void pause() override { server_.pause(); }
  void resume() override { server_.resume(); }

  std::vector<broker_message_read> read_all() override {
    const jetstream server(server_.address());
    jsStreamInfo* stream = nullptr;
    require(js_GetStreamInfo(&stream, server.get(), "ORDERS", nullptr, nullptr), "stream info");
    const auto count = stream->State.Msgs;
    jsStreamInfo_Destroy(stream);
    jsSubOptions options;
    jsSubOptions_Init(&options);
    options.Ordered = true;
    natsSubscription* subscription = nullptr;
    require(js_SubscribeSync(&subscription, server.get(), "orders.>", nullptr, &options, nullptr),
            "subscribe");
    std::vector<broker_message_read> messages;
    while (messages.size() < count) {
      natsMsg* message = nullptr;
      require(natsSubscription_NextMsg(&message, subscription, 60'000), "next message");
      messages.push_back(message_of(message));
      natsMsg_Destroy(message);
    }
    natsSubscription_Destroy(subscription);
    return messages;
  }

 private:
  static broker_message_read message_of(natsMsg* message) {
    broker_message_read result{.body = {natsMsg_GetData(message),
                                        static_cast<std::size_t>(natsMsg_GetDataLength(message))},
                               .destination = natsMsg_GetSubject(message)};
    const char** keys = nullptr;
    int count = 0;
    require(natsMsgHeader_Keys(message, &keys, &count), "headers");
    for (int i = 0; i < count; ++i) {
      const char* value = nullptr;
      require(natsMsgHeader_Get(message, keys[i], &value), "header");
      result.headers[keys[i]] = value;
    }
    std::free(keys);  // NOLINT(bugprone-multi-level-implicit-pointer-conversion)
    result.id = result.headers["Nats-Msg-Id"];
    result.key = result.headers["ce-partitionkey"];
    return result;
  }

  nats_server server_{};
};

}  // namespace

std::unique_ptr<broker_under_test> make_nats_under_test() {
  return std::make_unique<nats_under_test>();
}

}  // namespace holdfast::test
