#pragma once

/// \file
/// Codecs encode a value, such as an answer, into the bytes that a store keeps, and decode it
/// again.
///
/// | type | codec |
/// | --- | --- |
/// | `std::string`, `std::vector<std::byte>` | `raw_codec`: the bytes unchanged |
/// | `bool`, integers, `float`, `double`; `std::optional` and `std::vector` of these, of texts and of bytes | `built_in_codec`: JSON text |
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
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <span>
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

/// A number that JSON text can represent, or a truth value.
template <class T>
concept json_number = (std::integral<T> && sizeof(T) <= sizeof(std::uint64_t)) ||
                      std::same_as<T, float> || std::same_as<T, double>;

template <class T>
inline constexpr bool has_built_in_codec = json_number<T> || raw_bytes<T>;
template <class T>
inline constexpr bool has_built_in_codec<std::vector<T>> =
    has_built_in_codec<T> || std::same_as<T, std::byte>;
template <class T>
inline constexpr bool has_built_in_codec<std::optional<T>> = has_built_in_codec<T>;
/// JSON has one null only.
template <class T>
inline constexpr bool has_built_in_codec<std::optional<std::optional<T>>> = false;

template <class T>
concept built_in = has_built_in_codec<T> && !raw_bytes<T> && !has_holdfast_codec<T>;

/// Writes JSON text. Throws errc::not_finite and errc::ill_formed_text.
class HOLDFAST_API json_writer {
 public:
  void boolean(bool value);
  void integer(std::int64_t value);
  void unsigned_integer(std::uint64_t value);
  void number(float value);
  void number(double value);
  void text(std::string_view value);
  /// A text in base64.
  void bytes(std::span<const std::byte> value);
  void null();
  void punctuation(char c);
  [[nodiscard]] std::string finish() noexcept;

 private:
  std::string out_{};
};

/// Reads JSON text. Throws errc::malformed if the next value has another type.
class HOLDFAST_API json_reader {
 public:
  explicit json_reader(std::string_view text) noexcept : text_(text), rest_(text) {}

  [[nodiscard]] bool boolean();
  [[nodiscard]] std::int64_t integer(std::int64_t least, std::int64_t most);
  [[nodiscard]] std::uint64_t unsigned_integer(std::uint64_t most);
  [[nodiscard]] float float_number();
  [[nodiscard]] double double_number();
  [[nodiscard]] std::string text();
  [[nodiscard]] std::vector<std::byte> bytes();
  /// Returns false, and reads nothing, if the next value is not null.
  [[nodiscard]] bool null();
  void begin_list();
  /// Returns false, and reads the end of the list, if there are no more items.
  [[nodiscard]] bool next_item(bool first);
  /// Checks that nothing follows.
  void end();

 private:
  [[noreturn]] void fail() const;
  [[noreturn]] void fail(const char* expected) const;
  void skip_space() noexcept;
  [[nodiscard]] bool skip(std::string_view word) noexcept;
  [[nodiscard]] std::string_view number_token();
  template <class Number>
  [[nodiscard]] Number finite();
  void append_escaped(std::string& out);
  [[nodiscard]] char32_t code_unit();

  std::string_view text_;
  std::string_view rest_;
};

template <class T>
void write_built_in(json_writer& writer, const T& value) {
  if constexpr (std::same_as<T, bool>) writer.boolean(value);
  else if constexpr (std::signed_integral<T>) writer.integer(value);
  else if constexpr (std::unsigned_integral<T>) writer.unsigned_integer(value);
  else if constexpr (std::floating_point<T>) writer.number(value);
  else if constexpr (std::same_as<T, std::string>) writer.text(value);
  else if constexpr (raw_bytes<T>) writer.bytes(value);
  else if constexpr (std::same_as<T, std::optional<typename T::value_type>>) {
    if (value) write_built_in(writer, *value);
    else writer.null();
  } else {
    writer.punctuation('[');
    bool first = true;
    for (auto&& item : value) {
      if (!first) writer.punctuation(',');
      first = false;
      write_built_in<typename T::value_type>(writer, item);
    }
    writer.punctuation(']');
  }
}

template <class T>
[[nodiscard]] T read_built_in(json_reader& reader) {
  using limits = std::numeric_limits<T>;
  if constexpr (std::same_as<T, bool>) {
    return reader.boolean();
  } else if constexpr (std::signed_integral<T>) {
    return static_cast<T>(reader.integer(limits::min(), limits::max()));
  } else if constexpr (std::unsigned_integral<T>) {
    return static_cast<T>(reader.unsigned_integer(limits::max()));
  } else if constexpr (std::same_as<T, float>) {
    return reader.float_number();
  } else if constexpr (std::same_as<T, double>) {
    return reader.double_number();
  } else if constexpr (std::same_as<T, std::string>) {
    return reader.text();
  } else if constexpr (raw_bytes<T>) {
    return reader.bytes();
  } else if constexpr (std::same_as<T, std::optional<typename T::value_type>>) {
    if (reader.null()) return std::nullopt;
    return read_built_in<typename T::value_type>(reader);
  } else {
    T items;
    reader.begin_list();
    for (bool first = true; reader.next_item(first); first = false)
      items.push_back(read_built_in<typename T::value_type>(reader));
    return items;
  }
}

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

/// JSON text: `42`, `true`, `0.5`, `null`, `["a","b"]`. Texts and bytes in an optional or a vector
/// are JSON strings, bytes in base64. It is the codec of these types whatever headers are included;
/// <holdfast/nlohmann.hpp> reads what it writes, and the other way round, except bytes.
template <detail::built_in T>
struct built_in_codec {
  /// Throws errc::not_finite and errc::ill_formed_text.
  [[nodiscard]] std::string encode(const T& value) const {
    detail::json_writer writer;
    detail::write_built_in(writer, value);
    return writer.finish();
  }
  /// Throws errc::malformed if the text is not JSON, not a T, or a number that T does not hold.
  [[nodiscard]] T decode(std::string_view bytes) const {
    detail::json_reader reader(bytes);
    T value = detail::read_built_in<T>(reader);
    reader.end();
    return value;
  }
};

template <detail::built_in T>
struct codec<T> : built_in_codec<T> {};

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
