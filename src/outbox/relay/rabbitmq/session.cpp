#include "outbox/relay/rabbitmq/session.hpp"

#include <holdfast/error.hpp>

#include "base/deadline.hpp"
#include "outbox/relay/server_text.hpp"

#include <amqp_framing.h>
#include <amqp_ssl_socket.h>
#include <amqp_tcp_socket.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <algorithm>
#include <array>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::outbox::rabbitmq {

namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr amqp_channel_t channel = 1;
constexpr int largest_frame = 131'072;
constexpr std::size_t longest_type = 255;
constexpr milliseconds longest_blocked_wait{1000};

amqp_bytes_t bytes_of(std::string_view text) {
  // librabbitmq does not write to what it sends.
  return {.len = text.size(), .bytes = const_cast<char*>(text.data())};  // NOLINT
}

std::string text_of(amqp_bytes_t bytes) {
  return {static_cast<const char*>(bytes.bytes), bytes.len};
}

std::string printable_reason(amqp_bytes_t bytes) {
  return outbox::printable_reason(text_of(bytes));
}

timeval remaining_time(steady_clock::time_point deadline) {
  const auto micros = std::chrono::duration_cast<std::chrono::microseconds>(
      time_until(deadline, steady_clock::now()));
  return {.tv_sec = micros.count() / 1'000'000, .tv_usec = micros.count() % 1'000'000};
}

[[noreturn]] void fail_to_connect(const std::string& reason) {
  throw error(errc::unavailable, reason, {.transient = true});
}

std::string reason_of(const amqp_method_t& method) {
  if (method.id == AMQP_CONNECTION_CLOSE_METHOD) {
    const auto* close = static_cast<const amqp_connection_close_t*>(method.decoded);
    return "RabbitMQ closed the connection: " + printable_reason(close->reply_text);
  }
  if (method.id == AMQP_CHANNEL_CLOSE_METHOD) {
    const auto* close = static_cast<const amqp_channel_close_t*>(method.decoded);
    return "RabbitMQ closed the channel: " + printable_reason(close->reply_text);
  }
  return "RabbitMQ sent an unexpected method";
}

/// Throws if the reply is a failure.
void check_reply(const amqp_rpc_reply_t& reply, const std::string& action) {
  switch (reply.reply_type) {
    case AMQP_RESPONSE_NORMAL:
      return;
    case AMQP_RESPONSE_SERVER_EXCEPTION:
      fail_to_connect(action + ": " + reason_of(reply.reply));
    case AMQP_RESPONSE_LIBRARY_EXCEPTION:
      fail_to_connect(action + ": " + amqp_error_string2(reply.library_error));
    case AMQP_RESPONSE_NONE:
      break;
  }
  fail_to_connect(action + ": no reply");
}

amqp_table_entry_t text_entry(std::string_view name, std::string_view value) {
  amqp_table_entry_t entry{};
  entry.key = bytes_of(name);
  entry.value.kind = AMQP_FIELD_KIND_UTF8;
  entry.value.value.bytes = bytes_of(value);
  return entry;
}

}  // namespace

