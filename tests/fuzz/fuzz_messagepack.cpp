// Reads any bytes as an interop value. A value must be the same after it is written and read again.

#include <holdfast/cachekit/messagepack.hpp>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <span>
#include <string_view>

namespace {

using holdfast::errc;
using holdfast::key::byte_string;
using holdfast::key::decode_limits;
using holdfast::key::value;
namespace key = holdfast::key;

void require(bool condition) {
  if (!condition) std::abort();
}

/// Writes the widest headers. Independent of the library's writer, so that a bug in that cannot
/// hide one in the reader.
class wide_writer {
 public:
  byte_string bytes{};

  void write(const value& v) {
    std::visit([this](const auto& held) { item(held); }, v.get());
  }

 private:
  void big_endian(unsigned marker, std::uint64_t number, unsigned size) {
    bytes.push_back(static_cast<std::byte>(marker));
    for (unsigned i = size; i-- > 0;) bytes.push_back(static_cast<std::byte>(number >> (8 * i)));
  }
  void payload(std::span<const std::byte> piece) {
    bytes.insert(bytes.end(), piece.begin(), piece.end());
  }

  void item(std::monostate) { bytes.push_back(std::byte{0xc0}); }
  void item(bool v) { bytes.push_back(v ? std::byte{0xc3} : std::byte{0xc2}); }
  void item(std::int64_t v) {
    require(v < 0);
    big_endian(0xd3, static_cast<std::uint64_t>(v), 8);
  }
  void item(std::uint64_t v) { big_endian(0xcf, v, 8); }
  void item(double v) { big_endian(0xcb, std::bit_cast<std::uint64_t>(v), 8); }
  void item(const std::string& v) {
    big_endian(0xdb, v.size(), 4);
    payload(std::as_bytes(std::span(v)));
  }
  void item(const byte_string& v) {
    big_endian(0xc6, v.size(), 4);
    payload(v);
  }
  void item(const key::extension& v) {
    big_endian(0xc9, v.bytes.size(), 4);
    bytes.push_back(static_cast<std::byte>(v.type));
    payload(v.bytes);
  }
  void item(const key::list& v) {
    big_endian(0xdd, v.items.size(), 4);
    for (const auto& element : v.items) write(element);
  }
  void item(const key::map& v) {
    big_endian(0xdf, v.items.size(), 4);
    for (const auto& [k, element] : v.items) {
      write(k);
      write(element);
    }
  }
  template <class Other>
  void item(const Other&) {
    std::abort();  // MessagePack has no such type
  }
};

std::optional<value> decode(std::span<const std::byte> document, const decode_limits& limits) {
  try {
    return key::decode_value(document, limits);
  } catch (const holdfast::error& refused) {
    const auto code = refused.code();
    require(code == errc::malformed || code == errc::too_deep || code == errc::ill_formed_text ||
            code == errc::duplicate);
    require(refused.path().starts_with("value") && !refused.message().empty());
    return std::nullopt;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto document = std::as_bytes(std::span(data, size));
  const auto read = decode(document, {.temporal = false});
  const auto with_times = decode(document, {});
  // Two spellings of one time can be duplicate keys. Apart from that, `temporal` refuses nothing.
  require(read || !with_times);
  if (!read) return 0;

  require(read->height() <= key::max_height &&
          (!with_times || with_times->height() <= read->height()));
  wide_writer once;
  once.write(*read);
  const auto again = decode(once.bytes, {.temporal = false});
  require(again.has_value());
  wide_writer twice;
  twice.write(*again);
  require(once.bytes == twice.bytes);

  require(!decode(document.first(size - 1), {}));
  once.bytes.push_back(std::byte{0xc0});
  require(!decode(once.bytes, {}));
  return 0;
}
