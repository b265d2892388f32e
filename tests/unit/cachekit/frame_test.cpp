#include <holdfast/cachekit/envelope.hpp>
#include <holdfast/cachekit/frame.hpp>
#include <holdfast/cachekit/messagepack.hpp>
#include <holdfast/key/interop.hpp>

#include "unit/key/wire_support.hpp"

#include <chrono>
#include <cstdint>
#include <map>
#include <string>

namespace {

using holdfast::errc;
using holdfast::key::byte_string;
using holdfast::key::frame_payload;
using holdfast::key::max_frame_header;
using holdfast::key::unwrap;
using holdfast::key::unwrap_frame;
using holdfast::key::wrap;
using holdfast::key::wrap_frame;
using wire::bytes_of;
using wire::from_hex;
using wire::to_hex;
using wire::operator+;

const byte_string document = from_hex("81a16101");  // {"a": 1}

/// A frame with this header, as Python's `"CK" + b"\x03" + len(header).to_bytes(4, "big")` makes
/// it.
byte_string frame_of(const std::string& header, const byte_string& payload) {
  const auto size = static_cast<std::uint32_t>(header.size());
  byte_string frame = from_hex("434b03");
  for (const unsigned shift : {24U, 16U, 8U, 0U})
    frame.push_back(static_cast<std::byte>(size >> shift & 0xffU));
  return frame + bytes_of(header) + payload;
}

byte_string frame_with(const std::string& metadata, const byte_string& payload = document) {
  return frame_of(R"({"s": "default", "m": )" + metadata + R"(, "v": "2.0"})", payload);
}

TEST(Frame, IsWrittenAsCacheKitForPythonWritesIt) {
  const byte_string prefix = from_hex("434b030000007d");  // a header of 125 bytes
  const std::string head = R"({"s": "default", "m": {"format": "msgpack", "encoding": "utf-8", )";
  const std::string tail = R"("original_type": "msgpack"}, "v": "2.0"})";

  EXPECT_EQ(to_hex(wrap_frame(document)),
            to_hex(prefix + bytes_of(head + R"("compressed": true, )" + tail) + wrap(document)));
  EXPECT_EQ(to_hex(wrap_frame(document, frame_payload::document)),
            to_hex(from_hex("434b030000007e") + bytes_of(head + R"("compressed": false, )" + tail) +
                   document));
}

TEST(Frame, ComesBack) {
  for (const auto payload : {frame_payload::envelope, frame_payload::document})
    EXPECT_EQ(unwrap_frame(wrap_frame(document, payload)), document);
  EXPECT_EQ(unwrap_frame(wrap_frame({})), byte_string{});
}

TEST(Frame, OfOtherSerializersThatWriteMessagePackIsRead) {
  EXPECT_EQ(unwrap_frame(
                frame_of(R"({"v":"2.1","m":{"format":"msgpack"},"s":"auto","new":[1]})", document)),
            document)
      << "without spaces, in another order, with a member that is new";
  EXPECT_EQ(unwrap_frame(frame_with(R"({"compressed":true,"format":"msgpack"})", wrap(document))),
            document);
}

TEST(Frame, WithAnEncodingThatIsNotSupportedIsRefused) {
  EXPECT_ERROR(errc::unsupported_type, unwrap_frame(frame_with(R"({"format":"arrow"})")));
  EXPECT_ERROR(errc::unsupported_type,
               unwrap_frame(frame_with(R"({"format":"msgpack","encrypted":true})")));
}

TEST(Frame, ThatIsDamagedIsRefused) {
  EXPECT_ERROR(errc::malformed, unwrap_frame({}));
  EXPECT_ERROR(errc::malformed, unwrap_frame(document));
  EXPECT_ERROR(errc::malformed, unwrap_frame(from_hex("434b0300")));
  EXPECT_ERROR(errc::malformed, unwrap_frame(from_hex("434b0200000000")));
  EXPECT_ERROR(errc::malformed, unwrap_frame(from_hex("434b03ffffffff")));
  EXPECT_ERROR(errc::malformed, unwrap_frame(frame_of("", document)));
  EXPECT_ERROR(errc::malformed, unwrap_frame(frame_of("[]", document)));
  EXPECT_ERROR(errc::malformed, unwrap_frame(frame_of(R"({"s":"default"})", document)));
  EXPECT_ERROR(errc::malformed, unwrap_frame(frame_with("{}")));
  EXPECT_ERROR(errc::malformed, unwrap_frame(frame_with(R"({"format":1})")));
  EXPECT_ERROR(errc::malformed, unwrap_frame(frame_with(R"({"format":"msgpack","compressed":1})")));
  EXPECT_ERROR(errc::too_large,
               unwrap_frame(frame_of(std::string(max_frame_header + 1, ' '), document)));

  const byte_string frame = wrap_frame(document);
  for (std::size_t size = 0; size < frame.size(); ++size)
    EXPECT_ERROR(errc::malformed, unwrap_frame(std::span(frame).first(size)));
  auto other_checksum = frame_with(R"({"format":"msgpack","compressed":true})", wrap(document));
  other_checksum[other_checksum.size() - 10] ^= std::byte{1};
  EXPECT_ERROR(errc::tampered, unwrap_frame(other_checksum));
}

TEST(Frame, NaiveTimesAreReadAsUtcOnlyIfAsked) {
  using holdfast::key::decode_value;
  using namespace std::chrono;
  // {"__datetime__": true, "value": "2024-01-31T12:30:45.250000"}, as Python writes a naive one
  const byte_string naive = from_hex(
      "82ac5f5f6461746574696d655f5fc3a576616c7565ba323032342d30312d33315431323a33303a34352e32353030"
      "30"
      "30");
  EXPECT_TRUE(decode_value(naive).if_is<holdfast::key::map>());

  const auto utc = decode_value(naive, {.naive_as_utc = true});
  const auto* instant = utc.if_is<holdfast::key::instant>();
  ASSERT_NE(instant, nullptr);
  EXPECT_EQ(instant->seconds, sys_days{2024y / January / 31} + 12h + 30min + 45s);
  EXPECT_EQ(instant->nanoseconds, 250'000'000U);

  // A time with an offset keeps it.
  const byte_string aware = holdfast::key::encode_value(*instant);
  EXPECT_EQ(decode_value(aware, {.naive_as_utc = true}), decode_value(aware));
}

}  // namespace
