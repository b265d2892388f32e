#include "serve/api/problem_mapping.hpp"

#include "http/problem.hpp"
#include "key/json_string.hpp"
#include "serve/api/server_refusal.hpp"

#include <string>

namespace HOLDFAST_NAMESPACE::detail::serve {

namespace {

/// The failures that a database causes, and not the client.
bool is_of_backend(const error& failure) noexcept {
  if (!failure.backend_code().empty() || failure.in_doubt()) return true;
  switch (failure.code()) {
    case errc::tampered:
    case errc::unavailable:
    case errc::timeout:
    case errc::grammar:
    case errc::missing_object:
    case errc::permission:
    case errc::internal:
      return true;
    default:
      return false;
  }
}

/// What a client may know about a failure of a backend.
std::string_view public_detail(const error& failure) noexcept {
  if (failure.in_doubt())
    return "it is not known whether this was done; repeat the request with the same id";
  switch (failure.code()) {
    case errc::unavailable:
      return "a database does not answer; repeat the request later";
    case errc::timeout:
      return "a database did not answer in time; repeat the request later";
    case errc::missing_object:
      return "a table is missing; an operator can see which";
    default:
      return "the server could not do this; an operator finds the reason in its log";
  }
}

std::string json_text(std::string_view text) {
  std::string json;
  key::append_json_string(json, text);
  return json;
}

/// The whole database is not there. To a client that is the same as one that does not answer: 404
/// would say that it has no such entry.
bool has_no_database(const error& failure) noexcept {
  return failure.code() == errc::not_found && !failure.backend_code().empty();
}

}  // namespace

int status_of(const error& failure) noexcept {
  if (failure.in_doubt() || has_no_database(failure)) return 503;
  switch (failure.code()) {
    case errc::invalid_argument:
    case errc::ill_formed_text:
    case errc::malformed:
      return 400;
    case errc::unsupported_type:
    case errc::out_of_range:
    case errc::not_finite:
    case errc::too_deep:
      return 422;
    case errc::duplicate:
      return 409;
    case errc::too_large:
      return 413;
    case errc::not_found:
      return 404;
    case errc::unavailable:
    case errc::missing_object:
      return 503;
    case errc::timeout:
      return 504;
    case errc::permission:
    case errc::grammar:
    case errc::tampered:
    case errc::internal:
      return 500;
  }
  return 500;
}

server_response problem_of(const error& failure, const caller& client, std::string_view reference) {
  if (has_no_database(failure))
    return problem_of(
        error(errc::unavailable, failure.message(),
              {.path = failure.path(), .backend_code = failure.backend_code(), .transient = true}),
        client, reference);
  const bool sees_backend =
      client.identified && (client.role == role::operator_ || client.role == role::admin);
  const auto* const refusal = dynamic_cast<const server_refusal*>(&failure);
  const bool hide = refusal == nullptr && is_of_backend(failure) && !sees_backend;
  http::problem details{.status = status_of(failure)};
  const auto code = to_string(failure.code());
  details.type = "urn:holdfast:problem:" + std::string(failure.in_doubt() ? "in_doubt" : code);
  details.detail = hide ? std::string(public_detail(failure)) : failure.what();
  if (!reference.empty()) details.instance = "urn:holdfast:request:" + std::string(reference);
  details.members.emplace_back("code", json_text(code));
  details.members.emplace_back("transient", failure.transient() ? "true" : "false");
  details.members.emplace_back("inDoubt", failure.in_doubt() ? "true" : "false");
  if (refusal != nullptr) details.members.emplace_back("reason", json_text(refusal->reason()));
  if (!failure.path().empty() && !hide)
    details.members.emplace_back("path", json_text(failure.path()));
  if (!failure.backend_code().empty() && !hide)
    details.members.emplace_back("backendCode", json_text(failure.backend_code()));
  server_response response{.status = details.status};
  response.fields.add("Content-Type", http::problem::media_type);
  if (details.status == 503) response.fields.add("Retry-After", "1");
  response.body = http::to_json(details);
  return response;
}

server_response problem_of(const std::exception_ptr& failure, const caller& client,
                           std::string_view reference) {
  try {
    std::rethrow_exception(failure);
  } catch (const error& e) {
    return problem_of(e, client, reference);
  } catch (const std::bad_alloc&) {
    return problem_of(
        error(errc::unavailable, "the server has no memory for this request", {.transient = true}),
        client, reference);
  } catch (...) {
    return problem_of(error(errc::internal, "the request failed; the log of the server has more"),
                      client, reference);
  }
}

}  // namespace HOLDFAST_NAMESPACE::detail::serve
