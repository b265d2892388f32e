#include "outbox/relay/nats/session.hpp"

#include <holdfast/error.hpp>

#include "base/deadline.hpp"
#include "outbox/relay/server_text.hpp"

#include <simdjson.h>

#include <algorithm>
#include <charconv>
#include <utility>

namespace HOLDFAST_NAMESPACE::detail::outbox::nats {

namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

/// JSStreamMessageExceedsMaximumErr.
constexpr std::int64_t message_too_large = 10054;
/// How long to wait for the answer of the JetStream API.
constexpr milliseconds api_timeout{2000};
/// How soon the end of a connection is noticed while answers are missing.
constexpr milliseconds status_interval{50};

milliseconds remaining_time(steady_clock::time_point deadline) {
  return std::chrono::ceil<milliseconds>(time_until(deadline, steady_clock::now()));
}

void check(natsStatus status, const std::string& action) {
  if (status == NATS_OK) return;
  throw error(errc::unavailable, action + natsStatus_GetText(status), {.transient = true});
}

/// What a publish acknowledgement says.
confirmation acknowledgement_of(std::string_view json) {
  const simdjson::padded_string text(json);
  simdjson::dom::parser parser;
  simdjson::dom::element root;
  if (parser.parse(text).get(root) != simdjson::SUCCESS)
    return {confirmation::kind::unavailable, "the answer of NATS is not JSON"};
  simdjson::dom::element problem;
  if (root["error"].get(problem) == simdjson::SUCCESS) {
    std::int64_t code = 0;
    std::string_view description;
    const bool too_large =
        problem["err_code"].get(code) == simdjson::SUCCESS && code == message_too_large;
    if (problem["description"].get(description) != simdjson::SUCCESS) description = "no reason";
    return {too_large ? confirmation::kind::rejected : confirmation::kind::unavailable,
            "the stream refused the message: " + printable_reason(description)};
  }
  std::string_view stream;
  if (root["stream"].get(stream) != simdjson::SUCCESS || stream.empty())
    // For example a service that listens on the subject.
    return {confirmation::kind::refused,
            "the answer is not the acknowledgement of a stream; create a stream with this subject"};
  return {confirmation::kind::confirmed, {}};
}

}  // namespace

nats_session::nats_session(const broker_endpoint& endpoint, const broker_url& url,
                           const relay::broker_options& options, steady_time deadline) {
  const auto settings = make_options(endpoint, url, options, deadline);
  natsConnection* connection = nullptr;
  check(natsConnection_Connect(&connection, settings.get()), "");
  connection_.reset(connection);
  natsInbox* inbox = nullptr;
  check(natsInbox_Create(&inbox), "cannot create an inbox: ");
  inbox_ = std::string(inbox) + ".";
  natsInbox_Destroy(inbox);
  subscribe();
}

void nats_session::subscribe() {
  // Owned by the subscription until libnats calls on_unsubscribed.
  auto owner = std::make_unique<std::shared_ptr<answer_queue>>(queue_);
  natsSubscription* subscription = nullptr;
  check(natsConnection_Subscribe(&subscription, connection_.get(), (inbox_ + "*").c_str(),
                                 on_answer, owner.get()),
        "cannot subscribe: ");
  subscription_.reset(subscription);
  auto* const closure = owner.release();
  check(natsSubscription_SetOnCompleteCB(subscription, on_unsubscribed, closure),
        "cannot subscribe: ");
}

void nats_session::on_answer(natsConnection* /*connection*/, natsSubscription* /*subscription*/,
                             natsMsg* answer, void* queue) {
  auto& target = **static_cast<std::shared_ptr<answer_queue>*>(queue);
  {
    const std::scoped_lock lock(target.mutex);
    target.answers.emplace_back(answer);
  }
  target.changed.notify_one();
}

void nats_session::on_unsubscribed(void* queue) {
  const std::unique_ptr<std::shared_ptr<answer_queue>> owner(
      static_cast<std::shared_ptr<answer_queue>*>(queue));
}

nats_session::message_handle nats_session::next_answer(steady_time deadline) {
  std::unique_lock lock(queue_->mutex);
  while (queue_->answers.empty()) {
    const auto now = steady_clock::now();
    if (now >= deadline || !usable()) return nullptr;
    queue_->changed.wait_until(lock, std::min(deadline, moment_after(now, status_interval)));
  }
  auto answer = std::move(queue_->answers.front());
  queue_->answers.pop_front();
  return answer;
}

