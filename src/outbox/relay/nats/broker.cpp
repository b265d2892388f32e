#include "outbox/relay/nats/broker.hpp"

#include <holdfast/error.hpp>

#include "outbox/relay/nats/session.hpp"

#include <algorithm>

namespace HOLDFAST_NAMESPACE::detail::outbox::nats {

nats_broker::nats_broker(const std::string& url, const relay::broker_options& options)
    : url_(parse_broker_url(url,
                            {.scheme = "nats",
                             .tls_scheme = "tls",
                             .port = 4222,
                             .tls_port = 4222,
                             .parameters = {"creds"}},
                            options)),
      options_(options) {}

bool nats_broker::is_reserved_header(std::string_view normalized) const noexcept {
  // JetStream acts on its headers: `Nats-Rollup` deletes other messages.
  return normalized.starts_with("nats-");
}

std::string nats_broker::problem_of(const broker_message& message) const {
  const auto& subject = message.destination;
  const bool empty_token = subject.empty() || subject.front() == '.' || subject.back() == '.' ||
                           subject.find("..") != std::string::npos;
  const bool bad_character = std::ranges::any_of(
      subject, [](unsigned char c) { return c <= ' ' || c == '*' || c == '>' || c == 0x7F; });
  if (empty_token || bad_character)
    return "the subject of the event is not valid for NATS: it has a space, *, > or an empty part";
  if (subject.starts_with('$') || subject.starts_with("_INBOX."))
    return "the subject of the event is reserved by NATS: it begins with $ or _INBOX";
  return {};
}

std::unique_ptr<broker_session> nats_broker::connect(std::chrono::milliseconds timeout) const {
  std::string problem;
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  for (const auto& endpoint : url_.endpoints) {
    try {
      return std::make_unique<nats_session>(endpoint, url_, options_, deadline);
    } catch (const error& failure) {
      problem = failure.message();
    }
  }
  throw error(errc::unavailable, problem, {.transient = true});
}

}  // namespace HOLDFAST_NAMESPACE::detail::outbox::nats
