#pragma once

/// \file
/// CloudEvents 1.0 over HTTP. How an attribute becomes a field of an event:
///
///   id               id, if it is a UUID; else a UUID derived from source and id (event_ids.hpp),
///                    and the header `id`
///   type             type
///   partitionkey     key
///   datacontenttype  content type
///   dataschema       schema
///   subject          aggregate id
///   source, time     headers
///   extensions       headers of the same name, for example `traceparent`
///   data             payload, unchanged
///
/// The relay of the outbox writes these fields in the same way.

#include <holdfast/outbox/event.hpp>
#include <holdfast/version.hpp>

#include "http/fields.hpp"
#include "serve/api/event_ids.hpp"
#include "serve/api/json_reader.hpp"

#include <string>
#include <string_view>

namespace HOLDFAST_NAMESPACE::detail::serve {

inline constexpr std::string_view cloud_event_type = "application/cloudevents+json";
inline constexpr std::string_view cloud_event_batch_type = "application/cloudevents-batch+json";

/// Reads one event in structured mode, or of a batch. `source_text` is the text of the object.
/// Throws errc::invalid_argument.
[[nodiscard]] event read_cloud_event(json_object& object, std::string_view source_text,
                                     const event_ids& ids);

/// Returns true if the attributes are in fields: the request has `ce-specversion` or `ce-type`.
[[nodiscard]] bool is_binary_cloud_event(const http::fields& fields) noexcept;
/// Reads an event in binary mode; the content is its payload. Throws errc::invalid_argument.
[[nodiscard]] event read_binary_cloud_event(const http::fields& fields, std::string content,
                                            const event_ids& ids);

}  // namespace HOLDFAST_NAMESPACE::detail::serve
