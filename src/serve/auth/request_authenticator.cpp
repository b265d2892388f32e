#include "serve/auth/request_authenticator.hpp"

#include <holdfast/error.hpp>

#include "base/local_host.hpp"
#include "http/cookie.hpp"
#include "http/syntax.hpp"
#include "serve/auth/request_origin.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

namespace HOLDFAST_NAMESPACE::detail::serve {

namespace {

constexpr std::size_t max_user_size = 100;

void check_proxy(const trusted_proxy& proxy) {
  if (proxy.field.empty() || !std::ranges::all_of(proxy.field, http::is_token_character))
    throw error(errc::invalid_argument,
                "the name of the field is not valid; for example "
                "X-Forwarded-User",
                {.path = "serve.trust.header"});
  if (http::equals_ignoring_case(proxy.field, "Authorization") ||
      http::equals_ignoring_case(proxy.field, "Cookie"))
    throw error(errc::invalid_argument,
                "this field has another meaning; for example "
                "X-Forwarded-User",
                {.path = "serve.trust.header"});
  if (proxy.addresses.empty())
    throw error(errc::invalid_argument,
                "every client could choose its user; list the addresses of the proxy, or unix",
                {.path = "serve.trust.addresses"});
}

/// A user that can stand in a log line.
bool is_user_name(std::string_view name) noexcept {
  return !name.empty() && name.size() <= max_user_size &&
         std::ranges::all_of(name, [](char c) { return c > 0x20 && c < 0x7F; });
}

bool is_local_peer(std::string_view peer) noexcept {
  return peer == "unix" || (!peer.empty() && is_local_host(peer));
}

/// A proxy on this machine forwards requests of other machines.
bool came_through_proxy(const http::fields& fields) {
  static constexpr std::string_view names[] = {"Forwarded", "X-Forwarded-For", "X-Real-IP", "Via"};
  return std::ranges::any_of(names,
                             [&](std::string_view name) { return fields.find(name).has_value(); });
}

/// The user that the proxy names; nothing for a request of another client.
std::optional<std::string_view> proxy_user(const trusted_proxy& proxy,
                                           const server_request& request) {
  if (std::ranges::find(proxy.addresses, request.peer) == proxy.addresses.end())
    return std::nullopt;
  // Twice: the client sent one, and the proxy did not replace it. An empty text is refused, too.
  if (request.fields.count(proxy.field) > 1) return std::string_view();
  return request.fields.find(proxy.field);
}

/// A browser shows its certificate also for a page of another site, but says whose page it is.
bool is_of_foreign_page(const server_request& request, bool https) {
  const auto origin = origin_of(request, https);
  return origin == request_origin::foreign ||
         (origin == request_origin::navigation && !is_safe_method(request.method));
}

server_response refuse_foreign_page() {
  return problem_response(403, "the request comes from a page of another site");
}

server_response unauthorized(std::string_view detail) {
  auto response = problem_response(401, detail);
  response.fields.add("WWW-Authenticate", R"(Bearer realm="holdfast", error="invalid_token")");
  return response;
}

}  // namespace

std::string_view session_cookie_name(bool https) noexcept {
  return https ? "__Host-holdfast" : "holdfast";
}

server_response too_many_requests(std::chrono::nanoseconds pause, std::string_view detail) {
  auto response = problem_response(429, detail);
  const auto seconds = std::chrono::ceil<std::chrono::seconds>(pause).count();
  response.fields.add("Retry-After",
                      static_cast<std::uint64_t>(std::max<std::int64_t>(1, seconds)));
  return response;
}

server_response refuse_token(token_verdict verdict) {
  switch (verdict) {
    case token_verdict::expired:
      return unauthorized("the token has expired; ask an admin for a new one");
    case token_verdict::revoked:
      return unauthorized("the token was revoked; ask an admin for a new one");
    case token_verdict::unavailable: {
      auto response = problem_response(
          503,
          "the tokens cannot be read; the log of the server says why. Repeat the request "
          "later");
      response.fields.add("Retry-After", "1");
      return response;
    }
    default:
      return unauthorized("the token is not known; check that it was copied whole");
  }
}

request_authenticator::request_authenticator(request_rules rules, const token_table& tokens,
                                             const session_table& sessions,
                                             std::shared_ptr<const clock> clock)
    : rules_(std::move(rules)), tokens_(tokens), sessions_(sessions), clock_(std::move(clock)) {
  if (rules_.proxy) check_proxy(*rules_.proxy);
}

std::variant<caller, server_response> request_authenticator::identify(
    const server_request& request) {
  if (request.fields.count("Authorization") > 1)
    return problem_response(400, "the field Authorization occurs twice; send one token");
  if (const auto field = request.fields.find("Authorization")) return by_token(request, *field);
  if (rules_.proxy) {
    if (const auto user = proxy_user(*rules_.proxy, request))
      return by_proxy(*rules_.proxy, request, *user);
  }
  if (auto session = by_session(request)) return std::move(*session);
  if (auto client = by_certificate(request)) return std::move(*client);
  caller actor{.address = std::string(request.peer)};
  const bool open = is_open_to(request);
  // Without this, any page that is open in a browser here could use an open server, or sign the
  // browser in with a token of its own.
  if (is_of_foreign_page(request, rules_.https) && (open || !is_safe_method(request.method)))
    return refuse_foreign_page();
  if (open) {
    actor.name = "local";
    actor.role = role::admin;
    actor.identified = true;
  }
  return actor;
}

std::variant<caller, server_response> request_authenticator::by_token(
    const server_request& request, std::string_view field) const {
  constexpr std::string_view scheme = "Bearer ";
  if (!http::equals_ignoring_case(field.substr(0, scheme.size()), scheme))
    return unauthorized("send the token as: Authorization: Bearer hf_...");
  field.remove_prefix(scheme.size());
  while (field.starts_with(' ')) field.remove_prefix(1);
  const auto check = tokens_.check(field, clock_->now());
  if (check.verdict != token_verdict::usable) return refuse_token(check.verdict);
  return admit(*check.token, request);
}

std::variant<caller, server_response> request_authenticator::admit(
    const live_token& token, const server_request& request) const {
  const auto& record = token.record;
  if (const auto pause = admit_at_rate(token.use->rate, clock_->steady(), record.rate))
    return too_many_requests(*pause, "the token has a limit of " + std::to_string(record.rate) +
                                         " requests in a second; repeat the request later");
  return caller{.name = record.name,
                .role = record.role,
                .identified = true,
                .scopes = record.scopes,
                .tenant = record.tenant,
                .address = std::string(request.peer)};
}

std::variant<caller, server_response> request_authenticator::by_proxy(const trusted_proxy& proxy,
                                                                      const server_request& request,
                                                                      std::string_view user) const {
  if (!is_user_name(user))
    return problem_response(403, "the proxy does not name one user of visible ASCII characters");
  const auto& roles = proxy.roles;
  auto it = roles.find(user);
  if (it == roles.end()) it = roles.find(std::string_view("*"));
  if (it == roles.end())
    return problem_response(403,
                            "this user has no role; add one to the configuration of the "
                            "server");
  if (const auto problem = cross_site_problem(request, rules_.https); !problem.empty())
    return problem_response(403, problem);
  return caller{.name = "user:" + std::string(user),
                .role = it->second,
                .identified = true,
                .address = std::string(request.peer)};
}

std::optional<std::variant<caller, server_response>> request_authenticator::by_session(
    const server_request& request) const {
  const auto cookie = http::find_cookie(request.fields, session_cookie_name(rules_.https));
  if (!cookie) return std::nullopt;
  const auto now = clock_->now();
  const auto session = sessions_.find(*cookie, now);
  if (!session) return std::nullopt;
  std::shared_ptr<const live_token> token;
  if (!session->token_id.empty()) {
    auto check = tokens_.find(session->token_id, now);
    if (check.verdict == token_verdict::unavailable) return refuse_token(check.verdict);
    if (check.verdict != token_verdict::usable) return std::nullopt;
    token = std::move(check.token);
  }
  if (const auto problem = cross_site_problem(request, rules_.https); !problem.empty())
    return problem_response(403, problem);
  if (token) return admit(*token, request);
  return caller{.name = session->name,
                .role = role::admin,
                .identified = true,
                .address = std::string(request.peer)};
}

void request_authenticator::set_clients(std::vector<certificate_client> clients) {
  auto replacement = std::make_shared<const std::vector<certificate_client>>(std::move(clients));
  const std::scoped_lock lock(clients_mutex_);
  clients_.swap(replacement);
}

std::optional<std::variant<caller, server_response>> request_authenticator::by_certificate(
    const server_request& request) const {
  if (request.certificate == nullptr) return std::nullopt;
  std::shared_ptr<const std::vector<certificate_client>> clients;
  {
    const std::scoped_lock lock(clients_mutex_);
    clients = clients_;
  }
  const auto& certificate = *request.certificate;
  const auto matches = clients_of(*clients, certificate);
  if (matches.empty()) {
    if (clients->empty() || is_open_to(request)) return std::nullopt;
    return unauthorized("no client of this server has this certificate; an operator adds it to " +
                        std::string("serve.clients: ") + certificate.fingerprint);
  }
  if (matches.size() > 1)
    return unauthorized("the clients " + matches[0]->name + " and " + matches[1]->name +
                        " of serve.clients both have this certificate; an operator must remove it "
                        "from one of them");
  // A connection can be older than the end of its certificate.
  if (clock_->now() >= certificate.not_after + std::chrono::seconds(1))
    return unauthorized("the certificate of this connection has expired; connect with a new one");
  if (is_of_foreign_page(request, rules_.https)) return refuse_foreign_page();
  const auto& client = *matches.front();
  return caller{.name = "client:" + client.name,
                .role = client.role,
                .identified = true,
                .scopes = client.scopes,
                .tenant = client.tenant,
                .address = std::string(request.peer)};
}

bool request_authenticator::is_open_to(const server_request& request) const {
  return rules_.open && is_local_peer(request.peer) && !came_through_proxy(request.fields);
}

}  // namespace HOLDFAST_NAMESPACE::detail::serve
