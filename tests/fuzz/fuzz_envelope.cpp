// Reads any bytes as an envelope, as compressed data and as a frame, and wraps them.

#include <holdfast/cachekit/envelope.hpp>
#include <holdfast/cachekit/frame.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <span>

namespace {

using holdfast::errc;
using holdfast::key::byte_string;
namespace key = holdfast::key;

void require(bool condition) {
  if (!condition) std::abort();
}

std::optional<key::unwrapped> open(std::span<const std::byte> envelope) {
  try {
    return key::unwrap(envelope);
  } catch (const holdfast::error& refused) {
    const auto code = refused.code();
    require(code == errc::malformed || code == errc::too_large || code == errc::tampered ||
            code == errc::ill_formed_text);
    require(refused.path().starts_with("envelope") && !refused.message().empty());
    return std::nullopt;
  }
}

void require_round_trip(std::span<const std::byte> data, std::string_view format) {
  const auto read = open(key::wrap(data, format));
  require(read && std::ranges::equal(read->data, data) && read->format == format);
}

void append(byte_string& out, std::initializer_list<unsigned> bytes) {
  for (const auto byte : bytes) out.push_back(static_cast<std::byte>(byte));
}

/// Builds an envelope around the input, so that the fuzzer reaches the decompressor. A fuzzer
/// cannot guess a valid checksum.
void open_as_packed_data(std::span<const std::byte> input) {
  if (input.size() < 3 || input.size() > 0xffff) return;
  const auto packed = input.subspan(2);
  byte_string envelope;
  append(envelope, {0x94, 0xc5, static_cast<unsigned>(packed.size() >> 8U),
                    static_cast<unsigned>(packed.size() & 0xffU)});
  envelope.insert(envelope.end(), packed.begin(), packed.end());
  append(envelope, {0x98, 0, 0, 0, 0, 0, 0, 0, 0, 0xcd});
  envelope.insert(envelope.end(), input.begin(), input.begin() + 2);
  append(envelope, {0xa0});
  static_cast<void>(open(envelope));
}

void open_frame(std::span<const std::byte> frame) {
  try {
    static_cast<void>(key::unwrap_frame(frame));
  } catch (const holdfast::error& refused) {
    require(refused.code() != errc::internal && !refused.message().empty());
  }
}

/// Reads the input as a frame, and as the header of one.
void open_as_frame(std::span<const std::byte> input) {
  open_frame(input);
  if (input.size() > 0xffff) return;
  byte_string frame;
  append(frame, {'C', 'K', 3, 0, 0, static_cast<unsigned>(input.size() >> 8U),
                 static_cast<unsigned>(input.size() & 0xffU)});
  frame.insert(frame.end(), input.begin(), input.end());
  open_frame(frame);
  require(std::ranges::equal(key::unwrap_frame(key::wrap_frame(input)), input));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto input = std::as_bytes(std::span(data, size));
  if (const auto read = open(input)) {
    require(read->data.size() <= key::max_envelope_size &&
            read->data.size() <= size * key::max_envelope_ratio);
    if (read->format.size() <= key::max_envelope_format)
      require_round_trip(read->data, read->format);
    require(!open(input.first(size - 1)));
  }
  open_as_packed_data(input);
  open_as_frame(input);
  require_round_trip(input, "msgpack");
  return 0;
}
