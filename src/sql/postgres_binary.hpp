#pragma once

#include <holdfast/sql.hpp>
#include <holdfast/version.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// PostgreSQL's binary formats: parameters and arrays of them on the way out, columns on the way in. Needs no libpq.
namespace HOLDFAST_NAMESPACE::sql::postgres {

using oid = std::uint32_t;  // as libpq's

/// The type that a parameter is declared with, and the array of it that a batch binds.
[[nodiscard]] oid oid_of(type t) noexcept;
[[nodiscard]] oid array_oid_of(type t) noexcept;

/// What libpq is given with a statement.
struct wire_parameters {
  int count = 0;
  const oid* types = nullptr;
  const char* const* values = nullptr;
  const int* lengths = nullptr;
  const int* formats = nullptr;
  int result_format = 1;  ///< 1: the server's binary formats; 0: text
};

/// The parameters of one statement in the form that libpq takes. Text and bytes of single values are not copied, so the caller's
/// memory must stay. Kept from call to call: its memory is used again.
class bindings {
 public:
  void clear() noexcept;
  /// Throws errc::invalid_argument (a value of another type, text with a NUL byte) and errc::out_of_range (a time).
  void add(type declared, const parameter& value);
  /// One array. Throws as add.
  void add_array(type declared, std::span<const parameter> column);

  /// To be called after the last add. Throws errc::too_large when it is more than one message to the server can carry.
  void finish();
  [[nodiscard]] int size() const noexcept { return static_cast<int>(lengths_.size()); }
  [[nodiscard]] const char* const* values() const noexcept { return values_.data(); }
  [[nodiscard]] const int* lengths() const noexcept { return lengths_.data(); }
  [[nodiscard]] const int* formats() const noexcept { return formats_.data(); }
  [[nodiscard]] const oid* types() const noexcept { return types_.data(); }
  [[nodiscard]] wire_parameters wire() const noexcept { return {size(), types(), values(), lengths(), formats()}; }

 private:
  void add_bytes(const char* data, std::size_t length);
  void add_stored(std::size_t from);

  std::vector<char> storage_{};           // numbers and arrays
  std::vector<std::ptrdiff_t> stored_{};  // where in storage_ a parameter starts, or -1: its value is elsewhere already
  std::vector<const char*> values_{};
  std::vector<int> lengths_{};
  std::vector<int> formats_{};
  std::vector<oid> types_{};
  std::size_t total_ = 0;
};

/// Reads one column.
class column_reader {
 public:
  /// Throws errc::unsupported_type, with the name of the column's type, when a value of it cannot be read as `wanted`.
  column_reader(type wanted, oid actual, std::string_view column);
  /// No bytes are NULL. Throws errc::malformed, and errc::out_of_range for a time that is none of ours.
  [[nodiscard]] value read(std::optional<std::string_view> bytes) const;

 private:
  enum class form : std::uint8_t { int2, int4, int8, string, moment };
  form form_ = form::string;
};

}  // namespace HOLDFAST_NAMESPACE::sql::postgres
