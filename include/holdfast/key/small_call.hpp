#pragma once

/// \file
/// The bytes of a call whose arguments are few and plain, which most are: integers, booleans, null and short ASCII texts. They are written
/// in place, without a writer in between; the general way (writer.hpp) gives the same bytes. User code does not call this.

#include <holdfast/key/keyable.hpp>
#include <holdfast/version.hpp>

#include <charconv>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>

namespace HOLDFAST_NAMESPACE::key::detail {

/// A marker and a number of `width` bytes, the highest first.
inline char* write_big_endian(char* to, unsigned char marker, std::uint64_t v, std::size_t width) noexcept {
  *to++ = static_cast<char>(marker);
  for (std::size_t i = width; i-- > 0;) *to++ = static_cast<char>(v >> (8 * i));
  return to;
}

/// MessagePack's shortest form. Both need room for 9 bytes.
inline char* write_unsigned(char* to, std::uint64_t v) noexcept {
  if (v < 0x80) {
    *to = static_cast<char>(v);
    return to + 1;
  }
  if (v <= 0xFF) return write_big_endian(to, 0xcc, v, 1);
  if (v <= 0xFFFF) return write_big_endian(to, 0xcd, v, 2);
  if (v <= 0xFFFFFFFF) return write_big_endian(to, 0xce, v, 4);
  return write_big_endian(to, 0xcf, v, 8);
}
inline char* write_negative(char* to, std::int64_t v) noexcept {
  const auto bits = static_cast<std::uint64_t>(v);
  if (v >= -32) {
    *to = static_cast<char>(v);
    return to + 1;
  }
  if (v >= std::numeric_limits<std::int8_t>::min()) return write_big_endian(to, 0xd0, bits, 1);
  if (v >= std::numeric_limits<std::int16_t>::min()) return write_big_endian(to, 0xd1, bits, 2);
  if (v >= std::numeric_limits<std::int32_t>::min()) return write_big_endian(to, 0xd2, bits, 4);
  return write_big_endian(to, 0xd3, bits, 8);
}

template <class T>
inline constexpr bool is_plain_integer =
    std::integral<T> && sizeof(T) <= 8 && !std::same_as<T, bool> && !std::same_as<T, char> && !std::same_as<T, wchar_t> &&
    !std::same_as<T, char8_t> && !std::same_as<T, char16_t> && !std::same_as<T, char32_t>;

/// What may be in a small call. A char pointer may be null, which the general way knows.
template <class T>
inline constexpr bool is_plain =
    !has_holdfast_key<T> && (null_like<T> || std::same_as<T, bool> || is_plain_integer<T> || (text_like<T> && !std::is_pointer_v<T>));

class small_call {
 public:
  /// False when an argument is not small after all: then nothing of this counts.
  template <class... A>
  [[nodiscard]] bool write(const A&... args) noexcept {
    static_assert(sizeof...(A) < 16);
    *end_++ = static_cast<char>(0x90U | sizeof...(A));
    return (add(args) && ...);
  }
  /// Before the arguments, and after them.
  void add_byte(unsigned char byte) noexcept { *end_++ = static_cast<char>(byte); }
  [[nodiscard]] std::string_view bytes() const noexcept { return {buffer_, static_cast<std::size_t>(end_ - buffer_)}; }

 private:
  template <class T>
  bool add(const T& v) noexcept {
    if (end_ > buffer_ + sizeof buffer_ - 40) return false;
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
      if (text.size() > 31) return false;
      *end_++ = static_cast<char>(0xa0U | text.size());
      for (const char c : text) {
        if ((static_cast<unsigned char>(c) & 0x80U) != 0) return false;
        *end_++ = c;
      }
    }
    return true;
  }

  char buffer_[256];  // NOLINT(*-avoid-c-arrays): deliberately not initialised
  char* end_ = buffer_;
};

/// The same for the failover scheme: the raw text of integers, booleans and short ASCII texts in which nothing has to be escaped.
class small_text {
 public:
  template <class... A>
  [[nodiscard]] bool write(bool escaped, const A&... args) noexcept {
    return (add(escaped, args) && ...);
  }
  [[nodiscard]] std::string_view text() const noexcept { return {buffer_, static_cast<std::size_t>(end_ - buffer_)}; }

 private:
  template <class T>
  bool add(bool escaped, const T& v) noexcept {
    if (end_ > buffer_ + sizeof buffer_ - 40) return false;
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
      if (text.size() > 31 || (escaped && (text.empty() || text == "NO-ARG"))) return false;
      for (const char c : text) {
        if ((static_cast<unsigned char>(c) & 0x80U) != 0 || (escaped && (c == ':' || c == ',' || c == '\\'))) return false;
      }
      return !(text.empty() && end_ == buffer_) && put(text);
    }
  }
  bool put(std::string_view piece) noexcept {
    for (const char c : piece) *end_++ = c;
    return true;
  }

  char buffer_[256];  // NOLINT(*-avoid-c-arrays): deliberately not initialised
  char* end_ = buffer_;
};

}  // namespace HOLDFAST_NAMESPACE::key::detail
