#pragma once

/// \file
/// Opt-in: answers as JSON text, through nlohmann::json. Every type that it can convert has a codec once this header is included: types
/// with `to_json` and `from_json` (or NLOHMANN_DEFINE_TYPE_...), numbers, bool, the standard containers, std::optional, and nlohmann::json.
///
/// The text says what was meant or is refused: NaN and infinity, text that is not well-formed UTF-8 and binary values do not become
/// something else on the way. `std::string` stays raw bytes (see codec.hpp); `json_codec<std::string>` makes it a JSON string.

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

/// An empty optional is null. Less specialised than one of your own for std::optional, which is therefore preferred.
template <class T>
  requires holdfast::detail::is_optional<T>
struct nlohmann::adl_serializer<T, void> {
  template <class Json>
  static void to_json(Json& to, const T& from)
    requires std::is_constructible_v<Json, const typename T::value_type&>
  {
    if (from) to = *from;
    else to = nullptr;
  }
  template <class Json>
  static auto from_json(const Json& from, T& to) -> decltype(to = from.template get<typename T::value_type>(), void()) {
    if (from.is_null()) to.reset();
    else to = from.template get<typename T::value_type>();
  }
};

namespace HOLDFAST_NAMESPACE {

namespace detail {

template <class T>
concept json_able = std::is_constructible_v<nlohmann::json, const T&> && requires(const nlohmann::json& from) {
  { from.template get<T>() } -> std::same_as<T>;
};

/// How deep a document may be; no stack overflows on one from outside.
inline constexpr std::size_t max_json_height = 1024;

/// Refuses what JSON text cannot say; `path` leads to `at`.
inline void check_json(const nlohmann::json& at, std::string& path, std::size_t height = 0) {
  if (height > max_json_height) throw error(errc::too_deep, "the answer is nested deeper than 1024 levels");
  const auto inside = [&](const nlohmann::json& item, const std::string& step) {
    const auto length = path.size();
    path += step;
    check_json(item, path, height + 1);
    path.resize(length);
  };
  if (at.is_number_float() && !std::isfinite(at.get<double>()))
    throw error(errc::not_finite, "JSON has no NaN and no infinity; leave the value out, or make it null", {.path = path});
  if (at.is_binary() || at.is_discarded())
    throw error(errc::unsupported_type, "JSON text has no binary values; encode it as text, in base64 for example", {.path = path});
  if (at.is_object()) {
    for (auto item = at.begin(); item != at.end(); ++item) {
      if (item->is_structured() || item->is_number_float() || item->is_binary()) inside(*item, "." + item.key());
    }
  } else if (at.is_array()) {
    for (std::size_t i = 0; i < at.size(); ++i) {
      if (at[i].is_structured() || at[i].is_number_float() || at[i].is_binary()) inside(at[i], "[" + std::to_string(i) + "]");
    }
  }
}

/// Without `[json.exception.type_error.302] `.
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
    throw error(errc::ill_formed_text, "the answer holds text that is not well-formed UTF-8: " + json_reason(e), {.path = path});
  }
}

/// Throws errc::malformed. The reason names a place, never what is there: payloads do not belong into logs.
inline nlohmann::json read_json(std::string_view text) {
  bool in_text = false;
  std::size_t height = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_text) {
      if (c == '\\') ++i;
      else if (c == '"') in_text = false;
    } else if (c == '"') {
      in_text = true;
    } else if (c == '[' || c == '{') {
      if (++height > max_json_height) throw error(errc::malformed, "the payload is nested deeper than 1024 levels", {.path = "payload"});
    } else if ((c == ']' || c == '}') && height > 0) {
      --height;
    }
  }
  try {
    return nlohmann::json::parse(text);
  } catch (const nlohmann::json::parse_error& e) {
    throw error(errc::malformed, text.empty() ? "the payload is empty" : "the payload is not JSON: wrong at byte " + std::to_string(e.byte),
                {.path = "payload"});
  } catch (const nlohmann::json::out_of_range&) {
    throw error(errc::malformed, "the payload has a number that is too large", {.path = "payload"});
  }
}

}  // namespace detail

/// JSON text of whatever nlohmann::json can convert.
/// Thread-safety: as that of `to_json` and `from_json`; it keeps nothing.
template <detail::json_able T>
struct json_codec {
  /// Throws errc::not_finite, errc::ill_formed_text, errc::unsupported_type (binary), errc::too_deep; what `to_json` throws passes.
  [[nodiscard]] std::string encode(const T& answer) const { return detail::write_json(nlohmann::json(answer)); }

  /// Throws errc::malformed when it is not JSON, or not a T; what else `from_json` throws passes.
  [[nodiscard]] T decode(std::string_view bytes) const {
    const nlohmann::json document = detail::read_json(bytes);
    try {
      if constexpr (std::integral<T> && !std::same_as<T, bool>) {
        // nlohmann would cut it to size.
        if (!document.is_number_integer() || !fits(document)) throw error(errc::malformed, "the payload is not an integer of this size");
      }
      return document.template get<T>();
    } catch (const nlohmann::json::exception& e) {
      throw error(errc::malformed, "the payload is JSON, but not of this type: " + detail::json_reason(e), {.path = "payload"});
    }
  }

 private:
  static bool fits(const nlohmann::json& number)
    requires std::integral<T>
  {
    const auto check = [](auto whole) {
      return static_cast<decltype(whole)>(static_cast<T>(whole)) == whole && (whole < 0) == (static_cast<T>(whole) < 0);
    };
    return number.is_number_unsigned() ? check(number.template get<std::uint64_t>()) : check(number.template get<std::int64_t>());
  }
};

template <detail::json_able T>
  requires(!detail::raw_bytes<T> && !detail::has_holdfast_codec<T>)
struct codec<T> : json_codec<T> {};

}  // namespace HOLDFAST_NAMESPACE