rabbitmq_session::rabbitmq_session(const broker_endpoint& endpoint, const broker_url& url,
                                   const relay::broker_options& options, steady_time deadline)
    : connection_(amqp_new_connection()), exchange_(url.parameter("exchange")) {
  if (!connection_) fail_to_connect("out of memory");
  open_socket(endpoint, url.tls, options, deadline);
  const auto remaining = remaining_time(deadline);
  (void)amqp_set_handshake_timeout(connection_.get(), &remaining);
  (void)amqp_set_rpc_timeout(connection_.get(), &remaining);
  log_in(url);
  open_channel();
  // A server that stops reading must not block a write for longer than a caller waits.
  const auto limit = static_cast<unsigned>(
      std::clamp<milliseconds::rep>(options.timeout.count(), 1'000, 3'600'000));
  (void)::setsockopt(amqp_get_sockfd(connection_.get()), IPPROTO_TCP, TCP_USER_TIMEOUT, &limit,
                     sizeof limit);
}

void rabbitmq_session::open_socket(const broker_endpoint& endpoint, bool tls,
                                   const relay::broker_options& options, steady_time deadline) {
  amqp_socket_t* socket =
      tls ? amqp_ssl_socket_new(connection_.get()) : amqp_tcp_socket_new(connection_.get());
  if (socket == nullptr) fail_to_connect("out of memory");
  if (tls) {
    amqp_ssl_socket_set_verify_peer(socket, options.tls_verify ? 1 : 0);
    amqp_ssl_socket_set_verify_hostname(socket, options.tls_verify ? 1 : 0);
    // /etc/ssl/certs/ca-certificates.crt is the bundle of Debian.
    const std::string ca =
        options.tls_ca.empty() ? "/etc/ssl/certs/ca-certificates.crt" : options.tls_ca;
    if (options.tls_verify && amqp_ssl_socket_set_cacert(socket, ca.c_str()) != AMQP_STATUS_OK)
      fail_to_connect("cannot read the certificates of " + ca + "; set tls_ca to a PEM file");
    if (!options.tls_certificate.empty() &&
        amqp_ssl_socket_set_key(socket, options.tls_certificate.c_str(), options.tls_key.c_str()) !=
            AMQP_STATUS_OK)
      fail_to_connect("cannot read the client certificate or its key; check tls_certificate");
  }
  const auto remaining = remaining_time(deadline);
  const int status = amqp_socket_open_noblock(socket, endpoint.host.c_str(),
                                              static_cast<int>(endpoint.port), &remaining);
  if (status != AMQP_STATUS_OK) fail_to_connect(amqp_error_string2(status));
}

void rabbitmq_session::log_in(const broker_url& url) {
  // With this capability RabbitMQ tells when it does not read messages because it is short of
  // memory or disk. Otherwise it would look like a server that hangs.
  amqp_table_entry_t blocked{};
  blocked.key = bytes_of("connection.blocked");
  blocked.value.kind = AMQP_FIELD_KIND_BOOLEAN;
  blocked.value.value.boolean = 1;
  amqp_table_entry_t capabilities{};
  capabilities.key = bytes_of("capabilities");
  capabilities.value.kind = AMQP_FIELD_KIND_TABLE;
  capabilities.value.value.table = {.num_entries = 1, .entries = &blocked};
  const amqp_table_t properties{.num_entries = 1, .entries = &capabilities};
  // An empty path is the default vhost; `/` is written as %2F.
  const std::string vhost = url.path.empty() ? "/" : url.path;
  const std::string user = url.user.value_or("guest");
  const std::string password = url.password.value_or("guest");
  check_reply(amqp_login_with_properties(connection_.get(), vhost.c_str(), channel, largest_frame,
                                         0, &properties, AMQP_SASL_METHOD_PLAIN, user.c_str(),
                                         password.c_str()),
              "login failed");
}

void rabbitmq_session::open_channel() {
  (void)amqp_channel_open(connection_.get(), channel);
  check_reply(amqp_get_rpc_reply(connection_.get()), "cannot open a channel");
  if (!exchange_.empty()) {
    // Only checks that it exists: otherwise the first message would end the channel.
    (void)amqp_exchange_declare(connection_.get(), channel, bytes_of(exchange_), bytes_of("direct"),
                                1, 0, 0, 0, amqp_empty_table);
    check_reply(amqp_get_rpc_reply(connection_.get()), "cannot use the exchange " + exchange_);
  }
  (void)amqp_confirm_select(connection_.get(), channel);
  check_reply(amqp_get_rpc_reply(connection_.get()), "cannot use publisher confirms");
}

void rabbitmq_session::end(const std::string& reason) {
  if (!ended_) problem_ = reason;
  ended_ = true;
}

bool rabbitmq_session::usable() {
  exchange_state nothing{.messages = {}, .confirmations = {}, .first_tag = next_tag_};
  while (!ended_ && read_frame(nothing, steady_time::min())) {
  }
  return !ended_;
}

bool rabbitmq_session::send(const broker_message& message, steady_time deadline) {
  pollfd socket{.fd = amqp_get_sockfd(connection_.get()), .events = POLLOUT, .revents = 0};
  const auto limit = std::chrono::ceil<milliseconds>(time_until(deadline, steady_clock::now()));
  if (::poll(&socket, 1, static_cast<int>(std::min<milliseconds::rep>(limit.count(), 1'000'000))) !=
      1) {
    end("RabbitMQ does not read messages");
    return false;
  }
  const auto& event = *message.event;
  std::vector<amqp_table_entry_t> headers;
  headers.reserve(message.headers.size());
  for (const auto& [name, value] : message.headers) headers.push_back(text_entry(name, value));
  amqp_basic_properties_t properties{};
  properties._flags = AMQP_BASIC_DELIVERY_MODE_FLAG | AMQP_BASIC_MESSAGE_ID_FLAG |
                      AMQP_BASIC_TIMESTAMP_FLAG | AMQP_BASIC_HEADERS_FLAG;
  properties.delivery_mode = AMQP_DELIVERY_PERSISTENT;
  properties.message_id = bytes_of(event.id);
  properties.timestamp = static_cast<std::uint64_t>(message.created_at.count() / 1000);
  properties.headers = {.num_entries = static_cast<int>(headers.size()), .entries = headers.data()};
  if (!event.content_type.empty()) {
    properties._flags |= AMQP_BASIC_CONTENT_TYPE_FLAG;
    properties.content_type = bytes_of(event.content_type);
  }
  if (event.type.size() <= longest_type) {
    properties._flags |= AMQP_BASIC_TYPE_FLAG;
    properties.type = bytes_of(event.type);
  }
  constexpr amqp_boolean_t mandatory = 1;
  constexpr amqp_boolean_t immediate = 0;
  const int status = amqp_basic_publish(connection_.get(), channel, bytes_of(exchange_),
                                        bytes_of(message.destination), mandatory, immediate,
                                        &properties, bytes_of(event.payload));
  if (status != AMQP_STATUS_OK) end(amqp_error_string2(status));
  return status == AMQP_STATUS_OK;
}

void rabbitmq_session::send_all(exchange_state& state, steady_time deadline) {
  for (const auto& message : state.messages) {
    auto& answer = state.confirmations[state.sent];
    // The message of a failed write may have been complete.
    answer = {.status = confirmation::kind::disconnected, .reason = "not confirmed"};
    if (!send(message, deadline)) return;
    ++next_tag_;
    ++state.sent;
    ++state.unanswered;
  }
}

void rabbitmq_session::publish(std::span<const broker_message> messages,
                               std::span<confirmation> confirmations, steady_time deadline) {
  if (!usable() || !wait_until_unblocked(deadline)) {
    for (auto& answer : confirmations) answer.reason = problem_;
    return;
  }
  exchange_state state{
      .messages = messages, .confirmations = confirmations, .first_tag = next_tag_};
  send_all(state, deadline);
  while (state.unanswered > 0 && !ended_ && read_frame(state, deadline)) {
  }
  if (state.unanswered == 0 && !ended_) return;
  const bool timed_out = !ended_;
  // A blocked connection is kept: RabbitMQ reads what was sent when it is unblocked, and each new
  // connection would send the same messages once more. Late confirmations are told by their tags.
  if (timed_out && !blocked_) end("RabbitMQ did not confirm in time");
  for (auto& answer : confirmations) {
    if (answer.status != confirmation::kind::disconnected) continue;
    if (timed_out) answer.status = confirmation::kind::unanswered;
    answer.reason = problem_;
  }
}

bool rabbitmq_session::wait_until_unblocked(steady_time deadline) {
  // Events that are handed back at once would be claimed again at once.
  exchange_state nothing{.messages = {}, .confirmations = {}, .first_tag = next_tag_};
  const auto limit = std::min(deadline, moment_after(steady_clock::now(), longest_blocked_wait));
  while (blocked_ && !ended_ && read_frame(nothing, limit)) {
  }
  return !blocked_ && !ended_;
}

bool rabbitmq_session::read_frame(exchange_state& state, steady_time deadline) {
  amqp_frame_t frame{};
  const auto remaining = remaining_time(deadline);
  const int status = amqp_simple_wait_frame_noblock(connection_.get(), &frame, &remaining);
  if (status == AMQP_STATUS_TIMEOUT) return false;
  if (status != AMQP_STATUS_OK) {
    end(amqp_error_string2(status));
    return false;
  }
  // The frames after basic.return have the message; its body is not needed.
  if (frame.frame_type == AMQP_FRAME_HEADER)
    on_returned(state,
                *static_cast<const amqp_basic_properties_t*>(frame.payload.properties.decoded));
  if (frame.frame_type == AMQP_FRAME_METHOD) on_method(state, frame.payload.method);
  amqp_maybe_release_buffers(connection_.get());
  return !ended_;
}

void rabbitmq_session::on_method(exchange_state& state, const amqp_method_t& method) {
  switch (method.id) {
    case AMQP_BASIC_ACK_METHOD: {
      const auto* ack = static_cast<const amqp_basic_ack_t*>(method.decoded);
      return on_confirmed(state, ack->delivery_tag, ack->multiple != 0, true);
    }
    case AMQP_BASIC_NACK_METHOD: {
      const auto* nack = static_cast<const amqp_basic_nack_t*>(method.decoded);
      return on_confirmed(state, nack->delivery_tag, nack->multiple != 0, false);
    }
    case AMQP_BASIC_RETURN_METHOD: {
      const auto* returned = static_cast<const amqp_basic_return_t*>(method.decoded);
      return_reason_ = printable_reason(returned->reply_text);
      return;
    }
    case AMQP_CONNECTION_BLOCKED_METHOD: {
      const auto* blocked = static_cast<const amqp_connection_blocked_t*>(method.decoded);
      blocked_ = true;
      problem_ = "RabbitMQ does not accept messages now: " + printable_reason(blocked->reason);
      return;
    }
    case AMQP_CONNECTION_UNBLOCKED_METHOD:
      blocked_ = false;
      problem_.clear();
      return;
    default:
      return end(reason_of(method));
  }
}

void rabbitmq_session::on_confirmed(exchange_state& state, std::uint64_t tag, bool multiple,
                                    bool accepted) {
  if (tag < state.first_tag) return;
  const auto last = static_cast<std::size_t>(tag - state.first_tag);
  if (last >= state.sent) return;
  for (std::size_t i = multiple ? 0 : last; i <= last; ++i) {
    auto& answer = state.confirmations[i];
    if (answer.status == confirmation::kind::disconnected) {
      if (accepted) answer = {.status = confirmation::kind::confirmed, .reason = {}};
      else
        answer = {.status = confirmation::kind::unavailable,
                  .reason = "RabbitMQ refused the message; the queue may be full"};
      --state.unanswered;
    }
  }
}

void rabbitmq_session::on_returned(exchange_state& state,
                                   const amqp_basic_properties_t& properties) {
  const auto id = text_of(properties.message_id);
  for (std::size_t i = 0; i < state.sent; ++i) {
    auto& answer = state.confirmations[i];
    if (answer.status != confirmation::kind::disconnected || state.messages[i].event->id != id)
      continue;
    // It is confirmed, too, but no queue has it.
    answer = {.status = confirmation::kind::refused,
              .reason = "no queue gets messages with this routing key (" + return_reason_ +
                        "); bind a queue"};
    --state.unanswered;
    return;
  }
}

}  // namespace HOLDFAST_NAMESPACE::detail::outbox::rabbitmq
