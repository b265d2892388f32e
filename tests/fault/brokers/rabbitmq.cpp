#include "fault/brokers/rabbitmq.hpp"

#include "fault/brokers/broker_under_test.hpp"
#include "support/rabbitmq_server.hpp"

#include <amqp_framing.h>
#include <amqp_tcp_socket.h>
#include <sys/time.h>

#include <stdexcept>

namespace holdfast::test {
namespace {

constexpr amqp_channel_t channel = 1;

std::string text_of_amqp(amqp_bytes_t bytes) {
  return {static_cast<const char*>(bytes.bytes), bytes.len};
}

void require(const amqp_connection& connection, const std::string& action) {
  if (amqp_get_rpc_reply(connection.get()).reply_type != AMQP_RESPONSE_NORMAL)
    throw std::runtime_error("RabbitMQ: " + action + " failed");
}

class rabbitmq_under_test final : public broker_under_test {
 public:
  rabbitmq_under_test() { declare_queue(open_amqp(server_.address()), "orders", "orders.#"); }
  std::string relay_url() const override {
    return "amqp://guest:guest@" + server_.address() +
           "/?exchange=events&routing_key=orders.{type}";
  }
  void kill() override { server_.kill9(); }
  void start() override { server_.start(); }
  void pause() override { server_.pause(); }
  void resume() override { server_.resume(); }

  std::vector<broker_message_read> read_all() override {
    const auto connection = open_amqp(server_.address());
    // Without acknowledgements: the messages stay in the queue when this connection ends.
    const auto* queue =
        amqp_queue_declare(connection.get(), channel, amqp_text("orders"), 1, 1, 0, 0, {});
    require(connection, "queue.declare");
    const auto count = queue->message_count;
    amqp_basic_consume(connection.get(), channel, amqp_text("orders"), amqp_empty_bytes, 0, 0, 0,
                       {});
    require(connection, "basic.consume");
    std::vector<broker_message_read> messages;
    while (messages.size() < count) {
      amqp_maybe_release_buffers(connection.get());
      amqp_envelope_t envelope;
      const timeval limit{.tv_sec = 60, .tv_usec = 0};
      if (amqp_consume_message(connection.get(), &envelope, &limit, 0).reply_type !=
          AMQP_RESPONSE_NORMAL)
        throw std::runtime_error("RabbitMQ: a message is missing in the queue");
      messages.push_back(message_of(envelope));
      amqp_destroy_envelope(&envelope);
    }
    return messages;
  }

 private:
  static broker_message_read message_of(const amqp_envelope_t& envelope) {
    const auto& properties = envelope.message.properties;
    broker_message_read message{.id = text_of_amqp(properties.message_id),
                                .body = text_of_amqp(envelope.message.body),
                                .destination = text_of_amqp(envelope.routing_key)};
    for (int i = 0; i < properties.headers.num_entries; ++i) {
      const auto& header = properties.headers.entries[i];
      message.headers[text_of_amqp(header.key)] = text_of_amqp(header.value.value.bytes);
    }
    message.headers["content-type"] = text_of_amqp(properties.content_type);
    message.headers["type"] = text_of_amqp(properties.type);
    message.headers["delivery-mode"] = std::to_string(properties.delivery_mode);
    message.key = message.headers["cloudEvents:partitionkey"];
    return message;
  }

  rabbitmq_server server_{};
};

}  // namespace

amqp_bytes_t amqp_text(const std::string& text) { return amqp_cstring_bytes(text.c_str()); }

amqp_connection open_amqp(const std::string& address) {
  amqp_connection connection(amqp_new_connection());
  auto* socket = amqp_tcp_socket_new(connection.get());
  const auto colon = address.find(':');
  if (amqp_socket_open(socket, address.substr(0, colon).c_str(),
                       std::stoi(address.substr(colon + 1))) != AMQP_STATUS_OK)
    throw std::runtime_error("RabbitMQ: cannot connect");
  if (amqp_login(connection.get(), "/", 0, 131'072, 0, AMQP_SASL_METHOD_PLAIN, "guest", "guest")
          .reply_type != AMQP_RESPONSE_NORMAL)
    throw std::runtime_error("RabbitMQ: cannot log in");
  amqp_channel_open(connection.get(), channel);
  require(connection, "channel.open");
  return connection;
}

void declare_queue(const amqp_connection& connection, const std::string& queue,
                   const std::string& binding, amqp_table_t arguments) {
  amqp_exchange_declare(connection.get(), channel, amqp_text("events"), amqp_text("topic"), 0, 1, 0,
                        0, {});
  require(connection, "exchange.declare");
  amqp_queue_declare(connection.get(), channel, amqp_text(queue), 0, 1, 0, 0, arguments);
  require(connection, "queue.declare");
  amqp_queue_bind(connection.get(), channel, amqp_text(queue), amqp_text("events"),
                  amqp_text(binding), {});
  require(connection, "queue.bind");
}

std::unique_ptr<broker_under_test> make_rabbitmq_under_test() {
  return std::make_unique<rabbitmq_under_test>();
}

}  // namespace holdfast::test
