#include "outbox/relay/kafka/session.hpp"

#include <holdfast/error.hpp>

#include "base/deadline.hpp"
#include "outbox/relay/server_text.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace HOLDFAST_NAMESPACE::detail::outbox::kafka {

namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

struct destroy_settings {
  void operator()(rd_kafka_conf_t* settings) const { rd_kafka_conf_destroy(settings); }
};
using settings_handle = std::unique_ptr<rd_kafka_conf_t, destroy_settings>;

void set(rd_kafka_conf_t* settings, const char* name, const std::string& value) {
  std::array<char, 256> problem{};
  if (rd_kafka_conf_set(settings, name, value.c_str(), problem.data(), problem.size()) ==
      RD_KAFKA_CONF_OK)
    return;
  // The message of librdkafka may have the value, which may be a password.
  throw error(errc::invalid_argument, std::string("librdkafka does not accept the value of ") +
                                          name + "; correct the URL or the options of the relay");
}

/// librdkafka prints to standard error by itself otherwise.
void ignore_log(const rd_kafka_t* /*producer*/, int /*level*/, const char* /*facility*/,
                const char* /*text*/) {}

settings_handle make_settings(const broker_url& url, const relay::broker_options& options) {
  settings_handle owner(rd_kafka_conf_new());
  auto* settings = owner.get();
  std::string servers;
  for (const auto& endpoint : url.endpoints)
    servers.append(servers.empty() ? "" : ",").append(endpoint.text());
  set(settings, "bootstrap.servers", servers);
  set(settings, "client.id", "holdfast-outbox");
  set(settings, "enable.idempotence", "true");
  set(settings, "acks", "all");
  // A message that fails must not be overtaken by the next one of its key.
  set(settings, "enable.gapless.guarantee", "true");
  // publish() has its own deadline. After that it ends the producer, and with it all messages.
  set(settings, "message.timeout.ms", "0");
  set(settings, "linger.ms", "1");
  // The broker decides about the size. 16 MiB is the largest payload of an outbox.
  set(settings, "message.max.bytes", "17825792");
  // As the Java client: the same key is in the same partition for all producers.
  set(settings, "partitioner", "murmur2_random");
  const auto unknown_topic =
      std::clamp<milliseconds::rep>(options.timeout.count() / 2, 100, 10'000);
  set(settings, "topic.metadata.propagation.max.ms", std::to_string(unknown_topic));
  const bool login = url.user.has_value();
  set(settings, "security.protocol",
      url.tls ? (login ? "sasl_ssl" : "ssl") : (login ? "sasl_plaintext" : "plaintext"));
  if (login) {
    set(settings, "sasl.mechanism", url.parameter("sasl", "PLAIN"));
    set(settings, "sasl.username", *url.user);
    set(settings, "sasl.password", url.password.value_or(""));
  }
  if (!url.tls) return owner;
  if (!options.tls_ca.empty()) set(settings, "ssl.ca.location", options.tls_ca);
  if (!options.tls_certificate.empty()) {
    set(settings, "ssl.certificate.location", options.tls_certificate);
    set(settings, "ssl.key.location", options.tls_key);
  }
  set(settings, "enable.ssl.certificate.verification", options.tls_verify ? "true" : "false");
  set(settings, "ssl.endpoint.identification.algorithm", options.tls_verify ? "https" : "none");
  return owner;
}

confirmation confirmation_of(rd_kafka_resp_err_t code) {
  const std::string reason = rd_kafka_err2str(code);
  switch (code) {
    case RD_KAFKA_RESP_ERR_NO_ERROR:
      return {confirmation::kind::confirmed, {}};
    case RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE:
    case RD_KAFKA_RESP_ERR_INVALID_RECORD:
      return {confirmation::kind::rejected, reason};
    case RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART:
    case RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC:
    case RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION:
    case RD_KAFKA_RESP_ERR_TOPIC_EXCEPTION:
    case RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED:
      return {confirmation::kind::refused, reason + "; create the topic or allow writing to it"};
    case RD_KAFKA_RESP_ERR__PURGE_QUEUE:
    case RD_KAFKA_RESP_ERR__PURGE_INFLIGHT:
      return {confirmation::kind::unanswered, "not confirmed in time"};
    default:
      return {confirmation::kind::unavailable, reason};
  }
}

}  // namespace

void check_settings(const broker_url& url, const relay::broker_options& options) {
  (void)make_settings(url, options);
}

void kafka_session::destroy_producer::operator()(rd_kafka_t* producer) const {
  rd_kafka_destroy(producer);
}

