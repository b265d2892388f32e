#pragma once

/// \file
/// Answers for clients, from a response that was just received or from one that is kept:
/// conditional requests, ranges, HEAD, Age.

#include <holdfast/clock.hpp>
#include <holdfast/version.hpp>

#include "serve/gateway/answer_status.hpp"
#include "serve/gateway/request_conditions.hpp"
#include "serve/gateway/response_fields.hpp"
#include "serve/gateway/route.hpp"
#include "serve/gateway/stored_response.hpp"
#include "serve/http_server.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace HOLDFAST_NAMESPACE::detail::serve::gateway {

/// The client of an answer.
struct answer_request {
  std::string_view method{};
  const request_conditions& conditions;
  /// Of the client; see add_cache_status.
  std::string_view address{};
};

/// Copies fields, with Via and without Cache-Status, which the gateway replaces. Sets `has_date`.
void copy_fields(const response_fields& source, server_response& target);
/// The values of Cache-Status that a response came with.
[[nodiscard]] std::string previous_status(const response_fields& fields);

/// Whether a client that sent conditions gets 304 for this response.
[[nodiscard]] bool is_not_modified(const answer_request& request, int status,
                                   const response_fields& fields, timestamp now);

/// A response that was just received: 304 if the client has it already. `status` describes it.
[[nodiscard]] server_response live_answer(const route& rules, const answer_request& request,
                                          int status, const response_fields& fields,
                                          std::string content, const http::cache_status& report,
                                          timestamp now);

/// A kept response: 304, 412, 206 with one range, 416, or the whole. For HEAD without its content.
/// `report` gets the remaining freshness.
[[nodiscard]] server_response kept_answer(const route& rules, const answer_request& request,
                                          const stored_response& kept,
                                          const kept_answer_facts& facts, http::cache_status report,
                                          timestamp now);

}  // namespace HOLDFAST_NAMESPACE::detail::serve::gateway
