#pragma once

/// \file
/// Reads the events of requests in `application/json`:
///
///     {"type":"order.paid","key":"order-7","payload":{"euro":30},"headers":{"tenant":"acme"}}

#include <holdfast/outbox/event.hpp>
#include <holdfast/version.hpp>

#include "serve/api/json_reader.hpp"

#include <string_view>

namespace HOLDFAST_NAMESPACE::detail::serve {

/// Reads the members `type`, `key`, `id`, `payload` or `payloadBase64`, `contentType`, `delay`,
/// `timeToLive`, `headers`, `schema`, `aggregateType`, `aggregateId`, and no others. `source` is
/// the text of the object: the payload is taken from it unchanged. Throws errc::invalid_argument.
[[nodiscard]] event read_event(json_object& object, std::string_view source);

/// Reads a payload with the names of its two members. JSON stays as it is written if the content
/// type is JSON; with another type it must be a text, whose characters are the payload.
void read_payload(json_object& object, std::string_view source, std::string_view member,
                  std::string_view base64_member, event& target);

}  // namespace HOLDFAST_NAMESPACE::detail::serve
