#include <holdfast/cachekit/envelope.hpp>
#include <holdfast/cachekit/frame.hpp>

#include <simdjson.h>

#include <string>
#include <string_view>

namespace HOLDFAST_NAMESPACE::key {

namespace {

constexpr std::string_view frame_start{"CK\x03", 3};
constexpr std::size_t prefix_size = frame_start.size() + 4;  // then the length of the header

// Python's json.dumps writes these spaces. CacheKit compares nothing but the members.
constexpr std::string_view header_of_envelope =
    R"({"s": "default", "m": {"format": "msgpack", "encoding": "utf-8", "compressed": true, "original_type": "msgpack"}, "v": "2.0"})";
constexpr std::string_view header_of_document =
    R"({"s": "default", "m": {"format": "msgpack", "encoding": "utf-8", "compressed": false, "original_type": "msgpack"}, "v": "2.0"})";

[[noreturn]] void fail_frame(errc code, const std::string& message, std::string_view part = {}) {
  throw error(code, message, {.path = "frame" + std::string(part)});
}

void append_ascii(byte_string& out, std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  out.insert(out.end(), bytes.begin(), bytes.end());
}

std::string_view frame_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

struct frame_parts {
  std::string_view header;
  std::span<const std::byte> payload;
};

frame_parts split(std::span<const std::byte> frame) {
  if (!frame_text(frame).starts_with(frame_start.substr(0, 2)))
    fail_frame(errc::malformed, "not a frame of CacheKit for Python; a frame begins with CK");
  if (frame.size() < prefix_size)
    fail_frame(errc::malformed, "the frame is cut: it ends before the length of its header");
  if (!frame_text(frame).starts_with(frame_start)) {
    fail_frame(errc::malformed, "frames of version " +
                                    std::to_string(std::to_integer<int>(frame[2])) +
                                    " are unknown; expected version 3");
  }
  std::size_t length = 0;
  for (const auto byte : frame.subspan(frame_start.size(), 4))
    length = length << 8U | std::to_integer<std::size_t>(byte);
  if (length > frame.size() - prefix_size)
    fail_frame(errc::malformed, "the frame is cut: its header is longer than the frame", ".header");
  if (length > max_frame_header) {
    fail_frame(errc::too_large,
               "the header has more than " + std::to_string(max_frame_header) + " bytes",
               ".header");
  }
  return {frame_text(frame.subspan(prefix_size, length)), frame.subspan(prefix_size + length)};
}

/// Whether the payload is an envelope. Throws if its encoding is not MessagePack, or encrypted.
bool has_envelope(std::string_view header) {
  simdjson::dom::parser parser;
  simdjson::dom::object metadata;
  const simdjson::padded_string text(header);
  if (parser.parse(text)["m"].get(metadata) != simdjson::SUCCESS)
    fail_frame(errc::malformed, "the header is not a JSON object with the member m", ".header");
  // CacheKit takes a missing member as false.
  const auto flag = [&](const char* name) {
    const auto member = metadata[name];
    if (member.error() == simdjson::NO_SUCH_FIELD) return false;
    bool result = false;
    if (member.get(result) != simdjson::SUCCESS)
      fail_frame(errc::malformed, std::string(name) + " must be true or false", ".header.m");
    return result;
  };
  if (flag("encrypted")) {
    fail_frame(errc::unsupported_type,
               "the payload is encrypted; encrypted values of auto mode are not supported",
               ".header.m");
  }
  std::string_view format;
  if (metadata["format"].get(format) != simdjson::SUCCESS)
    fail_frame(errc::malformed, "the member format is missing, or is not a text", ".header.m");
  if (format != "msgpack") {
    fail_frame(errc::unsupported_type,
               "the payload is not MessagePack; use the default serializer in Python", ".header.m");
  }
  return flag("compressed");
}

}  // namespace

byte_string wrap_frame(std::span<const std::byte> document, frame_payload payload) {
  const bool enveloped = payload == frame_payload::envelope;
  const std::string_view header = enveloped ? header_of_envelope : header_of_document;
  const byte_string envelope = enveloped ? wrap(document) : byte_string{};
  const std::span<const std::byte> content = enveloped ? std::span(envelope) : document;

  byte_string out;
  out.reserve(prefix_size + header.size() + content.size());
  append_ascii(out, frame_start);
  const auto length = static_cast<std::uint32_t>(header.size());
  for (const unsigned shift : {24U, 16U, 8U, 0U})
    out.push_back(static_cast<std::byte>(length >> shift & 0xffU));
  append_ascii(out, header);
  out.insert(out.end(), content.begin(), content.end());
  return out;
}

byte_string unwrap_frame(std::span<const std::byte> frame) {
  const auto [header, payload] = split(frame);
  if (has_envelope(header)) return unwrap(payload).data;
  return {payload.begin(), payload.end()};
}

std::string_view to_string(frame_payload payload) noexcept {
  switch (payload) {
    case frame_payload::envelope:
      return "envelope";
    case frame_payload::document:
      return "document";
  }
  return "unknown";
}

}  // namespace HOLDFAST_NAMESPACE::key
