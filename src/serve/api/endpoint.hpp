#pragma once

/// \file
/// The table of the API: one row per method and path. The router, the permissions, the OpenAPI
/// document and the tests of roles are made from it.

#include <holdfast/version.hpp>

#include "http/fields.hpp"
#include "http/target.hpp"
#include "serve/auth/caller.hpp"
#include "serve/http_server.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::serve {

/// A request of the API. Owns its data, because it may wait for a thread.
/// Thread-safety: one thread at a time.
class api_request {
 public:
  /// Unique text for logs and for Holdfast-Request.
  std::string reference{};
  std::string method{};
  std::optional<http::target> target{};
  http::fields fields{};
  std::string body{};
  serve::caller caller{};

  /// The decoded parameter of the path: `store` of `/v1/stores/{store}/doctor`.
  [[nodiscard]] const std::string& path(std::string_view name) const;
  /// The decoded parameter of the query. Only those that the endpoint declares are accepted.
  [[nodiscard]] std::optional<std::string> query(std::string_view name) const;
  /// A parameter that is an integer in a range. Throws errc::invalid_argument with its path.
  [[nodiscard]] std::int64_t query_integer(std::string_view name, std::int64_t fallback,
                                           std::int64_t least, std::int64_t most) const;
  /// A parameter that is a boolean: `1` and `true`, `0` and `false`. Missing: false.
  [[nodiscard]] bool query_flag(std::string_view name) const;
  /// A parameter that is a time, or a duration. Throw errc::invalid_argument with its path.
  [[nodiscard]] std::optional<std::chrono::sys_time<std::chrono::microseconds>> query_time(
      std::string_view name) const;
  [[nodiscard]] std::optional<std::chrono::milliseconds> query_duration(
      std::string_view name) const;

  // Filled by the router.
  std::vector<std::pair<std::string, std::string>> path_parameters{};
  std::vector<std::pair<std::string, std::string>> query_parameters{};
  /// The text that `fields` refers to.
  std::shared_ptr<const std::string> field_text{};
};

enum class parameter_type : std::uint8_t { text, integer, boolean, time, duration };

struct query_parameter {
  std::string_view name{};
  parameter_type type = parameter_type::text;
  std::string_view description{};
};

struct endpoint {
  std::string_view method{};
  /// `/v1/stores/{store}/{name}/{key}`
  std::string_view path{};
  /// One line, for the OpenAPI document.
  std::string_view summary{};
  /// Roles that may call it; `admin` always may. Empty: anyone, without a token.
  std::vector<role> roles{};
  /// The scope that an application needs, with parameters of the path: `store:{store}:read`.
  std::string_view scope{};
  /// The endpoint keeps to the tenant of its caller. False: callers with a tenant are refused.
  bool for_tenants = false;
  std::vector<query_parameter> query{};
  /// Media types of the content; `*/*` for any. Empty: no content is accepted.
  std::vector<std::string_view> accepts{};
  /// JSON schema of the content and of the answer with the first status. Empty: any.
  std::string_view request_schema{};
  std::string_view response_schema{};
  /// Statuses that it answers, apart from those of every endpoint (400, 401, 403, 404, 405, 413,
  /// 415, 421, 429, 500, 503).
  std::vector<int> statuses{200};
  /// Largest content in bytes.
  std::size_t max_body = std::size_t{1} << 20U;
  /// `answer` runs on the loop thread, so it must not wait: for health checks, which must work
  /// while all workers are busy.
  bool immediate = false;

  /// Answers on a worker thread; may wait. Exceptions become problem details.
  std::function<server_response(api_request&)> answer{};
  /// Instead of `answer`: answers later, from any thread. Called on a loop thread, so it must not
  /// wait.
  std::function<void(std::shared_ptr<api_request>, responder)> start{};
};

/// An answer with JSON.
[[nodiscard]] server_response json_response(int status, std::string json);

}  // namespace HOLDFAST_NAMESPACE::detail::serve
