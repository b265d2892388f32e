#pragma once

/// \file
/// Reads untrusted MessagePack token by token. Does not allocate and does not throw.
///
/// The cursor refuses a document that declares more elements and payload bytes, in all its
/// containers together, than its length can hold. Callers can therefore reserve memory for a
/// declared size.

#include <holdfast/version.hpp>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

namespace HOLDFAST_NAMESPACE::detail::cachekit {

enum class token_kind : std::uint8_t {
  null,
  boolean,
  unsigned_integer,
  negative_integer,
  floating,
  text,
  bytes,
  extension,
  list,
  map
};

/// A scalar with its content, or the header of a container.
struct token {
  token_kind kind = token_kind::null;
  bool truth = false;
  std::int8_t extension_type = 0;
  /// The integer (in two's complement if negative), or the number of elements or pairs.
  std::uint64_t number = 0;
  double real = 0;
  /// The content of text, bytes and extensions: a view into the document.
  std::span<const std::byte> payload{};
};

class messagepack_cursor {
 public:
  explicit messagepack_cursor(std::span<const std::byte> document) noexcept
      : rest_(document), budget_(document.empty() ? 0 : document.size() - 1) {}

  /// Reads the next token. Sets only the fields that its kind uses; the others keep their values.
  /// Returns false if the document is damaged; see problem(). Then `out` is unspecified.
  [[nodiscard]] bool next(token& out) noexcept;

  [[nodiscard]] bool at_end() const noexcept { return rest_.empty(); }
  [[nodiscard]] const char* problem() const noexcept { return problem_; }

 private:
  [[nodiscard]] bool fail(const char* problem) noexcept {
    problem_ = problem;
    return false;
  }
  [[nodiscard]] bool fail_truncated() noexcept {
    return fail("the document ends too early; it was truncated");
  }

  /// Takes declared elements, keys, values or payload bytes from the budget. Each needs at least
  /// one byte of the document. The first byte belongs to the root.
  [[nodiscard]] bool charge(std::uint64_t count) noexcept {
    if (count > budget_)
      return fail("declares more than the document can hold; it was truncated or forged");
    budget_ -= count;
    return true;
  }

  template <class Unsigned>
  [[nodiscard]] bool load(std::uint64_t& out) noexcept {
    if (rest_.size() < sizeof(Unsigned)) return fail_truncated();
    Unsigned number = 0;
    for (std::size_t i = 0; i < sizeof(Unsigned); ++i) {
      number = static_cast<Unsigned>((std::uint64_t{number} << 8) |
                                     std::to_integer<std::uint64_t>(rest_[i]));
    }
    rest_ = rest_.subspan(sizeof(Unsigned));
    out = number;
    return true;
  }

  /// Reads a big-endian number of 2^exponent bytes: 1, 2, 4 or 8.
  [[nodiscard]] bool load_number(unsigned exponent, std::uint64_t& out) noexcept {
    switch (exponent) {
      case 0:
        return load<std::uint8_t>(out);
      case 1:
        return load<std::uint16_t>(out);
      case 2:
        return load<std::uint32_t>(out);
      default:
        return load<std::uint64_t>(out);
    }
  }

  [[nodiscard]] bool read_payload(token& out, token_kind kind, std::uint64_t length) noexcept {
    if (!charge(length)) return false;
    if (length > rest_.size()) return fail_truncated();
    out.kind = kind;
    out.payload = rest_.first(static_cast<std::size_t>(length));
    rest_ = rest_.subspan(static_cast<std::size_t>(length));
    return true;
  }

  [[nodiscard]] bool read_extension(token& out, std::uint64_t length) noexcept {
    std::uint64_t type = 0;
    if (!load<std::uint8_t>(type)) return false;
    out.extension_type = static_cast<std::int8_t>(type);
    return read_payload(out, token_kind::extension, length);
  }

