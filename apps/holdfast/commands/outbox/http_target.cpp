// Posts events with the HTTP client of `serve`. Only the status and Retry-After of an answer are
// used, so that its content is limited to 64 KiB, and nothing is decompressed.

#include "commands/outbox/http_target.hpp"

#include <holdfast/error.hpp>
#include <holdfast/outbox/relay.hpp>

#include "base/url.hpp"
#include "http/syntax.hpp"
#include "serve/http_client.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

namespace holdfast::cli {

namespace {

using detail::serve::client_response;
using detail::serve::exchange_status;

/// Answers of real servers have larger heads than requests should have.
constexpr detail::http::limits answer_limits{.line = std::size_t{8} << 10U,
                                             .field_count = 1'000,
                                             .head = std::size_t{64} << 10U,
                                             .body = std::size_t{64} << 10U};

bool has_control_character(std::string_view text) {
  return std::ranges::any_of(text, [](unsigned char c) { return c < 0x20 || c == 0x7F; });
}

/// Path and parameters of a URL.
std::string target_of(const std::string& url) {
  const auto authority = url.find("//") + 2;
  const auto path = url.find_first_of("/?", authority);
  if (path == std::string::npos) return "/";
  // A fragment is not sent.
  const auto target = url.substr(path, url.find('#', path) - path);
  return target.front() == '?' ? '/' + target : target;
}

}  // namespace

struct http_target::state {
  state(const std::string& url, std::chrono::milliseconds limit)
      : path(target_of(url)), timeout(limit), client(url, {.limits = answer_limits}) {}

  std::string path;  ///< with its parameters
  std::chrono::milliseconds timeout;
  detail::serve::http_client client;

  /// The outcome of a request without a usable answer.
  [[nodiscard]] outcome failed(const client_response& response) const {
    const auto& server = client.server();
    if (response.result == exchange_status::head_limit)
      return outcome::ambiguous("the header of the answer from " + server + " is too long");
    std::string reason = response.result == exchange_status::late
                             ? "not complete within " + std::to_string(timeout.count()) + " ms"
                             : response.reason;
    if (response.certificate_refused)
      reason =
          "its certificate is not accepted; SSL_CERT_FILE names a file with the certificates "
          "to trust";
    return response.sent ? outcome::ambiguous("no answer from " + server + ": " + reason)
                         : outcome::retry("cannot reach " + server + ": " + reason);
  }
};

http_target::http_target(const std::string& text, std::chrono::milliseconds timeout) {
  const detail::url parsed = detail::parse_url(text);
  if ((parsed.scheme != "http" && parsed.scheme != "https") || parsed.host.empty())
    throw error(errc::invalid_argument, "--http is " + detail::without_password(text) +
                                            "; use http://host/path or https://host/path");
  const auto authority = text.find("//") + 2;
  if (text.substr(0, text.find_first_of("/?#", authority)).ends_with(':'))
    throw error(errc::invalid_argument, "--http is " + detail::without_password(text) +
                                            ", which has an empty port; remove the colon, or "
                                            "write host:port");
  if (parsed.user)
    throw error(errc::invalid_argument,
                "credentials in the URL are not sent; remove them, and let a proxy add them");
  state_ = std::make_unique<state>(text, timeout);
  if (!std::ranges::all_of(state_->path, [](char c) { return c > ' ' && c < 0x7F; }))
    throw error(errc::invalid_argument,
                "the URL of --http has a space or a character outside ASCII; percent-encode it");
}

http_target::~http_target() = default;

outcome http_target::post(const std::map<std::string, std::string>& headers,
                          const std::string& body, const std::string& content_type) {
  if (has_control_character(content_type))
    return outcome::permanent(
        "the content type has a control character, which could inject a header");
  detail::serve::client_request request{
      .method = "POST", .target = state_->path, .fields = {}, .body = body};
  try {
    for (const auto& [name, value] : headers) {
      // Answers are not decompressed. A name that HTTP does not allow is dropped.
      if (!detail::http::equals_ignoring_case(name, "accept-encoding") &&
          detail::http::is_token(name))
        request.fields.add(name, detail::http::trim(value));
    }
    request.fields.add("Accept-Encoding", "identity");
    if (!content_type.empty()) request.fields.add("Content-Type", detail::http::trim(content_type));
    const auto response =
        state_->client.send(request, std::chrono::steady_clock::now() + state_->timeout);
    // The status counts even if its content is too long to be read.
    if (response.result == exchange_status::complete ||
        response.result == exchange_status::body_limit)
      return relay::outcome_of_status(
          response.status, std::string(response.fields.find("retry-after").value_or("")));
    return state_->failed(response);
  } catch (const error& problem) {
    if (problem.code() != errc::invalid_argument) throw;
    return outcome::permanent("the event cannot be sent: " + problem.message());
  }
}

}  // namespace holdfast::cli