kafka_session::kafka_session(const broker_url& url, const relay::broker_options& options,
                             milliseconds connect_timeout) {
  auto settings = make_settings(url, options);
  rd_kafka_conf_set_opaque(settings.get(), this);
  rd_kafka_conf_set_dr_msg_cb(settings.get(), on_delivered);
  rd_kafka_conf_set_error_cb(settings.get(), on_error);
  rd_kafka_conf_set_log_cb(settings.get(), ignore_log);
  std::array<char, 256> problem{};
  producer_.reset(rd_kafka_new(RD_KAFKA_PRODUCER, settings.get(), problem.data(), problem.size()));
  if (!producer_)
    throw error(errc::unavailable, "cannot create a producer: " + printable_reason(problem.data()),
                {.transient = true});
  // NOLINTNEXTLINE(bugprone-unused-return-value): it belongs to the producer now
  (void)settings.release();
  const rd_kafka_metadata_t* metadata = nullptr;
  const auto limit =
      static_cast<int>(std::min<milliseconds::rep>(connect_timeout.count(), 600'000));
  const auto status = rd_kafka_metadata(producer_.get(), 0, nullptr, &metadata, limit);
  if (status == RD_KAFKA_RESP_ERR_NO_ERROR) {
    rd_kafka_metadata_destroy(metadata);
    return;
  }
  (void)rd_kafka_poll(producer_.get(), 0);  // calls on_error
  const auto detail = last_error();
  throw error(errc::unavailable, detail.empty() ? rd_kafka_err2str(status) : detail,
              {.transient = true});
}

kafka_session::~kafka_session() {
  if (!producer_) return;
  (void)rd_kafka_purge(producer_.get(), RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT);
}

void kafka_session::on_error(rd_kafka_t* /*producer*/, int /*code*/, const char* reason,
                             void* opaque) {
  auto* session = static_cast<kafka_session*>(opaque);
  const std::scoped_lock lock(session->mutex_);
  session->last_error_ = printable_reason(reason);
}

std::string kafka_session::last_error() {
  const std::scoped_lock lock(mutex_);
  return last_error_;
}

void kafka_session::on_delivered(rd_kafka_t* /*producer*/, const rd_kafka_message_t* message,
                                 void* opaque) {
  auto* session = static_cast<kafka_session*>(opaque);
  // Messages of an earlier call are gone: a producer with unanswered messages is not used again.
  auto* answer = static_cast<confirmation*>(message->_private);
  if (session->ended_ || answer == nullptr) return;
  *answer = confirmation_of(message->err);
  --session->unanswered_;
}

rd_kafka_resp_err_t kafka_session::send(const broker_message& message, confirmation& answer) {
  const auto& event = *message.event;
  rd_kafka_headers_t* headers = rd_kafka_headers_new(message.headers.size());
  for (const auto& [name, value] : message.headers)
    (void)rd_kafka_header_add(headers, name.data(), static_cast<ssize_t>(name.size()), value.data(),
                              static_cast<ssize_t>(value.size()));
  std::array<rd_kafka_vu_t, 7> fields{};
  fields[0].vtype = RD_KAFKA_VTYPE_TOPIC;
  fields[0].u.cstr = message.destination.c_str();
  fields[1].vtype = RD_KAFKA_VTYPE_MSGFLAGS;
  fields[1].u.i = RD_KAFKA_MSG_F_COPY;
  fields[2].vtype = RD_KAFKA_VTYPE_VALUE;
  // librdkafka copies the payload.
  fields[2].u.mem.ptr = const_cast<char*>(event.payload.data());  // NOLINT
  fields[2].u.mem.size = event.payload.size();
  fields[3].vtype = RD_KAFKA_VTYPE_KEY;
  // Without a key the partition is random.
  fields[3].u.mem.ptr =
      event.key.empty() ? nullptr : const_cast<char*>(event.key.data());  // NOLINT
  fields[3].u.mem.size = event.key.size();
  fields[4].vtype = RD_KAFKA_VTYPE_TIMESTAMP;
  fields[4].u.i64 = message.created_at.count();
  fields[5].vtype = RD_KAFKA_VTYPE_OPAQUE;
  fields[5].u.ptr = &answer;
  fields[6].vtype = RD_KAFKA_VTYPE_HEADERS;
  fields[6].u.headers = headers;
  rd_kafka_error_t* failure = rd_kafka_produceva(producer_.get(), fields.data(), fields.size());
  if (failure == nullptr) return RD_KAFKA_RESP_ERR_NO_ERROR;
  const auto code = rd_kafka_error_code(failure);
  rd_kafka_error_destroy(failure);
  rd_kafka_headers_destroy(headers);  // otherwise it belongs to the message
  return code;
}

void kafka_session::publish(std::span<const broker_message> messages,
                            std::span<confirmation> confirmations, steady_time deadline) {
  unanswered_ = 0;
  for (std::size_t i = 0; i < messages.size(); ++i) {
    auto& answer = confirmations[i];
    answer = {confirmation::kind::unanswered, "not confirmed in time"};
    const auto status = send(messages[i], answer);
    if (status == RD_KAFKA_RESP_ERR_NO_ERROR) {
      ++unanswered_;
      continue;
    }
    answer = confirmation_of(status);
    // Later messages of its key must not be published before it.
    break;
  }
  const auto wait_until = [this](steady_time limit) {
    while (unanswered_ > 0 && steady_clock::now() < limit) {
      const auto slice = std::min<milliseconds>(
          std::chrono::ceil<milliseconds>(time_until(limit, steady_clock::now())),
          milliseconds(100));
      (void)rd_kafka_poll(producer_.get(), static_cast<int>(slice.count()));
    }
  };
  wait_until(deadline);
  std::array<char, 256> problem{};
  const bool fatal = rd_kafka_fatal_error(producer_.get(), problem.data(), problem.size()) !=
                     RD_KAFKA_RESP_ERR_NO_ERROR;
  if (unanswered_ == 0 && !fatal) return;
  const auto detail = fatal ? printable_reason(problem.data()) : last_error();
  for (auto& answer : confirmations) {
    if (answer.status == confirmation::kind::unanswered && !detail.empty())
      answer.reason += ": " + detail;
  }
  // From here on the confirmations do not change: they end with this call.
  ended_ = true;
}

}  // namespace HOLDFAST_NAMESPACE::detail::outbox::kafka
