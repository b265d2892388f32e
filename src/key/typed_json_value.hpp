#pragma once

#include <holdfast/key/typed_json.hpp>
#include <holdfast/key/value.hpp>
#include <holdfast/version.hpp>

#include <simdjson.h>

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace HOLDFAST_NAMESPACE::key {

/// JSON nested deeper than this is refused by the parser: enough for the highest value, three levels of JSON for one of a map.
inline constexpr std::size_t max_json_depth = 3 * max_height + 64;

/// Reads typed values that were parsed already, without recursion. It keeps its stack, so reuse it.
class typed_reader {
 public:
  explicit typed_reader(scheme meant_for);

  /// Throws holdfast::error with the path, which begins with `root`.
  [[nodiscard]] value read(simdjson::dom::element json, std::string_view root);

 private:
  using object_type = simdjson::dom::object;
  enum class kind : std::uint8_t { list, set, map, optional, enumeration };

  /// A container whose items are being read.
  struct container {
    kind type;
    std::size_t count;                      // of items
    simdjson::dom::array::iterator next{};  // list, set, map
    simdjson::dom::element only{};          // optional, enumeration
    std::vector<value> items{};
    std::vector<value> keys{};      // map
    key::enumeration enumerator{};  // enumeration

    [[nodiscard]] bool wants_key() const noexcept;
    [[nodiscard]] bool complete() const noexcept;
  };
  using maybe = std::optional<value>;
  using member = maybe (typed_reader::*)(const object_type&);

  maybe begin(simdjson::dom::element json);
  simdjson::dom::element next_in(container& inside);
  static value finish(container& done);

  [[nodiscard]] std::string path_to_value() const;
  static std::string shown_key(const value& key, std::size_t index);
  [[noreturn]] void fail(errc code, const std::string& message) const;
  [[noreturn]] void unsupported(std::string_view type) const;

  // Members of the JSON object.
  std::string_view text_of(const object_type& o, const char* name) const;
  simdjson::dom::array array_of(const object_type& o, const char* name) const;
  simdjson::dom::element member_of(const object_type& o, const char* name) const;
  std::string hex_of(const object_type& o, const char* name) const;
  byte_string bytes_of(const object_type& o, const char* name) const;
  template <class Bits>
  Bits bits_of(const object_type& o) const;
  template <std::size_t Count>
  std::array<std::int64_t, Count> components(const object_type& o, std::size_t needed) const;
  std::chrono::year_month_day day_of(std::int64_t y, std::int64_t m, std::int64_t d) const;
  std::chrono::microseconds clock_of(std::int64_t h, std::int64_t m, std::int64_t s, std::int64_t us) const;
  maybe open_items(kind type, const simdjson::dom::array& items);

  // One for each type; the table of them is in the source.
  maybe read_null(const object_type& o);
  maybe read_bool(const object_type& o);
  maybe read_int(const object_type& o);
  maybe read_f64(const object_type& o);
  maybe read_f32(const object_type& o);
  maybe read_str(const object_type& o);
  maybe read_char(const object_type& o);
  maybe read_bytes(const object_type& o);
  maybe read_uuid(const object_type& o);
  maybe read_decimal(const object_type& o);
  maybe read_path(const object_type& o);
  maybe read_datetime(const object_type& o);
  maybe read_date(const object_type& o);
  maybe read_time(const object_type& o);
  maybe read_list(const object_type& o);
  maybe read_set(const object_type& o);
  maybe read_map(const object_type& o);
  maybe read_array(const object_type& o);
  maybe read_enum(const object_type& o);
  maybe read_optional(const object_type& o);
  maybe read_object(const object_type& o);
  maybe read_identity(const object_type& o);
  maybe read_bytearray(const object_type& o);
  maybe read_text_subclass(const object_type& o);
  maybe read_int_subclass(const object_type& o);
  static const std::array<std::pair<std::string_view, member>, 34> readers;

  scheme scheme_;
  std::string_view root_{};
  std::vector<container> open_{};
};

/// The error for JSON that did not parse.
[[nodiscard]] error json_error(simdjson::error_code code, std::string path = {});

}  // namespace HOLDFAST_NAMESPACE::key
