#pragma once

/// \file
/// Reads typed values from parsed JSON: `{"t":"int","v":"42"}`.

#include <holdfast/key/typed_json.hpp>
#include <holdfast/key/value.hpp>
#include <holdfast/version.hpp>

#include <simdjson.h>

#include <array>
#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::key {

using namespace holdfast::key;

/// Depth limit of the JSON parser. The highest value needs three levels of JSON for each level of a
/// map.
inline constexpr std::size_t max_json_depth = 3 * max_height + 64;

/// Reads values without recursion. It keeps its stack between values, so reuse it.
class typed_reader {
 public:
  explicit typed_reader(scheme target) : scheme_(target) {}

  /// Throws holdfast::error with the path to the value. The path begins with `root`.
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
    std::vector<value> keys{};  // map
    enumeration enumerator{};

    [[nodiscard]] bool needs_key() const noexcept;
    [[nodiscard]] bool complete() const noexcept;
  };

  /// A scalar, or nullopt if a container was pushed on the stack.
  using scalar_or_container = std::optional<value>;

  /// A type of typed JSON, and the function that reads it.
  struct form {
    std::string_view type;
    scalar_or_container (typed_reader::*read)(const object_type&);
    unsigned schemes = ~0U;  // a bit for each scheme that has the type
  };
  static const form* find_form(std::string_view type);
  static constexpr unsigned bit(scheme s) { return 1U << static_cast<unsigned>(s); }

  scalar_or_container begin(simdjson::dom::element json);
  simdjson::dom::element next_item(container& open) const;
  static value finish(container& complete);

  [[nodiscard]] std::string path_to_value() const;
  [[noreturn]] void fail(errc code, const std::string& message) const;
  [[noreturn]] void unsupported(std::string_view type) const;

  // Members of a typed value. They throw if the member is missing or has another type.
  std::string_view text_of(const object_type& o, const char* name) const;
  simdjson::dom::array array_of(const object_type& o, const char* name) const;
  simdjson::dom::element member_of(const object_type& o, const char* name) const;
  std::string hex_of(const object_type& o, const char* name) const;
  byte_string bytes_of(const object_type& o, const char* name) const;
  template <class Bits>
  Bits bits_of(const object_type& o) const;
  template <std::size_t Count>
  std::array<std::int64_t, Count> components(const object_type& o, std::size_t required) const;
  std::chrono::year_month_day day_of(std::int64_t y, std::int64_t m, std::int64_t d) const;
  std::chrono::microseconds clock_of(std::int64_t h, std::int64_t m, std::int64_t s,
                                     std::int64_t us) const;
  scalar_or_container open_container(kind type, const simdjson::dom::array& items);

  // One function for each form. The source file has the table of forms.
  scalar_or_container read_null(const object_type& o);
  scalar_or_container read_bool(const object_type& o);
  scalar_or_container read_int(const object_type& o);
  scalar_or_container read_f64(const object_type& o);
  scalar_or_container read_f32(const object_type& o);
  scalar_or_container read_str(const object_type& o);
  scalar_or_container read_char(const object_type& o);
  scalar_or_container read_bytes(const object_type& o);
  scalar_or_container read_uuid(const object_type& o);
  scalar_or_container read_decimal(const object_type& o);
  scalar_or_container read_path(const object_type& o);
  scalar_or_container read_datetime(const object_type& o);
  scalar_or_container read_date(const object_type& o);
  scalar_or_container read_time(const object_type& o);
  scalar_or_container read_list(const object_type& o);
  scalar_or_container read_set(const object_type& o);
  scalar_or_container read_map(const object_type& o);
  scalar_or_container read_array(const object_type& o);
  scalar_or_container read_enum(const object_type& o);
  scalar_or_container read_optional(const object_type& o);
  scalar_or_container read_object(const object_type& o);
  scalar_or_container read_identity(const object_type& o);

  scheme scheme_;
  std::string_view root_{};
  std::vector<container> stack_{};
};

/// The error for text that is not valid JSON.
[[nodiscard]] error json_error(simdjson::error_code code, std::string path = {});

}  // namespace HOLDFAST_NAMESPACE::detail::key
