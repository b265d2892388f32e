#pragma once

/// \file
/// Steps through untrusted MessagePack one token at a time, and keeps the one
/// account that every reader needs: what the document declared so far against
/// what its length can hold. Neither allocates nor throws.

#include <holdfast/version.hpp>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

namespace HOLDFAST_NAMESPACE::key::messagepack {

enum class token_kind : std::uint8_t { null, boolean, unsigned_integer, negative_integer, floating, text, bytes, extension, list, map };

/// One step: a scalar with its content, or the head of a container.
struct token {
  token_kind kind = token_kind::null;
  bool truth = false;
  std::int8_t extension_type = 0;
  std::uint64_t number = 0;  ///< the integer (a negative one in two's complement), or how many elements or pairs follow
  double real = 0;
  std::span<const std::byte> payload{};  ///< of text, bytes and extensions; a view into the document
};

class cursor {
 public:
  explicit cursor(std::span<const std::byte> document) noexcept
      : rest_(document), declarable_(document.empty() ? 0 : document.size() - 1) {}

  /// Reads the next token. False: the document is damaged, and problem() says how.
  [[nodiscard]] bool next(token& out) noexcept;

  [[nodiscard]] bool at_end() const noexcept { return rest_.empty(); }
  [[nodiscard]] const char* problem() const noexcept { return problem_; }

 private:
  [[nodiscard]] bool fail(const char* problem) noexcept {
    problem_ = problem;
    return false;
  }
  [[nodiscard]] bool truncated() noexcept { return fail("the document ends too early; it was truncated"); }

  /// A slot is an element, a key, a value or a byte of a payload: each takes at least one byte, and the first byte of the document is none.
  [[nodiscard]] bool declare(std::uint64_t slots) noexcept {
    if (slots > declarable_) return fail("declares more than the document can hold; it was truncated or forged");
    declarable_ -= slots;
    return true;
  }

  template <class Unsigned>
  [[nodiscard]] bool load(std::uint64_t& out) noexcept {
    if (rest_.size() < sizeof(Unsigned)) return truncated();
    Unsigned number = 0;
    for (std::size_t i = 0; i < sizeof(Unsigned); ++i) {
      number = static_cast<Unsigned>((std::uint64_t{number} << 8) | std::to_integer<std::uint64_t>(rest_[i]));
    }
    rest_ = rest_.subspan(sizeof(Unsigned));
    out = number;
    return true;
  }

  /// A big-endian number as wide as the last two bits of its marker say: 1, 2, 4 or 8 bytes.
  [[nodiscard]] bool load_by_width(unsigned width, std::uint64_t& out) noexcept {
    switch (width) {
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

  [[nodiscard]] bool payload(token& out, token_kind kind, std::uint64_t length) noexcept {
    if (!declare(length)) return false;
    if (length > rest_.size()) return truncated();
    out.kind = kind;
    out.payload = rest_.first(static_cast<std::size_t>(length));
    rest_ = rest_.subspan(static_cast<std::size_t>(length));
    return true;
  }

  [[nodiscard]] bool extension(token& out, std::uint64_t length) noexcept {
    std::uint64_t type = 0;
    if (!load<std::uint8_t>(type)) return false;
    out.extension_type = static_cast<std::int8_t>(type);
    return payload(out, token_kind::extension, length);
  }

  [[nodiscard]] bool container(token& out, token_kind kind, std::uint64_t count) noexcept {
    out.kind = kind;
    out.number = count;
    return declare(kind == token_kind::map ? count * 2 : count);  // count has 32 bits: no overflow
  }

  [[nodiscard]] bool signed_integer(token& out, unsigned width) noexcept {
    if (!load_by_width(width, out.number)) return false;
    const unsigned unused = 64 - (8U << width);
    const auto number = static_cast<std::int64_t>(out.number << unused) >> unused;
    out.number = static_cast<std::uint64_t>(number);
    out.kind = number < 0 ? token_kind::negative_integer : token_kind::unsigned_integer;
    return true;
  }

  [[nodiscard]] bool marked(token& out, unsigned marker) noexcept;

  std::span<const std::byte> rest_;
  std::uint64_t declarable_;
  const char* problem_ = "";
};

inline bool cursor::next(token& out) noexcept {
  if (rest_.empty()) return truncated();
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
  if (marker < 0x90) return container(out, token_kind::map, marker & 0x0f);
  if (marker < 0xa0) return container(out, token_kind::list, marker & 0x0f);
  if (marker < 0xc0) return payload(out, token_kind::text, marker & 0x1f);
  return marked(out, marker);
}

inline bool cursor::marked(token& out, unsigned marker) noexcept {
  std::uint64_t length = 0;
  switch (marker) {
    case 0xc0:
      out.kind = token_kind::null;
      return true;
    case 0xc1:
      return fail("the byte c1 is reserved and begins no value");
    case 0xc2:
    case 0xc3:
      out.kind = token_kind::boolean;
      out.truth = marker == 0xc3;
      return true;
    case 0xc4:
    case 0xc5:
    case 0xc6:
      return load_by_width(marker - 0xc4, length) && payload(out, token_kind::bytes, length);
    case 0xc7:
    case 0xc8:
    case 0xc9:
      return load_by_width(marker - 0xc7, length) && extension(out, length);
    case 0xca:
      if (!load<std::uint32_t>(length)) return false;
      out.kind = token_kind::floating;
      out.real = static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(length)));
      return true;
    case 0xcb:
      if (!load<std::uint64_t>(length)) return false;
      out.kind = token_kind::floating;
      out.real = std::bit_cast<double>(length);
      return true;
    case 0xcc:
    case 0xcd:
    case 0xce:
    case 0xcf:
      out.kind = token_kind::unsigned_integer;
      return load_by_width(marker - 0xcc, out.number);
    case 0xd0:
    case 0xd1:
    case 0xd2:
    case 0xd3:
      return signed_integer(out, marker - 0xd0);
    case 0xd4:
    case 0xd5:
    case 0xd6:
    case 0xd7:
    case 0xd8:
      return extension(out, std::uint64_t{1} << (marker - 0xd4));
    case 0xd9:
    case 0xda:
    case 0xdb:
      return load_by_width(marker - 0xd9, length) && payload(out, token_kind::text, length);
    case 0xdc:
    case 0xdd:
      return load_by_width(marker - 0xdc + 1, length) && container(out, token_kind::list, length);
    default:
      return load_by_width(marker - 0xde + 1, length) && container(out, token_kind::map, length);
  }
}

}  // namespace HOLDFAST_NAMESPACE::key::messagepack
