#pragma once

/// \file
/// An identity on a state file of its own, with a clock that stands still, and a server around it.

#include <holdfast/log.hpp>

#include "serve/api/api_dispatcher.hpp"
#include "serve/api/audit_endpoints.hpp"
#include "serve/api/endpoint_table.hpp"
#include "serve/api/services.hpp"
#include "serve/api/session_endpoints.hpp"
#include "serve/api/token_endpoints.hpp"
#include "serve/auth/identity.hpp"
#include "serve/http_server.hpp"
#include "support/raw_client.hpp"
#include "support/temporary_directory.hpp"
#include "support/virtual_clock.hpp"

#include <chrono>
#include <initializer_list>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace holdfast::test {

namespace serve = holdfast::detail::serve;
namespace http = holdfast::detail::http;

/// A request that did not travel over a network.
class built_request {
 public:
  using field_list = std::initializer_list<std::pair<std::string_view, std::string_view>>;

  built_request(std::string_view method, field_list fields, std::string body = {},
                std::string_view peer = "127.0.0.1")
      : method_(method), body_(std::move(body)), peer_(peer) {
    for (const auto& [name, value] : fields) {
      fields_.add(text_.size(), name.size(), text_.size() + name.size(), value.size());
      text_.append(name).append(value);
    }
    fields_.set_text(text_);
  }
  built_request(const built_request&) = delete;
  built_request& operator=(const built_request&) = delete;

  [[nodiscard]] serve::server_request view() {
    return {.method = method_,
            .target = target_,
            .host = "127.0.0.1:7360",
            .fields = fields_,
            .body = body_,
            .peer = peer_,
            .certificate = certificate};
  }

  const detail::net::peer_certificate* certificate = nullptr;

 private:
  std::string method_;
  http::target target_ = *http::target::parse("/v1/status");
  std::string text_{};
  http::fields fields_{};
  std::string body_;
  std::string peer_;
};

/// Keeps what is logged.
class kept_log {
 public:
  [[nodiscard]] log_sink sink() {
    return [this](const log_record& record) {
      const std::scoped_lock lock(mutex_);
      text_.append(to_string(record.level)).append(": ").append(record.message);
      for (const auto& field : record.fields)
        text_.append(" ").append(field.name).append("=").append(field.value);
      text_ += "\n";
    };
  }
  [[nodiscard]] std::string text() {
    const std::scoped_lock lock(mutex_);
    return text_;
  }

 private:
  std::mutex mutex_{};
  std::string text_{};
};

struct auth_state {
  temporary_directory directory{};
  std::shared_ptr<virtual_clock> clock = std::make_shared<virtual_clock>();
  kept_log log{};

  [[nodiscard]] std::string file() const { return (directory.path() / "serve.db").string(); }
  [[nodiscard]] std::string url() const { return "sqlite://" + file(); }
  /// Nothing is read or written in the background, unless the interval is short.
  [[nodiscard]] serve::identity_options options(
      serve::request_rules rules = {}, std::chrono::milliseconds interval = std::chrono::hours(1)) {
    return {.state_url = url(),
            .rules = std::move(rules),
            .clock = clock,
            .log = log.sink(),
            .refresh_interval = interval,
            .database_timeout = std::chrono::seconds(20)};
  }
};

/// The API, on a port of its own.
class auth_server {
 public:
  explicit auth_server(auth_state& state, serve::request_rules rules = {},
                       serve::event_sink* events = nullptr)
      : auth_(state.options(std::move(rules))) {
    auth_.audit().publish_to(events);
    shared_.auth = &auth_;
    shared_.audit = &auth_.audit();
    serve::add_session_endpoints(table_, shared_);
    serve::add_token_endpoints(table_, shared_);
    serve::add_audit_endpoints(table_, shared_);
    dispatcher_ = std::make_unique<serve::api_dispatcher>(table_, auth_.requests(),
                                                          serve::dispatcher_options{.threads = 2});
    server_ = std::make_unique<serve::http_server>(
        serve::server_options{.listen = {"127.0.0.1:0"}},
        [this](const serve::server_request& request, serve::responder answer) {
          dispatcher_->dispatch(request, std::move(answer));
        });
    dispatcher_->set_hosts(serve::host_names(server_->addresses(), {}));
  }
  ~auth_server() {
    (void)server_->stop(std::chrono::seconds(20));
    (void)dispatcher_->close(std::chrono::steady_clock::now() + std::chrono::seconds(20));
  }
  auth_server(const auth_server&) = delete;
  auth_server& operator=(const auth_server&) = delete;

  [[nodiscard]] serve::identity& auth() { return auth_; }
  [[nodiscard]] const std::string& address() const { return server_->addresses().front(); }

  /// Returns the whole answer. `fields` end with CR LF each.
  std::string call(std::string_view method, std::string_view path, const std::string& fields = {},
                   std::string_view body = {}) {
    raw_client client(address());
    std::string text = std::string(method) + " " + std::string(path) +
                       " HTTP/1.1\r\nHost: " + address() + "\r\nConnection: close\r\n" + fields;
    if (!body.empty() || method == "POST")
      text += "Content-Length: " + std::to_string(body.size()) + "\r\n";
    client.send(text + "\r\n" + std::string(body));
    return client.read_to_end();
  }
  std::string post(std::string_view path, const std::string& fields, std::string_view body) {
    return call("POST", path, fields + "Content-Type: application/json\r\n", body);
  }

 private:
  serve::services shared_{};
  serve::identity auth_;
  serve::endpoint_table table_{};
  std::unique_ptr<serve::api_dispatcher> dispatcher_{};
  std::unique_ptr<serve::http_server> server_{};
};

[[nodiscard]] inline std::string bearer(const std::string& token) {
  return "Authorization: Bearer " + token + "\r\n";
}
[[nodiscard]] inline int status_of_answer(const std::string& answer) {
  return answer.size() < 12 ? 0 : std::stoi(answer.substr(9, 3));
}
/// The text between two others.
[[nodiscard]] inline std::string text_between(const std::string& text, std::string_view begin,
                                              std::string_view end) {
  const auto start = text.find(begin);
  if (start == std::string::npos) return {};
  const auto first = start + begin.size();
  return text.substr(first, text.find(end, first) - first);
}
/// The cookie of an answer, as a field of a request.
[[nodiscard]] inline std::string cookie_of_answer(const std::string& answer) {
  const auto cookie = text_between(answer, "Set-Cookie: ", ";");
  return cookie.empty() ? "" : "Cookie: " + cookie + "\r\n";
}

}  // namespace holdfast::test
