#pragma once

/// \file
/// Writes JSON. 64-bit numbers that a client stores or compares are texts (`wide`), because
/// JavaScript reads numbers as doubles.

#include <holdfast/clock.hpp>
#include <holdfast/version.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace HOLDFAST_NAMESPACE::detail::serve {

/// Appends values in the order of the calls, with the commas between them. Ill-formed UTF-8 in a
/// text is replaced by U+FFFD.
///
///     json_writer out;
///     out.begin_object().member("name", name).key("ids").begin_array();
///     for (const auto id : ids) out.wide(id);
///     out.end_array().end_object();
///
/// Thread-safety: none.
class json_writer {
 public:
  json_writer& begin_object();
  json_writer& end_object();
  json_writer& begin_array();
  json_writer& end_array();
  json_writer& key(std::string_view name);

  json_writer& text(std::string_view value);
  /// A JSON number: for counts and small numbers.
  json_writer& number(std::int64_t value);
  json_writer& number(std::uint64_t value);
  /// NaN and infinity become null.
  json_writer& number(double value);
  /// A 64-bit number as a text.
  json_writer& wide(std::int64_t value);
  json_writer& boolean(bool value);
  json_writer& null();
  /// RFC 3339 in UTC with microseconds, as a text.
  json_writer& time(timestamp value);
  /// JSON that is well-formed already.
  json_writer& raw(std::string_view json);

  json_writer& member(std::string_view name, std::string_view value) {
    return key(name).text(value);
  }
  json_writer& member(std::string_view name, const char* value) { return key(name).text(value); }
  json_writer& member(std::string_view name, bool value) { return key(name).boolean(value); }
  json_writer& member(std::string_view name, timestamp value) { return key(name).time(value); }
  template <class Number>
    requires(std::is_arithmetic_v<Number> && !std::is_same_v<Number, bool>)
  json_writer& member(std::string_view name, Number value) {
    if constexpr (std::is_floating_point_v<Number>) return key(name).number(double{value});
    else if constexpr (std::is_signed_v<Number>) return key(name).number(std::int64_t{value});
    else return key(name).number(std::uint64_t{value});
  }

  [[nodiscard]] const std::string& json() const noexcept { return json_; }
  [[nodiscard]] std::string take() noexcept { return std::move(json_); }

 private:
  void separate();

  std::string json_{};
  bool needs_comma_ = false;
};

/// RFC 3339 in UTC with microseconds, as `json_writer::time` without its quotes.
[[nodiscard]] std::string time_text(timestamp value);

}  // namespace HOLDFAST_NAMESPACE::detail::serve
