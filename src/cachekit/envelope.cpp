#include <holdfast/cachekit/envelope.hpp>
#include <holdfast/key/small_call.hpp>

#include "base/utf8.hpp"
#include "cachekit/messagepack_cursor.hpp"

#include <lz4.h>
#include <xxhash.h>

#include <array>
#include <cstdint>
#include <utility>

namespace HOLDFAST_NAMESPACE::key {

using namespace holdfast::detail::cachekit;

namespace {

constexpr std::size_t checksum_size = 8;

static_assert(max_envelope_size <= LZ4_MAX_INPUT_SIZE, "LZ4 takes sizes as int");
static_assert(sizeof(std::size_t) == 8, "products of the limits need 64 bits");

[[noreturn]] void fail_envelope(errc code, const std::string& message,
                                std::string_view field = {}) {
  throw error(code, message, {.path = "envelope" + std::string(field)});
}

[[noreturn]] void fail_too_large(const char* part, std::string_view field = {}) {
  fail_envelope(errc::too_large,
                std::string(part) + " has more than " + std::to_string(max_envelope_size) +
                    " bytes; split it or store it elsewhere",
                field);
}

std::array<std::uint8_t, checksum_size> checksum_of(std::span<const std::byte> data) {
  const std::uint64_t hash = XXH3_64bits(data.data(), data.size());
  std::array<std::uint8_t, checksum_size> bytes{};
  for (std::size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = static_cast<std::uint8_t>(hash >> (56 - 8 * i));
  return bytes;
}

byte_string compress(std::span<const std::byte> data) {
  const int size = static_cast<int>(data.size());
  byte_string compressed(static_cast<std::size_t>(LZ4_compressBound(size)));
  const int written = LZ4_compress_default(reinterpret_cast<const char*>(data.data()),
                                           reinterpret_cast<char*>(compressed.data()), size,
                                           static_cast<int>(compressed.size()));
  if (written <= 0) fail_envelope(errc::internal, "LZ4 refused data that fit in its buffer");
  compressed.resize(static_cast<std::size_t>(written));
  return compressed;
}

// ---- writing MessagePack

void append_bytes(byte_string& out, std::span<const std::byte> bytes) {
  out.insert(out.end(), bytes.begin(), bytes.end());
}

void append_header(byte_string& out, unsigned char marker, std::uint64_t number = 0,
                   std::size_t width = 0) {
  char bytes[9];  // NOLINT(*-avoid-c-arrays)
  const char* end = detail::write_big_endian(bytes, marker, number, width);
  append_bytes(out, std::as_bytes(std::span<const char>(bytes, end)));
}

void append_integer(byte_string& out, std::uint64_t number) {
  char bytes[9];  // NOLINT(*-avoid-c-arrays)
  const char* end = detail::write_unsigned(bytes, number);
  append_bytes(out, std::as_bytes(std::span<const char>(bytes, end)));
}

void append_binary(byte_string& out, std::span<const std::byte> bytes) {
  const std::size_t size = bytes.size();
  if (size <= 0xff) append_header(out, 0xc4, size, 1);
  else if (size <= 0xffff) append_header(out, 0xc5, size, 2);
  else append_header(out, 0xc6, size, 4);
  append_bytes(out, bytes);
}

/// `text` has at most max_envelope_format bytes.
void append_text(byte_string& out, std::string_view text) {
  if (text.size() < 32) append_header(out, static_cast<unsigned char>(0xa0U | text.size()));
  else append_header(out, 0xd9, text.size(), 1);
  append_bytes(out, std::as_bytes(std::span(text)));
}

// ---- reading

/// The fields of an envelope. Their number and types are checked; their contents are not.
class envelope_fields {
 public:
  explicit envelope_fields(std::span<const std::byte> envelope) : cursor_(envelope) {
    if (const token head = next(""); head.kind != token_kind::list || head.number != 4) {
      fail_envelope(errc::malformed, "not an envelope; expected a MessagePack array of 4");
    }
    read_compressed();
    read_checksum();
    original_size_ = read_integer("[2]");
    read_format();
    if (!cursor_.at_end()) fail_envelope(errc::malformed, "bytes follow the end of the envelope");
  }

  [[nodiscard]] std::span<const std::byte> compressed() const { return compressed_; }
  [[nodiscard]] const std::array<std::uint8_t, checksum_size>& checksum() const {
    return checksum_;
  }
  [[nodiscard]] std::uint64_t original_size() const { return original_size_; }
  [[nodiscard]] std::string_view format() const { return format_; }

 private:
  token next(std::string_view field) {
    token result;
    if (!cursor_.next(result)) fail_envelope(errc::malformed, cursor_.problem(), field);
    return result;
  }

  std::uint64_t read_integer(std::string_view field) {
    const token integer = next(field);
    if (integer.kind != token_kind::unsigned_integer)
      fail_envelope(errc::malformed, "expected an integer that is not negative", field);
    return integer.number;
  }

  std::uint8_t read_byte(std::string_view field) {
    const std::uint64_t number = read_integer(field);
    if (number > 0xff) fail_envelope(errc::malformed, "expected integers from 0 to 255", field);
    return static_cast<std::uint8_t>(number);
  }

  void read_compressed() {
    const token head = next("[0]");
    const bool is_list = head.kind == token_kind::list;
    if (!is_list && head.kind != token_kind::bytes)
      fail_envelope(errc::malformed,
                    "expected the compressed data as bytes or as a list of integers", "[0]");
    const std::uint64_t size = is_list ? head.number : head.payload.size();
    if (size == 0)
      fail_envelope(errc::malformed,
                    "the compressed data are missing; an empty value compresses to one byte",
                    "[0]");
    compressed_ = head.payload;
    if (is_list) {
      // The cursor has checked the size against the length of the envelope.
      list_bytes_.reserve(static_cast<std::size_t>(size));
      for (std::uint64_t i = 0; i < size; ++i) list_bytes_.push_back(std::byte{read_byte("[0]")});
      compressed_ = list_bytes_;
    }
  }

  void read_checksum() {
    const token head = next("[1]");
    if (head.kind != token_kind::list || head.number != checksum_size)
      fail_envelope(errc::malformed, "expected the checksum as a list of 8 integers", "[1]");
    for (auto& byte : checksum_) byte = read_byte("[1]");
  }

  void read_format() {
    const token text = next("[3]");
    if (text.kind != token_kind::text)
      fail_envelope(errc::malformed, "expected the name of the format as text", "[3]");
    format_ = {reinterpret_cast<const char*>(text.payload.data()), text.payload.size()};
    if (!holdfast::detail::is_utf8(format_))
      fail_envelope(errc::ill_formed_text, "the name of the format is not well-formed UTF-8",
                    "[3]");
  }

  messagepack_cursor cursor_;
  std::span<const std::byte> compressed_{};
  byte_string list_bytes_{};  // the compressed data, if they were a list of integers
  std::array<std::uint8_t, checksum_size> checksum_{};
  std::uint64_t original_size_ = 0;
  std::string_view format_{};
};

byte_string decompress(const envelope_fields& fields) {
  const auto compressed = fields.compressed();
  if (fields.original_size() > max_envelope_size) fail_too_large("the data", "[2]");
  if (fields.original_size() > std::uint64_t{compressed.size()} * max_envelope_ratio) {
    fail_envelope(errc::too_large,
                  "the data would have more than " + std::to_string(max_envelope_ratio) +
                      " times their compressed size; refused as a decompression bomb",
                  "[2]");
  }
  byte_string data(static_cast<std::size_t>(fields.original_size()));
  char unused = 0;  // LZ4 needs a valid address even for no bytes
  const int written =
      LZ4_decompress_safe(reinterpret_cast<const char*>(compressed.data()),
                          data.empty() ? &unused : reinterpret_cast<char*>(data.data()),
                          static_cast<int>(compressed.size()), static_cast<int>(data.size()));
  if (written < 0)
    fail_envelope(errc::malformed,
                  "the compressed data are damaged, or larger than the declared size", "[0]");
  if (std::cmp_not_equal(written, data.size()))
    fail_envelope(errc::malformed, "the data are smaller than the declared size", "[2]");
  return data;
}

}  // namespace

byte_string wrap(std::span<const std::byte> data, std::string_view format) {
  if (data.size() > max_envelope_size) fail_too_large("the data", "[2]");
  if (format.size() > max_envelope_format) {
    fail_envelope(
        errc::too_large,
        "the name of the format is longer than " + std::to_string(max_envelope_format) + " bytes",
        "[3]");
  }
  if (!holdfast::detail::is_utf8(format))
    fail_envelope(errc::ill_formed_text, "the name of the format is not well-formed UTF-8", "[3]");
  const byte_string compressed = compress(data);

  byte_string out;
  out.reserve(compressed.size() + format.size() + 32);
  append_header(out, 0x94);  // an array of 4
  append_binary(out, compressed);
  append_header(out, 0x98);  // an array of 8
  for (const auto byte : checksum_of(data)) append_integer(out, byte);
  append_integer(out, data.size());
  append_text(out, format);
  // Data that cannot be compressed grow a little.
  if (out.size() > max_envelope_size) fail_too_large("the envelope");
  return out;
}

unwrapped unwrap(std::span<const std::byte> envelope) {
  if (envelope.empty())
    fail_envelope(errc::malformed, "the envelope is empty; expected a MessagePack array of 4");
  if (envelope.size() > max_envelope_size) fail_too_large("the envelope");
  const envelope_fields fields(envelope);
  unwrapped result{decompress(fields), std::string(fields.format())};
  if (checksum_of(result.data) != fields.checksum()) {
    fail_envelope(errc::tampered,
                  "the checksum does not match the data; drop the entry and write it again", "[1]");
  }
  return result;
}

}  // namespace HOLDFAST_NAMESPACE::key
