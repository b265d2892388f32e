#pragma once

/// \file
/// Events and records of an outbox as JSON. A payload is written as it was published:
///
///   "payload":{"euro":30}      the content type is JSON, and the payload is
///   "payload":"text"           another content type, and UTF-8
///   "payloadBase64":"AAEC"     anything else

#include <holdfast/outbox/operations.hpp>
#include <holdfast/version.hpp>

#include "serve/api/json_writer.hpp"

#include <chrono>
#include <string>

namespace HOLDFAST_NAMESPACE::detail::serve {

/// `1500ms`; the API reads it, too.
[[nodiscard]] std::string duration_text(std::chrono::milliseconds duration);

enum class payload_view : std::uint8_t {
  none,    ///< only the size in bytes, and no values of headers with secret names
  masked,  ///< values of members and headers with secret names are replaced
  whole
};
/// Appends the members of a claimed event to the object that is open.
void write_claimed_event(json_writer& out, const claimed_event& event, payload_view view);
/// Appends an object.
void write_record(json_writer& out, const outbox_record& record, payload_view view);
/// Appends an object.
void write_claim(json_writer& out, const claimed& claim);
/// Appends the members of the statistics to the object that is open.
void write_stats(json_writer& out, const outbox_stats& stats);
/// Appends an object with the code of an error and its meaning for the client.
void write_problem(json_writer& out, const error& problem, bool with_detail);

}  // namespace HOLDFAST_NAMESPACE::detail::serve
