#include <holdfast/key/envelope.hpp>

#include "base/utf8.hpp"
#include "key/messagepack_cursor.hpp"

#include <lz4.h>
#include <xxhash.h>

#include <array>
#include <cstdint>
#include <utility>

namespace HOLDFAST_NAMESPACE::key {

namespace {

using messagepack::cursor;
using messagepack::token;
using messagepack::token_kind;

constexpr std::size_t checksum_size = 8;

static_assert(max_envelope_size <= LZ4_MAX_INPUT_SIZE, "LZ4 counts in int");
static_assert(sizeof(std::size_t) == 8, "the limits are products that need 64 bits");

[[noreturn]] void fail(errc code, const std::string& message, std::string_view field = {}) {
  throw error(code, message, {.path = "envelope" + std::string(field)});
}

[[noreturn]] void fail_too_large(const char* what, std::string_view field = {}) {
  fail(errc::too_large,
       std::string(what) + " is larger than " + std::to_string(max_envelope_size) + " bytes; split it or keep it elsewhere", field);
}

std::array<std::uint8_t, checksum_size> checksum_of(std::span<const std::byte> data) {
  const std::uint64_t hash = XXH3_64bits(data.data(), data.size());
  std::array<std::uint8_t, checksum_size> bytes{};
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::uint8_t>(hash >> (56 - 8 * i));
  return bytes;
}

byte_string compressed(std::span<const std::byte> data) {
  const int size = static_cast<int>(data.size());
  byte_string packed(static_cast<std::size_t>(LZ4_compressBound(size)));
  const int written = LZ4_compress_default(reinterpret_cast<const char*>(data.data()), reinterpret_cast<char*>(packed.data()), size,
                                           static_cast<int>(packed.size()));
  if (written <= 0) fail(errc::internal, "LZ4 refused data that fits its buffer");
  packed.resize(static_cast<std::size_t>(written));
  return packed;
}

void append_marked(byte_string& out, unsigned marker, std::uint64_t number, unsigned bytes) {
  out.push_back(static_cast<std::byte>(marker));
  for (unsigned i = bytes; i-- > 0;) out.push_back(static_cast<std::byte>(number >> (8 * i)));
}

void append_integer(byte_string& out, std::uint64_t number) {
  if (number < 0x80) return out.push_back(static_cast<std::byte>(number));
  if (number <= 0xff) return append_marked(out, 0xcc, number, 1);
  if (number <= 0xffff) return append_marked(out, 0xcd, number, 2);
  append_marked(out, 0xce, number, 4);
}

void append_bytes(byte_string& out, std::span<const std::byte> bytes) {
  const std::size_t size = bytes.size();
  if (size <= 0xff) append_marked(out, 0xc4, size, 1);
  else if (size <= 0xffff) append_marked(out, 0xc5, size, 2);
  else append_marked(out, 0xc6, size, 4);
  out.insert(out.end(), bytes.begin(), bytes.end());
}

void append_text(byte_string& out, std::string_view text) {
  if (text.size() < 32) append_marked(out, 0xa0U | static_cast<unsigned>(text.size()), 0, 0);
  else append_marked(out, 0xd9, text.size(), 1);
  for (const char c : text) out.push_back(static_cast<std::byte>(c));
}

/// The fields of an envelope, as it declares them: shape and types are right, nothing else is known yet.
class fields {
 public:
  explicit fields(std::span<const std::byte> envelope) : cursor_(envelope) {
    if (const token head = next(""); head.kind != token_kind::list || head.number != 4) {
      fail(errc::malformed, "not an envelope; expected a MessagePack array of 4");
    }
    read_packed();
    read_checksum();
    original_size_ = read_integer("[2]");
    read_format();
    if (!cursor_.at_end()) fail(errc::malformed, "bytes follow the end of the envelope");
  }

  [[nodiscard]] std::span<const std::byte> packed() const { return packed_; }
  [[nodiscard]] const std::array<std::uint8_t, checksum_size>& checksum() const { return checksum_; }
  [[nodiscard]] std::uint64_t original_size() const { return original_size_; }
  [[nodiscard]] std::string_view format() const { return format_; }

 private:
  token next(std::string_view field) {
    token read;
    if (!cursor_.next(read)) fail(errc::malformed, cursor_.problem(), field);
    return read;
  }

  std::uint64_t read_integer(std::string_view field) {
    const token read = next(field);
    if (read.kind != token_kind::unsigned_integer) fail(errc::malformed, "expected an integer that is not negative", field);
    return read.number;
  }