nats_session::options_handle nats_session::make_options(const broker_endpoint& endpoint,
                                                        const broker_url& url,
                                                        const relay::broker_options& options,
                                                        steady_time deadline) {
  natsOptions* raw = nullptr;
  check(natsOptions_Create(&raw), "");
  options_handle settings(raw);
  check(natsOptions_SetURL(raw, ("nats://" + endpoint.text()).c_str()), "");
  check(natsOptions_SetName(raw, "holdfast outbox"), "");
  check(natsOptions_SetTimeout(raw, std::max<std::int64_t>(remaining_time(deadline).count(), 1)),
        "");
  // The relay connects again itself, so that it knows which messages were not acknowledged.
  check(natsOptions_SetAllowReconnect(raw, false), "");
  check(natsOptions_SetWriteDeadline(raw, options.timeout.count()), "");
  if (url.user && url.password)
    check(natsOptions_SetUserInfo(raw, url.user->c_str(), url.password->c_str()), "");
  // As in the URLs of other NATS clients, a single word is a token.
  else if (url.user || url.password)
    check(natsOptions_SetToken(raw, url.password.value_or(url.user.value_or("")).c_str()), "");
  if (const auto file = url.parameter("creds"); !file.empty())
    check(natsOptions_SetUserCredentialsFromFiles(raw, file.c_str(), nullptr),
          "cannot read the file of creds: ");
  if (!url.tls) return settings;
  check(natsOptions_SetSecure(raw, true), "");
  if (!options.tls_verify) check(natsOptions_SkipServerVerification(raw, true), "");
  check(natsOptions_SetExpectedHostname(raw, endpoint.host.c_str()), "");
  if (!options.tls_ca.empty())
    check(natsOptions_LoadCATrustedCertificates(raw, options.tls_ca.c_str()),
          "cannot read the certificates of tls_ca: ");
  if (!options.tls_certificate.empty())
    check(natsOptions_LoadCertificatesChain(raw, options.tls_certificate.c_str(),
                                            options.tls_key.c_str()),
          "cannot read the client certificate or its key: ");
  return settings;
}

bool nats_session::usable() {
  return !ended_ && natsConnection_Status(connection_.get()) == NATS_CONN_STATUS_CONNECTED;
}

natsStatus nats_session::send(const broker_message& message, std::uint64_t number) {
  const auto reply = inbox_ + std::to_string(number);
  const auto& payload = message.event->payload;
  natsMsg* raw = nullptr;
  auto status = natsMsg_Create(&raw, message.destination.c_str(), reply.c_str(), payload.data(),
                               static_cast<int>(payload.size()));
  const message_handle owner(raw);
  if (status == NATS_OK) status = natsMsgHeader_Set(raw, "Nats-Msg-Id", message.event->id.c_str());
  for (const auto& [name, value] : message.headers) {
    if (status == NATS_OK) status = natsMsgHeader_Set(raw, name.c_str(), value.c_str());
  }
  return status == NATS_OK ? natsConnection_PublishMsg(connection_.get(), raw) : status;
}

void nats_session::publish(std::span<const broker_message> messages,
                           std::span<confirmation> confirmations, steady_time deadline) {
  const std::uint64_t first = next_number_;
  jetstream_answers_.reset();
  std::size_t unanswered = 0;
  for (std::size_t i = 0; i < messages.size(); ++i) {
    const auto status = send(messages[i], next_number_++);
    if (status == NATS_OK) {
      confirmations[i] = {confirmation::kind::disconnected, "not acknowledged"};
      ++unanswered;
    } else if (status == NATS_MAX_PAYLOAD) {
      confirmations[i] = {confirmation::kind::rejected,
                          "the event is larger than the max_payload of the server"};
    } else {
      confirmations[i] = {confirmation::kind::disconnected, natsStatus_GetText(status)};
      ended_ = true;
      break;
    }
  }
  while (unanswered > 0) {
    const auto answer = next_answer(deadline);
    if (!answer) break;
    if (record(answer.get(), messages, confirmations, first)) --unanswered;
  }
  if (unanswered == 0) return;
  // What NATS acknowledges later is not counted: its number is not in the next call.
  const bool connected = usable();
  ended_ = true;
  for (auto& answer : confirmations) {
    if (answer.status == confirmation::kind::disconnected && connected)
      answer = {confirmation::kind::unanswered, "the stream did not acknowledge in time"};
    else if (answer.status == confirmation::kind::disconnected)
      answer.reason = "the connection ended before the acknowledgement";
  }
}

bool nats_session::record(natsMsg* answer, std::span<const broker_message> messages,
                          std::span<confirmation> confirmations, std::uint64_t first) {
  const std::string_view subject = natsMsg_GetSubject(answer);
  const auto digits = subject.substr(std::min(inbox_.size(), subject.size()));
  std::uint64_t number = 0;
  const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (parsed.ec != std::errc{} || number < first || number - first >= confirmations.size())
    return false;
  auto& target = confirmations[number - first];
  if (target.status != confirmation::kind::disconnected) return false;
  target = answer_of(answer, messages[number - first]);
  return true;
}

confirmation nats_session::answer_of(natsMsg* answer, const broker_message& message) {
  if (natsMsg_IsNoResponders(answer)) return unheard(message.destination);
  return acknowledgement_of(
      {natsMsg_GetData(answer), static_cast<std::size_t>(natsMsg_GetDataLength(answer))});
}

confirmation nats_session::unheard(const std::string& subject) {
  if (!jetstream_answers_) {
    natsMsg* raw = nullptr;
    const auto status = natsConnection_RequestString(&raw, connection_.get(), "$JS.API.INFO", "",
                                                     api_timeout.count());
    const message_handle answer(raw);
    jetstream_answers_ = status == NATS_OK;
  }
  if (*jetstream_answers_)
    return {confirmation::kind::refused,
            "no stream has the subject " + printable_reason(subject) + "; create one"};
  return {confirmation::kind::unavailable, "JetStream does not answer; enable it in the server"};
}

}  // namespace HOLDFAST_NAMESPACE::detail::outbox::nats
