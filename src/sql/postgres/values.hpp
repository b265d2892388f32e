#pragma once

/// \file
/// PostgreSQL's binary formats: encodes parameters and arrays of them, decodes columns. Does not
/// need libpq.

#include <holdfast/version.hpp>

#include "sql/public_names.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::sql::postgres {

using oid = std::uint32_t;  // as in libpq

/// The PostgreSQL type of a parameter, and of the array of them that a batch binds.
[[nodiscard]] oid oid_of(type t) noexcept;
[[nodiscard]] oid array_oid_of(type t) noexcept;

/// The arguments of PQsendQueryParams and its siblings.
struct wire_parameters {
  int count = 0;
  const oid* types = nullptr;
  const char* const* values = nullptr;
  const int* lengths = nullptr;
  const int* formats = nullptr;
  int result_format = 1;  ///< 1: binary; 0: text

  [[nodiscard]] std::span<const oid> type_oids() const noexcept {
    return {types, static_cast<std::size_t>(count)};
  }
};

/// The parameters of one statement, encoded for libpq. Text and bytes of single values are not
/// copied: the caller's memory must live until the statement was sent. One object serves many
/// statements and reuses its memory.
class bindings {
 public:
  void clear() noexcept;
  /// Adds a parameter. Throws errc::invalid_argument (wrong type, text with a NUL byte) and
  /// errc::out_of_range (a time before 4713 BC).
  void add(type declared, const parameter& value);
  /// Adds an array. Throws as add.
  void add_array(type declared, std::span<const parameter> column);
  /// Call this after the last add. The result is valid until the next clear. Throws errc::too_large
  /// if there are more parameters than a statement can have.
  [[nodiscard]] wire_parameters finish();

 private:
  void add_bytes(const char* data, std::size_t length);
  void add_stored(std::size_t offset);

  std::vector<char> storage_{};  // encoded numbers and arrays
  // For each parameter: its offset in storage_, or -1 if its bytes are in the caller's memory.
  std::vector<std::ptrdiff_t> offsets_{};
  std::vector<const char*> values_{};
  std::vector<int> lengths_{};
  std::vector<int> formats_{};
  std::vector<oid> types_{};
  std::size_t total_length_ = 0;
};

/// Decodes one column of a result.
class column_reader {
 public:
  /// Throws errc::unsupported_type if values of the type `actual` cannot be read as `expected`.
  column_reader(type expected, oid actual, std::string_view column_name);
  /// nullopt is NULL. Throws errc::malformed. A time that `timestamp` cannot represent is NULL.
  [[nodiscard]] value read(std::optional<std::string_view> bytes) const;

 private:
  enum class format : std::uint8_t { int2, int4, int8, string, time };
  format format_ = format::string;
};

}  // namespace HOLDFAST_NAMESPACE::detail::sql::postgres