  [[nodiscard]] bool read_container(token& out, token_kind kind, std::uint64_t count) noexcept {
    out.kind = kind;
    out.number = count;
    return charge(kind == token_kind::map ? count * 2 : count);  // count has 32 bits: no overflow
  }

  [[nodiscard]] bool read_signed_integer(token& out, unsigned exponent) noexcept {
    if (!load_number(exponent, out.number)) return false;
    const unsigned unused_bits = 64 - (8U << exponent);
    const auto number = static_cast<std::int64_t>(out.number << unused_bits) >> unused_bits;
    out.number = static_cast<std::uint64_t>(number);
    out.kind = number < 0 ? token_kind::negative_integer : token_kind::unsigned_integer;
    return true;
  }

  /// Reads a token whose first byte is a marker from c0 to df.
  [[nodiscard]] bool read_marked(token& out, unsigned marker) noexcept;

  std::span<const std::byte> rest_;
  std::uint64_t budget_;  // elements and bytes that the document may still declare
  const char* problem_ = "";
};

inline bool messagepack_cursor::next(token& out) noexcept {
  if (rest_.empty()) return fail_truncated();
  const auto marker = std::to_integer<unsigned>(rest_.front());
  rest_ = rest_.subspan(1);
  if (marker < 0x80) {
    out.kind = token_kind::unsigned_integer;
    out.number = marker;
    return true;
  }
  if (marker >= 0xe0) {
    out.kind = token_kind::negative_integer;
    out.number = static_cast<std::uint64_t>(static_cast<std::int64_t>(marker) - 0x100);
    return true;
  }
  if (marker < 0x90) return read_container(out, token_kind::map, marker & 0x0f);
  if (marker < 0xa0) return read_container(out, token_kind::list, marker & 0x0f);
  if (marker < 0xc0) return read_payload(out, token_kind::text, marker & 0x1f);
  return read_marked(out, marker);
}

inline bool messagepack_cursor::read_marked(token& out, unsigned marker) noexcept {
  std::uint64_t length = 0;
  std::uint64_t bits = 0;  // of a floating-point number
  switch (marker) {
    case 0xc0:
      out.kind = token_kind::null;
      return true;
    case 0xc1:
      return fail("the byte c1 is reserved and cannot begin a value");
    case 0xc2:
    case 0xc3:
      out.kind = token_kind::boolean;
      out.truth = marker == 0xc3;
      return true;
    case 0xc4:
    case 0xc5:
    case 0xc6:
      return load_number(marker - 0xc4, length) && read_payload(out, token_kind::bytes, length);
    case 0xc7:
    case 0xc8:
    case 0xc9:
      return load_number(marker - 0xc7, length) && read_extension(out, length);
    case 0xca:
      if (!load<std::uint32_t>(bits)) return false;
      out.kind = token_kind::floating;
      out.real = static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
      return true;
    case 0xcb:
      if (!load<std::uint64_t>(bits)) return false;
      out.kind = token_kind::floating;
      out.real = std::bit_cast<double>(bits);
      return true;
    case 0xcc:
    case 0xcd:
    case 0xce:
    case 0xcf:
      out.kind = token_kind::unsigned_integer;
      return load_number(marker - 0xcc, out.number);
    case 0xd0:
    case 0xd1:
    case 0xd2:
    case 0xd3:
      return read_signed_integer(out, marker - 0xd0);
    case 0xd4:
    case 0xd5:
    case 0xd6:
    case 0xd7:
    case 0xd8:
      return read_extension(out, std::uint64_t{1} << (marker - 0xd4));
    case 0xd9:
    case 0xda:
    case 0xdb:
      return load_number(marker - 0xd9, length) && read_payload(out, token_kind::text, length);
    case 0xdc:
    case 0xdd:
      return load_number(marker - 0xdc + 1, length) &&
             read_container(out, token_kind::list, length);
    default:
      return load_number(marker - 0xde + 1, length) && read_container(out, token_kind::map, length);
  }
}

}  // namespace HOLDFAST_NAMESPACE::detail::cachekit
