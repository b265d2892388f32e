#pragma once

/// \file
/// The id of a published event. An outbox needs a UUID. Other texts become one, always the same for
/// the same caller and text, so that a repeated request is recognised:
///
///   a UUID                  itself, in lower case
///   Idempotency-Key: text   UUIDv5 of caller, NUL, text (of a batch: NUL and the index, too)
///   a CloudEvent's id       UUIDv5 of caller, NUL, source, NUL, id
///
/// with the namespace 6ba7b812-9dad-11d1-80b4-00c04fd430c8. Callers differ by the names of their
/// tokens, so the keys of one cannot collide with those of another.

#include <holdfast/version.hpp>

#include "http/fields.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace HOLDFAST_NAMESPACE::detail::serve {

/// The value of Idempotency-Key: a structured string in quotes, or bare text. Throws
/// errc::invalid_argument if it is ill-formed, longer than 256 bytes, or occurs twice.
[[nodiscard]] std::optional<std::string> read_idempotency_key(const http::fields& fields);

/// Makes the ids of one request.
/// Thread-safety: none.
class event_ids {
 public:
  /// `key` is the Idempotency-Key, if there is one.
  event_ids(std::string_view caller, std::optional<std::string> key)
      : caller_(caller), key_(std::move(key)) {}

  /// Of the only event of the request, without an id of its own. Empty if there is no key.
  [[nodiscard]] std::string from_key() const;
  /// Of an event of a batch.
  [[nodiscard]] std::string from_key(std::size_t index) const;
  [[nodiscard]] std::string from_cloud_event(std::string_view source, std::string_view id) const;

 private:
  std::string_view caller_;
  std::optional<std::string> key_;
};

/// The UUID in lower case, or nothing if it is not one.
[[nodiscard]] std::optional<std::string> normalized_uuid(std::string_view text);

}  // namespace HOLDFAST_NAMESPACE::detail::serve
