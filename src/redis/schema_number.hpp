#pragma once

/// \file
/// The schema version in a field of a hash.

#include <holdfast/error.hpp>
#include <holdfast/redis.hpp>
#include <holdfast/version.hpp>

#include <charconv>
#include <string>

namespace HOLDFAST_NAMESPACE::detail::redis {

/// The version in the reply to HGET. Without the field it is 1. Throws errc::malformed for a value
/// that is not a positive integer.
[[nodiscard]] inline int schema_number(const holdfast::redis::reply& reply) {
  if (reply.is_nil()) return 1;
  const std::string& text = reply.text();
  int version = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), version);
  if (failed != std::errc{} || end != text.data() + text.size() || version < 1)
    throw error(errc::malformed, "the field 'schema' has '" + text +
                                     "', which is not a schema version; check the key");
  return version;
}

}  // namespace HOLDFAST_NAMESPACE::detail::redis
