#pragma once

/// \file
/// The API on a port of this machine, with callers that a test names: `Authorization: Bearer
/// operator`, `Bearer app store:main:read,outbox:*:publish`, `Bearer viewer @acme`.

#include <holdfast/error.hpp>

#include "serve/api/api_dispatcher.hpp"
#include "serve/api/endpoint_table.hpp"
#include "serve/http_client.hpp"

#include <chrono>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace holdfast::test {

/// Believes what the request says about its caller. Only for tests.
class named_callers final : public detail::serve::authenticator {
 public:
  std::variant<detail::serve::caller, detail::serve::server_response> identify(
      const detail::serve::server_request& request) override {
    using detail::serve::role;
    detail::serve::caller client;
    auto text = request.fields.find("Authorization").value_or("");
    if (!text.starts_with("Bearer ")) return client;
    text.remove_prefix(7);
    const auto word = next_word(text);
    client.identified = true;
    client.name = word;
    if (word == "viewer") client.role = role::viewer;
    else if (word == "operator") client.role = role::operator_;
    else if (word == "app") client.role = role::application;
    else if (word == "admin") client.role = role::admin;
    else return detail::serve::problem_response(401, "the token is not known");
    for (auto part = next_word(text); !part.empty(); part = next_word(text)) {
      if (part.starts_with('@')) client.tenant = part.substr(1);
      else client.scopes.emplace_back(part);
    }
    return client;
  }

 private:
  static std::string_view next_word(std::string_view& text) {
    const auto end = std::min(text.find_first_of(" ,"), text.size());
    const auto word = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    return word;
  }
};

class api_server {
 public:
  /// The table must outlive the server.
  explicit api_server(const detail::serve::endpoint_table& table,
                      detail::serve::dispatcher_options options = {})
      : dispatcher_(table, callers_, std::move(options)),
        server_(
            detail::serve::server_options{
                .listen = {"127.0.0.1:0"},
                .max_body = [this](std::string_view method, std::string_view target)
                    -> std::uint64_t { return dispatcher_.max_body(method, target); }},
            [this](const detail::serve::server_request& request, detail::serve::responder answer) {
              dispatcher_.dispatch(request, std::move(answer));
            }),
        client_("http://" + server_.addresses().front(), {}) {
    dispatcher_.set_hosts(
        detail::serve::host_names(server_.addresses(), std::vector<std::string>{}));
  }

  /// `bearer` is a caller, as above; empty: none. `content_type` is sent if there is content.
  detail::serve::client_response send(std::string_view method, std::string_view target,
                                      std::string_view bearer = {}, std::string_view body = {},
                                      std::string_view content_type = "application/json") {
    detail::serve::client_request request{.method = method, .target = target, .body = body};
    if (!bearer.empty()) request.fields.add("Authorization", "Bearer " + std::string(bearer));
    if (!body.empty() && !content_type.empty()) request.fields.add("Content-Type", content_type);
    return client_.send(request, std::chrono::steady_clock::now() + std::chrono::seconds(60));
  }

  [[nodiscard]] const std::string& address() const { return server_.addresses().front(); }
  [[nodiscard]] detail::serve::api_dispatcher& dispatcher() { return dispatcher_; }
  [[nodiscard]] detail::serve::http_server& transport() { return server_; }

 private:
  named_callers callers_{};
  detail::serve::api_dispatcher dispatcher_;
  detail::serve::http_server server_;
  detail::serve::http_client client_;
};

}  // namespace holdfast::test
