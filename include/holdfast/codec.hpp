#pragma once

/// \file
/// Codecs encode a value, such as an answer, into the bytes that a store keeps, and decode it
/// again.
///
/// | type | codec |
/// | --- | --- |
/// | `std::string`, `std::vector<std::byte>` | `raw_codec`: the bytes unchanged |
/// | a type with `to_json` and `from_json` | JSON text, with `<holdfast/nlohmann.hpp>` |
/// | a type of your own | two functions next to it, or a specialisation of `codec` |
///
/// The two functions are declared in the namespace of the type:
///
///     std::string holdfast_encode(const money& m);
///     money holdfast_decode(std::string_view bytes, std::type_identity<money>);

#include <holdfast/version.hpp>

#include <concepts>
#include <cstddef>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace HOLDFAST_NAMESPACE {

/// The default codec of T. Specialise it for a type of your own:
///
///     template <>
///     struct holdfast::codec<money> {
///       std::string encode(const money& m) const;
///       money decode(std::string_view bytes) const;
///     };
///
/// Both functions may be called from several threads at once. They may throw; see encode_payload.
template <class T>
struct codec;

/// C encodes and decodes T.
template <class C, class T>
concept codec_for = requires(const C& c, const T& value, std::string_view bytes) {
  { c.encode(value) } -> std::same_as<std::string>;
  { c.decode(bytes) } -> std::same_as<T>;
};

/// T has a default codec.
template <class T>
concept encodable = codec_for<codec<T>, T>;

namespace detail {

template <class T>
concept raw_bytes = std::same_as<T, std::string> || std::same_as<T, std::vector<std::byte>>;

template <class T>
concept has_holdfast_codec = requires(const T& value, std::string_view bytes) {
  { holdfast_encode(value) } -> std::same_as<std::string>;
  { holdfast_decode(bytes, std::type_identity<T>{}) } -> std::same_as<T>;
};

/// Rethrows the current exception: holdfast::error and std::bad_alloc unchanged, others as
/// errc::malformed with `problem` in front of the message.
[[noreturn]] HOLDFAST_API void rethrow_as_codec_error(const char* problem);

}  // namespace detail

/// Stores bytes unchanged. Bytes that are not text need a store with payload_column::bytes.
template <detail::raw_bytes T>
struct raw_codec {
  [[nodiscard]] std::string encode(const T& bytes) const {
    if constexpr (std::same_as<T, std::string>) {
      return bytes;
    } else {
      std::string result(bytes.size(), '\0');
      if (!bytes.empty()) std::memcpy(result.data(), bytes.data(), bytes.size());
      return result;
    }
  }
  [[nodiscard]] T decode(std::string_view bytes) const {
    if constexpr (std::same_as<T, std::string>) {
      return T(bytes);
    } else {
      T result(bytes.size());
      if (!bytes.empty()) std::memcpy(result.data(), bytes.data(), bytes.size());
      return result;
    }
  }
};

template <detail::raw_bytes T>
struct codec<T> : raw_codec<T> {};

template <class T>
  requires(detail::has_holdfast_codec<T> && !detail::raw_bytes<T>)
struct codec<T> {
  [[nodiscard]] std::string encode(const T& value) const { return holdfast_encode(value); }
  [[nodiscard]] T decode(std::string_view bytes) const {
    return holdfast_decode(bytes, std::type_identity<T>{});
  }
};

/// Returns the default codec of T, or fails to compile with a message that says what to do.
template <class T>
[[nodiscard]] constexpr auto default_codec() {
  static_assert(encodable<T>,
                "holdfast: there is no codec for this type; include <holdfast/nlohmann.hpp> if it "
                "has to_json and from_json, or write "
                "holdfast_encode and holdfast_decode next to it, or specialise holdfast::codec");
  return codec<T>{};
}

/// Encodes a value. Of the exceptions of the codec, holdfast::error and std::bad_alloc pass
/// unchanged; all others become errc::malformed.
template <class T, codec_for<T> C>
[[nodiscard]] std::string encode_payload(const T& value, const C& chosen_codec) {
  try {
    return chosen_codec.encode(value);
  } catch (...) {
    detail::rethrow_as_codec_error("the answer cannot be encoded");
  }
}
template <class T>
[[nodiscard]] std::string encode_payload(const T& value) {
  return encode_payload(value, default_codec<T>());
}

/// Decodes a value. Throws as encode_payload.
template <class T, codec_for<T> C>
[[nodiscard]] T decode_payload(std::string_view bytes, const C& chosen_codec) {
  try {
    return chosen_codec.decode(bytes);
  } catch (...) {
    detail::rethrow_as_codec_error("the payload cannot be decoded");
  }
}
template <class T>
[[nodiscard]] T decode_payload(std::string_view bytes) {
  return decode_payload<T>(bytes, default_codec<T>());
}

}  // namespace HOLDFAST_NAMESPACE
