#pragma once

/// \file
/// Codecs: how an answer becomes the owned bytes that a store keeps, and an answer again.
///
/// | type | its codec |
/// | --- | --- |
/// | `std::string`, `std::vector<std::byte>` | `raw_codec`: the bytes as they are |
/// | a type with `to_json` and `from_json` | JSON text, with `<holdfast/nlohmann.hpp>` |
/// | a type of your own | two functions beside it, or a specialisation of `codec` |
///
/// The two functions, in the namespace of the type:
///
///     std::string holdfast_encode(const money& m);
///     money holdfast_decode(std::string_view bytes, std::type_identity<money>);

#include <holdfast/version.hpp>

#include <concepts>
#include <cstddef>
#include <cstring>
#include <exception>
#include <new>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace HOLDFAST_NAMESPACE {

/// The codec that is taken for a T unless another is given. Specialise it for a type of your own:
///
///     template <>
///     struct holdfast::codec<money> {
///       std::string encode(const money& m) const;
///       money decode(std::string_view bytes) const;
///     };
///
/// Both may be called from several threads at once. What they throw becomes a holdfast::error (see encode_payload).
template <class T>
struct codec;

/// C turns a T into owned bytes and back.
template <class C, class T>
concept codec_for = requires(const C& how, const T& answer, std::string_view bytes) {
  { how.encode(answer) } -> std::same_as<std::string>;
  { how.decode(bytes) } -> std::same_as<T>;
};

/// There is a codec for T without saying more.
template <class T>
concept encodable = codec_for<codec<T>, T>;

namespace detail {

template <class T>
concept raw_bytes = std::same_as<T, std::string> || std::same_as<T, std::vector<std::byte>>;

template <class T>
concept has_holdfast_codec = requires(const T& answer, std::string_view bytes) {
  { holdfast_encode(answer) } -> std::same_as<std::string>;
  { holdfast_decode(bytes, std::type_identity<T>{}) } -> std::same_as<T>;
};

/// Throws the exception that is being handled again: a holdfast::error and std::bad_alloc as they are, anything else as errc::malformed.
[[noreturn]] HOLDFAST_API void rethrow_as_codec_error(const char* what_failed);

}  // namespace detail

/// Bytes as they are. Bytes that are not text want a store with payload_column::bytes.
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
  [[nodiscard]] std::string encode(const T& answer) const { return holdfast_encode(answer); }
  [[nodiscard]] T decode(std::string_view bytes) const { return holdfast_decode(bytes, std::type_identity<T>{}); }
};

/// The codec of T, or a compile error that says what to do.
template <class T>
[[nodiscard]] constexpr auto default_codec() {
  static_assert(encodable<T>,
                "holdfast: there is no codec for this type; include <holdfast/nlohmann.hpp> if it has to_json and from_json, or write "
                "holdfast_encode and holdfast_decode beside it, or specialise holdfast::codec");
  return codec<T>{};
}

/// The bytes of an answer. Throws holdfast::error: that of the codec, or errc::malformed with what the codec said.
template <class T, codec_for<T> C>
[[nodiscard]] std::string encode_payload(const T& answer, const C& how) {
  try {
    return how.encode(answer);
  } catch (...) {
    detail::rethrow_as_codec_error("the answer cannot be encoded");
  }
}
template <class T>
[[nodiscard]] std::string encode_payload(const T& answer) {
  return encode_payload(answer, default_codec<T>());
}

/// The answer of bytes. Throws holdfast::error: that of the codec, or errc::malformed with what the codec said.
template <class T, codec_for<T> C>
[[nodiscard]] T decode_payload(std::string_view bytes, const C& how) {
  try {
    return how.decode(bytes);
  } catch (...) {
    detail::rethrow_as_codec_error("the payload cannot be decoded");
  }
}
template <class T>
[[nodiscard]] T decode_payload(std::string_view bytes) {
  return decode_payload<T>(bytes, default_codec<T>());
}

}  // namespace HOLDFAST_NAMESPACE
