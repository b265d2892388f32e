#pragma once

/// \file
/// Parameters and values of H2. Its PostgreSQL port uses the text format: binary results and binary
/// times fail. Only parameters of bytes are binary.

#include <holdfast/version.hpp>

#include "sql/postgres/values.hpp"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::sql::h2 {

/// `2026-11-15 12:00:00.000001+00`. Every timestamp has such a text.
[[nodiscard]] std::string time_text(timestamp time);
/// The inverse of time_text, with any offset. Ignores digits after the microseconds. Returns
/// nullopt if the text is not a time, or not one that `timestamp` can represent.
[[nodiscard]] std::optional<timestamp> read_time(std::string_view text);

/// Reads a value of a result. A NUL byte must follow the text. `is_bytea`: the text is bytes in
/// PostgreSQL's escape format. Throws errc::malformed for an invalid number. An invalid time is
/// NULL.
[[nodiscard]] value read_text(const char* text, std::size_t size, type expected, bool is_bytea);

/// The parameters of one statement. They are copied, because libpq needs a NUL byte after a text.
class text_bindings {
 public:
  void clear() noexcept;
  /// Throws errc::invalid_argument (wrong type, text with a NUL byte) and errc::too_large. H2 must
  /// not see such values: after a failure it would run the previous statement again (see
  /// connect_h2).
  void add(type declared, const parameter& value);
  /// Call this after the last add. The result is valid until the next add or clear.
  [[nodiscard]] postgres::wire_parameters finish();

 private:
  std::vector<std::optional<std::string>> texts_{};
  std::vector<postgres::oid> types_{};
  std::vector<int> formats_{};
  std::vector<int> lengths_{};
  std::vector<const char*> values_{};
};

}  // namespace HOLDFAST_NAMESPACE::detail::sql::h2
