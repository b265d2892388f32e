#pragma once

/// \file
/// The rows of the API. How a part of the server adds its endpoints:
///
///   1. A header `src/serve/api/NAME_endpoints.hpp` declares one function:
///
///          /// Endpoints below /v1/keys.
///          void add_key_endpoints(endpoint_table& table, services& shared);
///
///   2. The .cpp of the same name adds one row for each method and path. `shared` outlives the
///      table, so a row may capture a reference to it:
///
///          table.add({.method = "GET",
///                     .path = "/v1/stores/{store}/doctor",
///                     .summary = "Examines the table of a store",
///                     .roles = {role::viewer, role::operator_},
///                     .answer = [&shared](api_request& request) {
///                       return describe(shared.find_store(request.path("store")));
///                     }});
///
///   3. `add_endpoints` in api/endpoints.cpp calls the function: one line.
///
/// What a row can rely on. The dispatcher refuses a request before it reaches `answer` if
///   - the Host is foreign (421), the path is unknown (404) or the method is (405, with Allow),
///   - the caller has no token (401), or its role, scope or tenant does not suffice (403),
///   - a parameter of the query is not declared, occurs twice, or has not the declared type (400),
///   - the content is larger than `max_body` (413) or has a media type not in `accepts` (415).
/// A row with roles for viewers and applications must list both: only `admin` is implied.
/// A caller with a tenant is refused (403) unless the row says `for_tenants = true`; then the row
/// itself limits what it shows and changes to `request.caller.tenant`, if that is not empty.
///
/// `answer` runs on one of the worker threads and may wait for a database. It returns the response,
/// or throws holdfast::error, which becomes problem details (problem_mapping.hpp). `start` runs on
/// a loop thread, must not wait, and keeps the responder until it answers.
/// HEAD is answered by the row for GET, unless that has `start`. Holdfast-Request, Cache-Control:
/// no-store and the other fields of every answer are added by the dispatcher, unless the answer has
/// them.

#include "serve/api/endpoint.hpp"

#include <deque>
#include <string_view>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::serve {

/// Rows do not move, so that the router can refer to them.
/// Thread-safety: none while rows are added, then immutable.
class endpoint_table {
 public:
  /// Throws errc::internal if the row cannot work: an ill-formed path, the method and path of
  /// another row, the path of another row with other names of parameters, not exactly one of
  /// `answer` and `start`, a schema that is not JSON, or a scope with a parameter that the path
  /// does not have.
  void add(endpoint row);

  [[nodiscard]] const std::deque<endpoint>& rows() const noexcept { return rows_; }
  /// Largest `max_body` of all rows.
  [[nodiscard]] std::size_t max_body() const noexcept;

 private:
  std::deque<endpoint> rows_{};
};

/// Splits `/v1/stores/{store}` into its segments, without the slashes.
[[nodiscard]] std::vector<std::string_view> split_path(std::string_view path);
/// The name of a segment `{store}`, or empty text.
[[nodiscard]] std::string_view parameter_of(std::string_view segment) noexcept;

}  // namespace HOLDFAST_NAMESPACE::detail::serve
