#pragma once

/// \file
/// Who sends a request. In this order:
///
///   1. `Authorization: Bearer hf_...`          a token
///   2. the user that a trusted proxy names     single sign-on
///   3. the cookie of a session                 the console
///   4. the certificate of the connection       a client of the configuration
///   5. nothing, with `open`, on loopback       an admin
///   6. nothing                                 not identified: public endpoints only

#include <holdfast/clock.hpp>
#include <holdfast/version.hpp>

#include "serve/auth/authenticator.hpp"
#include "serve/auth/certificate_clients.hpp"
#include "serve/auth/session_table.hpp"
#include "serve/auth/token_table.hpp"

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::serve {

/// Single sign-on: a proxy authenticates users and names them in a field of each request.
struct trusted_proxy {
  /// `X-Forwarded-User`
  std::string field{};
  /// Addresses of the proxy, without port; `unix` for the Unix socket. From others the field is
  /// ignored.
  std::vector<std::string> addresses{};
  /// Roles of users. `*` stands for all other users. A user without a role is refused.
  std::map<std::string, role, std::less<>> roles{};
};

struct request_rules {
  /// The server has TLS.
  bool https = false;
  /// Requests without a token from loopback and the Unix socket are an admin's.
  bool open = false;
  std::optional<trusted_proxy> proxy{};
};

/// `__Host-holdfast` with https, else `holdfast`.
[[nodiscard]] std::string_view session_cookie_name(bool https) noexcept;

/// Thread-safety: may be called from any thread.
class request_authenticator final : public authenticator {
 public:
  /// The tables must outlive it. Throws errc::invalid_argument if a rule is invalid.
  request_authenticator(request_rules rules, const token_table& tokens,
                        const session_table& sessions, std::shared_ptr<const clock> clock);

  [[nodiscard]] std::variant<caller, server_response> identify(
      const server_request& request) override;
  /// Replaces the clients that certificates identify.
  void set_clients(std::vector<certificate_client> clients);

 private:
  using result = std::variant<caller, server_response>;
  [[nodiscard]] result by_token(const server_request& request, std::string_view field) const;
  [[nodiscard]] result by_proxy(const trusted_proxy& proxy, const server_request& request,
                                std::string_view user) const;
  [[nodiscard]] std::optional<result> by_session(const server_request& request) const;
  /// Nothing if the request does not come from a client with a certificate.
  [[nodiscard]] std::optional<result> by_certificate(const server_request& request) const;
  [[nodiscard]] bool is_open_to(const server_request& request) const;
  [[nodiscard]] result admit(const live_token& token, const server_request& request) const;

  const request_rules rules_;
  const token_table& tokens_;
  const session_table& sessions_;
  const std::shared_ptr<const clock> clock_;
  mutable std::mutex clients_mutex_{};
  std::shared_ptr<const std::vector<certificate_client>> clients_ =
      std::make_shared<const std::vector<certificate_client>>();
};

/// 429 with Retry-After.
[[nodiscard]] server_response too_many_requests(std::chrono::nanoseconds pause,
                                                std::string_view detail);
/// 401, or 503 if the tokens could not be read. Never for a usable token.
[[nodiscard]] server_response refuse_token(token_verdict verdict);

}  // namespace HOLDFAST_NAMESPACE::detail::serve