  std::uint8_t read_byte(std::string_view field) {
    const std::uint64_t number = read_integer(field);
    if (number > 0xff) fail(errc::malformed, "expected integers up to 255, one for each byte", field);
    return static_cast<std::uint8_t>(number);
  }

  void read_packed() {
    const token head = next("[0]");
    const bool listed = head.kind == token_kind::list;
    if (!listed && head.kind != token_kind::bytes)
      fail(errc::malformed, "expected the packed data as bytes or as a list of integers", "[0]");
    const std::uint64_t size = listed ? head.number : head.payload.size();
    if (size == 0) fail(errc::malformed, "there is no packed data; even an empty value packs to one byte", "[0]");
    packed_ = head.payload;
    if (listed) {
      listed_.reserve(static_cast<std::size_t>(size));  // the cursor has compared it with the length of the envelope
      for (std::uint64_t i = 0; i < size; ++i) listed_.push_back(std::byte{read_byte("[0]")});
      packed_ = listed_;
    }
  }

  void read_checksum() {
    const token head = next("[1]");
    if (head.kind != token_kind::list || head.number != checksum_size)
      fail(errc::malformed, "expected the checksum as a list of 8 integers", "[1]");
    for (auto& byte : checksum_) byte = read_byte("[1]");
  }

  void read_format() {
    const token read = next("[3]");
    if (read.kind != token_kind::text) fail(errc::malformed, "expected the name of the format as text", "[3]");
    format_ = {reinterpret_cast<const char*>(read.payload.data()), read.payload.size()};
    if (!is_utf8(format_)) fail(errc::ill_formed_text, "the name of the format is not well-formed UTF-8", "[3]");
  }

  cursor cursor_;
  std::span<const std::byte> packed_{};
  byte_string listed_{};
  std::array<std::uint8_t, checksum_size> checksum_{};
  std::uint64_t original_size_ = 0;
  std::string_view format_{};
};

byte_string decompressed(const fields& in) {
  if (in.original_size() > max_envelope_size) fail_too_large("the data", "[2]");
  if (in.original_size() > std::uint64_t{in.packed().size()} * max_envelope_ratio) {
    fail(errc::too_large,
         "the data claim to be more than " + std::to_string(max_envelope_ratio) +
             " times their packed size; refused as a decompression bomb",
         "[2]");
  }
  byte_string data(static_cast<std::size_t>(in.original_size()));
  char nothing = 0;  // where to write no bytes at all
  const int written =
      LZ4_decompress_safe(reinterpret_cast<const char*>(in.packed().data()), data.empty() ? &nothing : reinterpret_cast<char*>(data.data()),
                          static_cast<int>(in.packed().size()), static_cast<int>(data.size()));
  if (written < 0) fail(errc::malformed, "the packed data are damaged or larger than the envelope says", "[0]");
  if (std::cmp_not_equal(written, data.size())) fail(errc::malformed, "the packed data are smaller than the envelope says", "[2]");
  return data;
}

}  // namespace

byte_string wrap(std::span<const std::byte> data, std::string_view format) {
  if (data.size() > max_envelope_size) fail_too_large("the data", "[2]");
  if (format.size() > max_envelope_format) {
    fail(errc::too_large, "the name of the format is longer than " + std::to_string(max_envelope_format) + " bytes", "[3]");
  }
  if (!is_utf8(format)) fail(errc::ill_formed_text, "the name of the format is not well-formed UTF-8", "[3]");
  const byte_string packed = compressed(data);

  byte_string out;
  out.reserve(packed.size() + format.size() + 32);
  append_marked(out, 0x94, 0, 0);
  append_bytes(out, packed);
  append_marked(out, 0x98, 0, 0);
  for (const auto byte : checksum_of(data)) append_integer(out, byte);
  append_integer(out, data.size());
  append_text(out, format);
  if (out.size() > max_envelope_size) fail_too_large("the envelope");  // data that do not compress grow a little
  return out;
}

unwrapped unwrap(std::span<const std::byte> envelope) {
  if (envelope.empty()) fail(errc::malformed, "it is empty; expected a MessagePack array of 4");
  if (envelope.size() > max_envelope_size) fail_too_large("the envelope");
  const fields in(envelope);
  unwrapped result{decompressed(in), std::string(in.format())};
  if (checksum_of(result.data) != in.checksum()) {
    fail(errc::tampered, "the checksum is not that of the data; drop the entry and write it again", "[1]");
  }
  return result;
}

}  // namespace HOLDFAST_NAMESPACE::key
