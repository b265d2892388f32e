#pragma once

/// \file
/// Fast paths for calls with a few plain arguments: integers, booleans, null and short ASCII texts.
/// They write into a buffer on the stack, without a writer, and give the same bytes as the general
/// path (writer.hpp). User code does not need this header.

#include <holdfast/key/keyable.hpp>
#include <holdfast/version.hpp>

#include <charconv>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>

namespace HOLDFAST_NAMESPACE::key::detail {

// The functions below write MessagePack to `out` and return the end of the written bytes. They need
// space for 9 bytes.

/// Writes a marker and the lowest `width` bytes of a number, most significant byte first.
inline char* write_big_endian(char* out, unsigned char marker, std::uint64_t v,
                              std::size_t width) noexcept {
  *out++ = static_cast<char>(marker);
  for (std::size_t i = width; i-- > 0;) *out++ = static_cast<char>(v >> (8 * i));
  return out;
}

/// Writes an unsigned integer in its shortest form.
inline char* write_unsigned(char* out, std::uint64_t v) noexcept {
  if (v < 0x80) {
    *out = static_cast<char>(v);
    return out + 1;
  }
  if (v <= 0xFF) return write_big_endian(out, 0xcc, v, 1);
  if (v <= 0xFFFF) return write_big_endian(out, 0xcd, v, 2);
  if (v <= 0xFFFFFFFF) return write_big_endian(out, 0xce, v, 4);
  return write_big_endian(out, 0xcf, v, 8);
}

/// Writes a negative integer in its shortest form.
inline char* write_negative(char* out, std::int64_t v) noexcept {
  const auto bits = static_cast<std::uint64_t>(v);
  if (v >= -32) {
    *out = static_cast<char>(v);
    return out + 1;
  }
  if (v >= std::numeric_limits<std::int8_t>::min()) return write_big_endian(out, 0xd0, bits, 1);
  if (v >= std::numeric_limits<std::int16_t>::min()) return write_big_endian(out, 0xd1, bits, 2);
  if (v >= std::numeric_limits<std::int32_t>::min()) return write_big_endian(out, 0xd2, bits, 4);
  return write_big_endian(out, 0xd3, bits, 8);
}

/// Whether the fast paths support a type. Not char pointers, which may be null.
template <class T>
inline constexpr bool is_plain =
    !has_holdfast_key<T> && (null_like<T> || std::same_as<T, bool> || is_integer<T> ||
                             (text_like<T> && !std::is_pointer_v<T>));

/// Longest text that the fast paths support: the longest with a one-byte MessagePack header.
inline constexpr std::size_t max_small_text = 31;
/// Upper bound for the bytes of one argument, including its header or separator.
inline constexpr std::size_t max_small_argument = 40;

/// A call as MessagePack.
class small_call {
 public:
  /// Writes the arguments as an array. Returns false if one of them does not fit: discard the
  /// object then.
  template <class... A>
  [[nodiscard]] bool write(const A&... args) noexcept {
    static_assert(sizeof...(A) < 16);
    *end_++ = static_cast<char>(0x90U | sizeof...(A));
    return (add(args) && ...);
  }
  void add_byte(unsigned char byte) noexcept { *end_++ = static_cast<char>(byte); }
  [[nodiscard]] std::string_view bytes() const noexcept {
    return {buffer_, static_cast<std::size_t>(end_ - buffer_)};
  }

 private:
  template <class T>
  bool add(const T& v) noexcept {
    if (end_ > buffer_ + sizeof buffer_ - max_small_argument) return false;
    if constexpr (null_like<T>) {
      add_byte(0xc0);
    } else if constexpr (std::same_as<T, bool>) {
      add_byte(v ? 0xc3 : 0xc2);
    } else if constexpr (std::integral<T> && std::is_signed_v<T>) {
      end_ = v < 0 ? write_negative(end_, v) : write_unsigned(end_, static_cast<std::uint64_t>(v));
    } else if constexpr (std::integral<T>) {
      end_ = write_unsigned(end_, v);
    } else {
      const std::string_view text(v);
      if (text.size() > max_small_text) return false;
      *end_++ = static_cast<char>(0xa0U | text.size());
      for (const char c : text) {
        if ((static_cast<unsigned char>(c) & 0x80U) != 0) return false;
        *end_++ = c;
      }
    }
    return true;
  }

  char buffer_[256];  // NOLINT(*-avoid-c-arrays): not initialised on purpose
  char* end_ = buffer_;
};

/// A call as the raw text of the failover scheme. Texts that would have to be escaped do not fit.
class small_text {
 public:
  /// Returns false if an argument does not fit: discard the object then.
  template <class... A>
  [[nodiscard]] bool write(bool escaped, const A&... args) noexcept {
    return (add(escaped, args) && ...);
  }
  [[nodiscard]] std::string_view text() const noexcept {
    return {buffer_, static_cast<std::size_t>(end_ - buffer_)};
  }

 private:
  template <class T>
  bool add(bool escaped, const T& v) noexcept {
    if (end_ > buffer_ + sizeof buffer_ - max_small_argument) return false;
    if (end_ != buffer_) *end_++ = ':';
    if constexpr (null_like<T>) {
      return false;
    } else if constexpr (std::same_as<T, bool>) {
      return put(v ? std::string_view("true") : std::string_view("false"));
    } else if constexpr (std::integral<T>) {
      end_ = std::to_chars(end_, end_ + 24, v).ptr;
      return true;
    } else {
      const std::string_view text(v);
      if (text.size() > max_small_text || (escaped && (text.empty() || text == "NO-ARG")))
        return false;
      for (const char c : text) {
        if ((static_cast<unsigned char>(c) & 0x80U) != 0 ||
            (escaped && (c == ':' || c == ',' || c == '\\')))
          return false;
      }
      // After an empty first text the next argument would not get its separator.
      return !(text.empty() && end_ == buffer_) && put(text);
    }
  }
  bool put(std::string_view piece) noexcept {
    for (const char c : piece) *end_++ = c;
    return true;
  }

  char buffer_[256];  // NOLINT(*-avoid-c-arrays): not initialised on purpose
  char* end_ = buffer_;
};

}  // namespace HOLDFAST_NAMESPACE::key::detail
