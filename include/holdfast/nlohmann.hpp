#pragma once

/// \file
/// Optional: encodes answers as JSON text with nlohmann::json. Including this header gives a codec
/// to every type that nlohmann::json converts: types with `to_json` and `from_json` (or
/// NLOHMANN_DEFINE_TYPE_...), the standard containers and std::optional of them, and
/// nlohmann::json. Numbers, bool, and optionals and vectors of basic types have the codec of
/// codec.hpp, whether this header is included or not.
///
/// Values that JSON text cannot represent are refused: NaN, infinity, ill-formed UTF-8, binary.
/// `std::string` is stored as raw bytes (see codec.hpp); use `json_codec<std::string>` to store a
/// JSON string.

#include <holdfast/codec.hpp>
#include <holdfast/error.hpp>
#include <holdfast/version.hpp>

#include <nlohmann/json.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace HOLDFAST_NAMESPACE::detail {

template <class T>
inline constexpr bool is_optional = false;
template <class T>
inline constexpr bool is_optional<std::optional<T>> = true;

}  // namespace HOLDFAST_NAMESPACE::detail

/// Converts an empty optional to null. A serializer of your own for std::optional is more
/// specialised and takes precedence.
template <class T>
  requires holdfast::detail::is_optional<T>
struct nlohmann::adl_serializer<T, void> {
  template <class Json>
  static void to_json(Json& json, const T& optional)
    requires std::is_constructible_v<Json, const typename T::value_type&>
  {
    if (optional) json = *optional;
    else json = nullptr;
  }
  template <class Json>
  static auto from_json(const Json& json, T& optional)
      -> decltype(optional = json.template get<typename T::value_type>(), void()) {
    if (json.is_null()) optional.reset();
    else optional = json.template get<typename T::value_type>();
  }
};

namespace HOLDFAST_NAMESPACE {

namespace detail {

template <class T>
concept json_able =
    std::is_constructible_v<nlohmann::json, const T&> && requires(const nlohmann::json& json) {
      { json.template get<T>() } -> std::same_as<T>;
    };

/// The limit of nesting. It prevents a stack overflow on documents from outside.
inline constexpr std::size_t max_json_depth = 1024;

/// Throws if JSON text cannot represent `value`. `path` is the path to `value`.
inline void check_json(const nlohmann::json& value, std::string& path, std::size_t depth = 0) {
  if (depth > max_json_depth)
    throw error(errc::too_deep, "the answer is nested deeper than 1024 levels");
  const auto needs_check = [](const nlohmann::json& item) {
    return item.is_structured() || item.is_number_float() || item.is_binary();
  };
  const auto check_item = [&](const nlohmann::json& item, const std::string& step) {
    const auto length = path.size();
    path += step;
    check_json(item, path, depth + 1);
    path.resize(length);
  };
  if (value.is_number_float() && !std::isfinite(value.get<double>()))
    throw error(errc::not_finite,
                "JSON cannot represent NaN or infinity; leave the value out or make it null",
                {.path = path});
  if (value.is_binary() || value.is_discarded())
    throw error(errc::unsupported_type,
                "JSON cannot represent binary values; encode them as text, for example in base64",
                {.path = path});
  if (value.is_object()) {
    for (auto item = value.begin(); item != value.end(); ++item) {
      if (needs_check(*item)) check_item(*item, "." + item.key());
    }
  } else if (value.is_array()) {
    for (std::size_t i = 0; i < value.size(); ++i) {
      if (needs_check(value[i])) check_item(value[i], "[" + std::to_string(i) + "]");
    }
  }
}

/// Returns the message of an exception without its prefix `[json.exception.type_error.302] `.
inline std::string json_reason(const nlohmann::json::exception& e) {
  const std::string_view text = e.what();
  const auto end = text.find("] ");
  return std::string(end == std::string_view::npos ? text : text.substr(end + 2));
}

inline std::string write_json(const nlohmann::json& document) {
  std::string path = "answer";
  check_json(document, path);
  try {
    return document.dump();
  } catch (const nlohmann::json::type_error& e) {
    throw error(errc::ill_formed_text,
                "the answer contains text that is not well-formed UTF-8: " + json_reason(e),
                {.path = path});
  }
}

/// Throws errc::malformed if the nesting of a document exceeds the limit. Runs before the parser,
/// which recurses.
inline void check_json_depth(std::string_view text) {
  bool in_string = false;
  std::size_t depth = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      else if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      if (++depth > max_json_depth)
        throw error(errc::malformed, "the payload is nested deeper than 1024 levels",
                    {.path = "payload"});
    } else if ((c == ']' || c == '}') && depth > 0) {
      --depth;
    }
  }
}

/// Throws errc::malformed. The message names a position, never the content: payloads must not reach
/// the log.
inline nlohmann::json read_json(std::string_view text) {
  check_json_depth(text);
  try {
    return nlohmann::json::parse(text);
  } catch (const nlohmann::json::parse_error& e) {
    throw error(errc::malformed,
                text.empty() ? "the payload is empty"
                             : "the payload is not JSON: error at byte " + std::to_string(e.byte),
                {.path = "payload"});
  } catch (const nlohmann::json::out_of_range&) {
    throw error(errc::malformed, "the payload contains a number that is too large",
                {.path = "payload"});
  }
}

}  // namespace detail

/// Encodes types that nlohmann::json converts as JSON text.
/// Thread-safety: that of `to_json` and `from_json`. The codec has no state.
template <detail::json_able T>
struct json_codec {
  /// Throws errc::not_finite, errc::ill_formed_text, errc::unsupported_type (binary),
  /// errc::too_deep, and what `to_json` throws.
  [[nodiscard]] std::string encode(const T& answer) const {
    return detail::write_json(nlohmann::json(answer));
  }

  /// Throws errc::malformed if the text is not JSON or not a T, and what `from_json` throws.
  [[nodiscard]] T decode(std::string_view bytes) const {
    const nlohmann::json document = detail::read_json(bytes);
    try {
      if constexpr (std::integral<T> && !std::same_as<T, bool>) {
        // nlohmann::json would truncate the number.
        if (!document.is_number_integer() || !fits(document))
          throw error(errc::malformed, "the payload is not an integer of this size");
      }
      return document.template get<T>();
    } catch (const nlohmann::json::exception& e) {
      throw error(errc::malformed,
                  "the payload is JSON, but does not match the type: " + detail::json_reason(e),
                  {.path = "payload"});
    }
  }

 private:
  static bool fits(const nlohmann::json& number)
    requires std::integral<T>
  {
    const auto check = [](auto whole) {
      return static_cast<decltype(whole)>(static_cast<T>(whole)) == whole &&
             (whole < 0) == (static_cast<T>(whole) < 0);
    };
    return number.is_number_unsigned() ? check(number.template get<std::uint64_t>())
                                       : check(number.template get<std::int64_t>());
  }
};

template <detail::json_able T>
  requires(!detail::raw_bytes<T> && !detail::built_in<T> && !detail::has_holdfast_codec<T>)
struct codec<T> : json_codec<T> {};

}  // namespace HOLDFAST_NAMESPACE
