#include <holdfast/cachekit/envelope.hpp>
#include <holdfast/cachekit/messagepack.hpp>
#include <holdfast/key/interop.hpp>

#include "unit/key/wire_support.hpp"

#include <bit>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <limits>
#include <string>

namespace {

using holdfast::errc;
using holdfast::key::byte_string;
using holdfast::key::decode_limits;
using holdfast::key::decode_value;
using holdfast::key::value;
namespace key = holdfast::key;
using wire::from_hex;
using wire::repeated;
using wire::operator+;

value decode(std::string_view hex) { return decode_value(from_hex(hex)); }

std::string path_of(const byte_string& document) {
  const auto thrown = wire::error_of([&] { static_cast<void>(decode_value(document)); });
  return thrown ? thrown->path() : "no error";
}
std::string path_of(std::string_view hex) { return path_of(from_hex(hex)); }

value list_of(std::vector<value> items) { return key::list{std::move(items)}; }
value map_of(std::vector<std::pair<value, value>> items) { return key::map{std::move(items)}; }
value binary(std::string_view hex) { return from_hex(hex); }

// ---- published vectors

TEST(MessagePackReader, RefusesWhatDeclaresMoreThanItHolds) {
  for (const auto& vector : wire::vectors("cachekit_decode_bounds", "refused")) {
    const auto document = repeated(vector.at("head")) + repeated(vector.at("tail"));
    const auto thrown =
        wire::error_of([&] { static_cast<void>(decode_value(document, {.max_depth = 1024})); });
    ASSERT_TRUE(thrown) << vector.at("name");
    const std::string message = thrown->message();
    bool expected = false;
    for (const auto& reason : vector.at("reasons")) {
      if (reason == "depth") expected = expected || thrown->code() == errc::too_deep;
      if (reason == "overclaim")
        expected =
            expected || (thrown->code() == errc::malformed && message.starts_with("declares more"));
      if (reason == "incomplete")
        expected = expected || (thrown->code() == errc::malformed &&
                                message.find("ends too early") != std::string::npos);
    }
    EXPECT_TRUE(expected) << vector.at("name") << ": " << thrown->what();
  }
}

TEST(MessagePackReader, AcceptsWhatIsWithinTheBounds) {
  for (const auto& vector : wire::vectors("cachekit_decode_bounds", "accepted")) {
    const auto document = repeated(vector.at("head")) + repeated(vector.at("tail"));
    EXPECT_NO_THROW(static_cast<void>(decode_value(document, {.max_depth = 32})))
        << vector.at("name");
  }
}

TEST(MessagePackReader, ReadsThePublishedInteropValues) {
  const auto moment = std::chrono::sys_days{std::chrono::January / 1 / 2024} +
                      std::chrono::hours{12} + std::chrono::minutes{30} + std::chrono::seconds{45};
  EXPECT_EQ(decode("82a36167651ea46e616d65a5616c696365"), map_of({{"age", 30}, {"name", "alice"}}));
  EXPECT_EQ(decode("cb4000000000000000"), value(2.0));
  EXPECT_EQ(decode("9501a374776fcb400c000000000000c0c3"), list_of({1, "two", 3.5, {}, true}));
  EXPECT_EQ(decode("82ac5f5f6461746574696d655f5fc3a576616c7565d920323032342d30312d30315431323a33303"
                   "a34352e3132333435362b30303a3030"),
            value(key::instant{moment, 123'456'000, {}}));
  EXPECT_EQ(decode("81a95f5f70726f746f5f5f01"), map_of({{"__proto__", 1}}));
  EXPECT_EQ(decode_value(from_hex("92a6efbbbf626f6dda012eefbbbf") + repeated("78", 299)),
            list_of({"\xef\xbb\xbf"
                     "bom",
                     "\xef\xbb\xbf" + std::string(299, 'x')}));
}

TEST(MessagePackReader, WhatIsReadIsWrittenBackTheSame) {
  for (const std::string hex :
       {"82a36167651ea46e616d65a5616c696365", "cb4000000000000000", "cb8000000000000000",
        "9501a374776fcb400c000000000000c0c3",
        "82ac5f5f6461746574696d655f5fc3a576616c7565d920323032342d30312d30315431323a33303a34352e3132"
        "333435362b30303a3030",
        "82a85f5f646174655f5fc3a576616c7565aa323032342d30312d3031",
        "82a85f5f74696d655f5fc3a576616c7565a831303a33303a3030", "81a95f5f70726f746f5f5f01",
        "93cfffffffffffffffffd38000000000000000c403010203"}) {
    EXPECT_EQ(wire::to_hex(key::encode_value(decode(hex))), hex);
  }
}

TEST(MessagePackReader, AcceptsWhatOtherWritersWrite) {
  EXPECT_EQ(decode("93cd002ad2ffffffffcf0000000000000001"), list_of({42, -1, 1}));
  EXPECT_EQ(decode("dc0003d903616263de0001a16101c50002dead"),
            list_of({"abc", map_of({{"a", 1}}), binary("dead")}));
  EXPECT_EQ(decode("82a16202a16101"), map_of({{"b", 2}, {"a", 1}}));
  EXPECT_EQ(decode("ca3fc00000"), value(1.5));
  EXPECT_EQ(decode("81012a"), map_of({{1, 42}}));
  EXPECT_EQ(decode("d4012a"), value(key::extension{1, from_hex("2a")}));
}

TEST(MessagePackReader, RefusesTrailingBytes) {
  EXPECT_ERROR(errc::malformed, decode("82a36167651ea46e616d65a5616c69636500"));
  EXPECT_ERROR(errc::malformed, decode("c0c0"));
}

// ---- every form

TEST(MessagePackReader, ReadsEveryWidthOfIntegers) {
  const auto max64 = std::numeric_limits<std::uint64_t>::max();
  const auto min64 = std::numeric_limits<std::int64_t>::min();
  EXPECT_EQ(decode("00"), value(0));
  EXPECT_EQ(decode("7f"), value(127));
  EXPECT_EQ(decode("ccff"), value(255));
  EXPECT_EQ(decode("cdffff"), value(65535));
  EXPECT_EQ(decode("ceffffffff"), value(std::uint64_t{0xffffffff}));
  EXPECT_EQ(decode("cfffffffffffffffff"), value(max64));
  EXPECT_EQ(decode("ff"), value(-1));
  EXPECT_EQ(decode("e0"), value(-32));
  EXPECT_EQ(decode("d080"), value(-128));
  EXPECT_EQ(decode("d18000"), value(-32768));
  EXPECT_EQ(decode("d280000000"), value(std::int64_t{std::numeric_limits<std::int32_t>::min()}));
  EXPECT_EQ(decode("d38000000000000000"), value(min64));
}

TEST(MessagePackReader, HoldsIntegersByTheirSignNotByTheirMarker) {
  for (const auto* hex : {"01", "cc01", "cd0001", "ce00000001", "cf0000000000000001", "d001",
                          "d10001", "d200000001", "d30000000000000001"}) {
    const auto number = decode(hex);
    ASSERT_NE(number.if_is<std::uint64_t>(), nullptr) << hex;
    EXPECT_EQ(*number.if_is<std::uint64_t>(), 1U) << hex;
  }
  EXPECT_NE(decode("d0ff").if_is<std::int64_t>(), nullptr);
}

TEST(MessagePackReader, ReadsNullBooleansAndFloats) {
  EXPECT_TRUE(decode("c0").is_null());
  EXPECT_EQ(decode("c2"), value(false));
  EXPECT_EQ(decode("c3"), value(true));
  EXPECT_EQ(decode("cb3ff8000000000000"), value(1.5));
  EXPECT_TRUE(std::signbit(*decode("cb8000000000000000").if_is<double>()));
  EXPECT_TRUE(std::isinf(*decode("ca7f800000").if_is<double>()));
  EXPECT_EQ(std::bit_cast<std::uint64_t>(*decode("cb7ff8000000000123").if_is<double>()),
            0x7ff8000000000123U);
  EXPECT_EQ(decode("ca3dcccccd"), value(static_cast<double>(0.1F)));
}

TEST(MessagePackReader, ReadsEveryWidthOfTextBytesAndExtensions) {
  EXPECT_EQ(decode("a0"), value(""));
  for (const auto* hex : {"a3616263", "d903616263", "da0003616263", "db00000003616263"})
    EXPECT_EQ(decode(hex), value("abc")) << hex;
  for (const auto* hex : {"c40100", "c5000100", "c60000000100"})
    EXPECT_EQ(decode(hex), binary("00")) << hex;
  EXPECT_EQ(decode("c400"), binary(""));
  for (const auto* hex : {"d4ff2a", "c701ff2a", "c80001ff2a", "c900000001ff2a"}) {
    EXPECT_EQ(decode(hex), value(key::extension{-1, from_hex("2a")})) << hex;
  }
  EXPECT_EQ(decode("c70005"), value(key::extension{5, {}}));
  EXPECT_EQ(decode_value(from_hex("d501") + repeated("2a", 2)),
            value(key::extension{1, repeated("2a", 2)}));
  EXPECT_EQ(decode_value(from_hex("d601") + repeated("2a", 4)),
            value(key::extension{1, repeated("2a", 4)}));
  EXPECT_EQ(decode_value(from_hex("d701") + repeated("2a", 8)),
            value(key::extension{1, repeated("2a", 8)}));
  EXPECT_EQ(decode_value(from_hex("d801") + repeated("2a", 16)),
            value(key::extension{1, repeated("2a", 16)}));
}

TEST(MessagePackReader, ReadsEveryWidthOfContainers) {
  for (const auto* hex : {"90", "dc0000", "dd00000000"}) EXPECT_EQ(decode(hex), list_of({})) << hex;
  for (const auto* hex : {"80", "de0000", "df00000000"}) EXPECT_EQ(decode(hex), map_of({})) << hex;
  for (const auto* hex : {"9290c0", "dc000290c0", "dd0000000290c0"})
    EXPECT_EQ(decode(hex), list_of({list_of({}), {}})) << hex;
  for (const auto* hex : {"818080", "de00018080", "df000000018080"})
    EXPECT_EQ(decode(hex), map_of({{map_of({}), map_of({})}})) << hex;
  const auto large = decode_value(from_hex("dc1388") + repeated("07", 5000));
  EXPECT_EQ(large.if_is<key::list>()->items.size(), 5000U);
}

TEST(MessagePackReader, EveryTruncationIsAnError) {
  const auto document = from_hex(
      "86a16101a162c40201ffa163d60100000000a164ca3fc00000a165920182a16101a162cd0100a166d903c3a961");
  ASSERT_NO_THROW(static_cast<void>(decode_value(document)));
  for (std::size_t size = 0; size < document.size(); ++size) {
    EXPECT_ERROR(errc::malformed, decode_value(std::span(document).first(size))) << size;
  }
}

TEST(MessagePackReader, PayloadsEndWithTheDocumentEvenWhereTheyWereAllowed) {
  // Wide integers take more bytes than they declare, so the count of declared elements alone would
  // accept these.
  for (const auto* hex : {"92cd0001a261", "92cd0001c40261", "92ce00000001c7020161"}) {
    const auto thrown = wire::error_of([&] { static_cast<void>(decode(hex)); });
    ASSERT_TRUE(thrown) << hex;
    EXPECT_NE(thrown->message().find("ends too early"), std::string::npos)
        << hex << ": " << thrown->what();
  }
}

// ---- what is refused, and where

TEST(MessagePackReader, RefusesTheReservedByte) {
  EXPECT_ERROR(errc::malformed, decode("c1"));
  EXPECT_EQ(path_of("92c0c1"), "value[1]");
}

TEST(MessagePackReader, RefusesAnEmptyDocument) { EXPECT_ERROR(errc::malformed, decode("")); }

TEST(MessagePackReader, NamesAFrameOfPythonsAutoMode) {
  const auto thrown = wire::error_of([] { static_cast<void>(decode("434b0300000002")); });
  ASSERT_TRUE(thrown);
  EXPECT_EQ(thrown->code(), errc::malformed);
  EXPECT_NE(thrown->message().find("a frame of CacheKit for Python; pass it to unwrap_frame first"),
            std::string::npos);
  EXPECT_EQ(decode("43"), value(67));
}

TEST(MessagePackReader, RefusesIllFormedText) {
  for (const auto* hex : {"a1ff", "a2c080", "a3eda080", "a4f4908080", "a1c3", "d901ff", "81a1ff01"})
    EXPECT_ERROR(errc::ill_formed_text, decode(hex)) << hex;
  EXPECT_EQ(path_of("81a16192c0a1ff"), "value.items[\"a\"][1]");
}

TEST(MessagePackReader, RefusesDuplicateKeys) {
  EXPECT_ERROR(errc::duplicate, decode("82a16101a16102"));
  EXPECT_ERROR(errc::duplicate, decode("83a16101a16202a16103"));
  EXPECT_ERROR(errc::duplicate, decode("8201c0cc01c0")) << "two widths of one integer";
  EXPECT_ERROR(errc::duplicate, decode("82a161c0d90161c0")) << "two widths of one text";
  EXPECT_ERROR(errc::duplicate, decode("82c0c0c0c0"));
  EXPECT_ERROR(errc::duplicate, decode("82cb7ff8000000000000c0cb7ff8000000000000c0"))
      << "NaN is itself";
  EXPECT_ERROR(errc::duplicate, decode("829201c0c09201c0c0")) << "lists";
  EXPECT_ERROR(errc::duplicate, decode("8281a16101c081a16101c0")) << "maps";
  EXPECT_ERROR(errc::duplicate, decode("82d4012ac0d4012ac0")) << "extensions";
  EXPECT_ERROR(errc::duplicate, decode("82c4012ac0c4012ac0")) << "bytes";
  const std::string day = "82a85f5f646174655f5fc3a576616c7565aa323032342d30312d3031";
  EXPECT_ERROR(errc::duplicate, decode("82" + day + "c0" + day + "c0")) << "dates";
}

TEST(MessagePackReader, KeepsKeysThatOnlyLookAlike) {
  for (const auto* hex :
       {"8201c0a131c0", "8200c0c2c0", "82cb0000000000000000c0cb8000000000000000c0",
        "8201c0cb3ff0000000000000c0", "82a161c0c40161c0", "829101c09102c0", "8290c080c0",
        "82920102c0920103c0", "82d4012ac0d4022ac0", "829101c0920101c0"}) {
    EXPECT_NO_THROW(static_cast<void>(decode(hex))) << hex;
  }
}

TEST(MessagePackReader, ReportsThePathToADuplicate) {
  EXPECT_EQ(path_of("9182a16101a16102"), "value[0].items[\"a\"]");
  EXPECT_EQ(path_of("81a17882ffc0ffc0"), "value.items[\"x\"].items[-1]");
}

TEST(MessagePackReader, FindsADuplicateAmongManyUnsortedKeys) {
  byte_string entries;
  constexpr unsigned count = 50'000;
  for (unsigned i = 0; i < count; ++i) {
    const unsigned scrambled = (i * 48'271U) % 65'521U;
    entries =
        std::move(entries) + byte_string{std::byte{0xcd}, static_cast<std::byte>(scrambled >> 8U),
                                         static_cast<std::byte>(scrambled), std::byte{0xc0}};
  }
  EXPECT_NO_THROW(static_cast<void>(decode_value(from_hex("df0000c350") + entries)));
  EXPECT_ERROR(errc::duplicate, decode_value(from_hex("df0000c351") + entries +
                                             byte_string(entries.begin(), entries.begin() + 4)));
}

TEST(MessagePackReader, FindsADuplicateAmongManyUnsortedTexts) {
  byte_string entries;
  for (int i = 0; i < 1'000; ++i) {
    const std::string text = std::to_string(1'000'000 + (i * 617) % 1'000);
    entries = std::move(entries) + from_hex("a7") + wire::bytes_of(text) + from_hex("c0");
  }
  EXPECT_NO_THROW(static_cast<void>(decode_value(from_hex("de03e8") + entries)));
  EXPECT_EQ(path_of(from_hex("de03e9") + entries + from_hex("a7") + wire::bytes_of("1000042") +
                    from_hex("c0")),
            "value.items[\"1000042\"]");
}

TEST(MessagePackReader, PathsNameEveryStep) {
  EXPECT_EQ(path_of("c1"), "value");
  EXPECT_EQ(path_of("81a16191c1"), "value.items[\"a\"][0]");
  EXPECT_EQ(path_of("8105c1"), "value.items[5]");
  EXPECT_EQ(path_of("81c3c1"), "value.items[true]");
  EXPECT_EQ(path_of("81c0c1"), "value.items[null]");
  EXPECT_EQ(path_of("81c2c1"), "value.items[false]");
  EXPECT_EQ(path_of("8190c1"), "value.items[list]");
  EXPECT_EQ(path_of("820102c100"), "value.keys[1]");
  EXPECT_EQ(path_of("81a622090a5c7f61c1"), R"(value.items["\"\t\n\\\u007fa"])");
}

TEST(MessagePackReader, PathsStayReadable) {
  EXPECT_EQ(
      path_of(from_hex("81d9c8") + repeated("c3a9", 100) + from_hex("c1")), "value.items[\"" + [] {
        std::string text;
        for (int i = 0; i < 64; ++i) text += "\xc3\xa9";
        return text;
      }() + "...\"]");
  const auto deep = path_of(repeated("91", 100) + from_hex("c1"));
  EXPECT_NE(deep.find("..."), std::string::npos);
  EXPECT_LT(deep.size(), 120U);
}

// ---- limits

TEST(MessagePackReader, LimitsDepthToTheHeightOfValues) {
  const auto lists_around_scalar = [](std::size_t depth) {
    return repeated("91", depth) + from_hex("c0");
  };
  const auto lists_around_empty_list = [](std::size_t depth) {
    return repeated("91", depth - 1) + from_hex("90");
  };
  constexpr std::size_t max = key::max_height;
  EXPECT_EQ(decode_value(lists_around_scalar(max - 1)).height(), max);
  EXPECT_ERROR(errc::too_deep, decode_value(lists_around_scalar(max)));
  EXPECT_TRUE(path_of(lists_around_scalar(max)).starts_with("value[0][0]"));
  EXPECT_EQ(decode_value(lists_around_empty_list(max)).height(), max);
  EXPECT_ERROR(errc::too_deep, decode_value(lists_around_empty_list(max + 1)));
  EXPECT_ERROR(errc::too_deep, decode_value(lists_around_scalar(max), {.max_depth = 1024}))
      << "no value is higher";
  EXPECT_NO_THROW(static_cast<void>(decode_value(repeated("8100", max - 1) + from_hex("c0"))));
  EXPECT_ERROR(errc::too_deep, decode_value(repeated("8100", max) + from_hex("c0")));
  EXPECT_ERROR(errc::too_deep, decode_value(repeated("81", max) + repeated("c0", max + 1)))
      << "keys inside keys";
}

TEST(MessagePackReader, DepthCanBeLimitedFurther) {
  const decode_limits limits{.max_depth = 32};
  EXPECT_NO_THROW(static_cast<void>(decode_value(repeated("91", 32) + from_hex("c0"), limits)));
  EXPECT_ERROR(errc::too_deep, decode_value(repeated("91", 33) + from_hex("c0"), limits));
  EXPECT_ERROR(errc::invalid_argument, decode_value(from_hex("c0"), {.max_depth = 31}));
  EXPECT_ERROR(errc::invalid_argument, decode_value(from_hex("c0"), {.max_depth = 1025}));
}

TEST(MessagePackReader, AMillionNestedListsAreAnError) {
  EXPECT_ERROR(errc::too_deep, decode_value(repeated("91", 1'000'000) + from_hex("c0")));
}

TEST(MessagePackReader, LimitsBytesAndItems) {
  EXPECT_NO_THROW(
      static_cast<void>(decode_value(from_hex("92c0c0"), {.max_bytes = 3, .max_items = 3})));
  EXPECT_ERROR(errc::too_large, decode_value(from_hex("92c0c0"), {.max_bytes = 2}));
  EXPECT_ERROR(errc::too_large, decode_value(from_hex("92c0c0"), {.max_items = 2}));
  EXPECT_ERROR(errc::too_large, decode_value(from_hex("82c0c001c0"), {.max_items = 4}));
  EXPECT_NO_THROW(static_cast<void>(decode_value(from_hex("9182c0c001c0"), {.max_items = 6})));
  EXPECT_ERROR(errc::invalid_argument, decode_value(from_hex("c0"), {.max_items = 0}));
}

/// The peak of resident memory since reset_peak, in KiB.
std::size_t peak_memory() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmHWM:")) return std::stoul(line.substr(6));
  }
  return 0;
}
void reset_peak() { std::ofstream("/proc/self/clear_refs") << "5"; }

TEST(MessagePackReader, ASmallEnvelopeDoesNotFillTheMemory) {
  // A list of 2^24 - 1 nulls: 16 MiB that compress to 66 KB, and 1.3 GB as values.
  byte_string document = from_hex("dd00ffffff");
  document.resize(document.size() + 0xffffff, std::byte{0xc0});
  const auto envelope = key::wrap(document);
  EXPECT_LT(envelope.size(), 67'000U);
  const auto opened = key::unwrap(envelope);
  reset_peak();
  const auto before = peak_memory();
  EXPECT_ERROR(errc::too_large, decode_value(opened.data));
  EXPECT_LT(peak_memory() - before, 80U << 10U);
}

TEST(MessagePackReader, LimitsMemory) {
  // Each document repeats its part 16384 times and needs more than 1 MiB of memory.
  for (const auto& part : {from_hex("b0") + byte_string(16, std::byte{'x'}), from_hex("8101c0"),
                           from_hex("91c0"), from_hex("c4020000")}) {
    byte_string document = from_hex("dd00004000");
    for (int i = 0; i < 0x4000; ++i) document.insert(document.end(), part.begin(), part.end());
    EXPECT_NO_THROW(static_cast<void>(decode_value(document)));
    EXPECT_ERROR(errc::too_large, decode_value(document, {.max_memory = 1 << 20}));
  }
  const auto bytes = from_hex("c600100000") + byte_string(1 << 20, std::byte{0});
  EXPECT_NO_THROW(static_cast<void>(decode_value(bytes)));
  EXPECT_ERROR(errc::too_large, decode_value(bytes, {.max_memory = 1 << 20}));
  EXPECT_NO_THROW(static_cast<void>(decode_value(from_hex("c0"), {.max_memory = 0})));
  EXPECT_ERROR(errc::too_large, decode_value(from_hex("91c0"), {.max_memory = 0}));
}

// ---- points in time

std::string sentinel(std::string_view marker, std::string_view text, bool marker_first = true) {
  const auto packed = [](std::string_view t) {
    return wire::to_hex(byte_string{std::byte{0xd9}, static_cast<std::byte>(t.size())} +
                        wire::bytes_of(t));
  };
  const auto mark_entry = packed(marker) + "c3";
  const auto value_entry = packed("value") + packed(text);
  return "82" + (marker_first ? mark_entry + value_entry : value_entry + mark_entry);
}
std::optional<key::instant> instant_of(std::string_view text) {
  const auto read = decode(sentinel("__datetime__", text));
  if (const auto* moment = read.if_is<key::instant>()) return *moment;
  EXPECT_NE(read.if_is<key::map>(), nullptr) << text;
  return std::nullopt;
}

TEST(MessagePackReader, ReadsInstants) {
  using namespace std::chrono;
  const sys_seconds noon = sys_days{2024y / February / 29} + 12h;
  EXPECT_EQ(instant_of("2024-02-29T12:00:00+00:00"), (key::instant{noon, 0, {}}));
  EXPECT_EQ(instant_of("2024-02-29T12:00:00Z"), (key::instant{noon, 0, {}}));
  EXPECT_EQ(instant_of("2024-02-29T12:00:00.000Z"), (key::instant{noon, 0, {}}));
  EXPECT_EQ(instant_of("2024-02-29T12:00:00.123456789Z"), (key::instant{noon, 123'456'789, {}}));
  EXPECT_EQ(instant_of("2024-02-29T14:00:00+02:00"), (key::instant{noon, 0, 2h}));
  EXPECT_EQ(instant_of("2024-02-29T06:29:59.5-05:30:00.500000"),
            (key::instant{noon, 0, -(5h + 30min + 500ms)}));
  EXPECT_EQ(instant_of("2024-02-29T12:00:00+00:00:00.000001"),
            (key::instant{noon - 1s, 999'999'000, 1us}));
  EXPECT_EQ(instant_of("1969-12-31T23:59:59.999999+00:00"),
            (key::instant{sys_seconds{-1s}, 999'999'000, {}}));
  EXPECT_EQ(instant_of("0001-01-01T00:00:00+01:00"),
            (key::instant{sys_days{1y / January / 1} - 1h, 0, 1h}));
  EXPECT_EQ(instant_of("9999-12-31T23:59:59-23:59"),
            (key::instant{sys_days{9999y / December / 31} + 23h + 59min + 59s + 23h + 59min, 0,
                          -(23h + 59min)}));
}

TEST(MessagePackReader, TextThatIsNoInstantStaysAMap) {
  for (const auto* text : {"",
                           "2024-02-29",
                           "2024-02-29T12:00:00",
                           "2023-02-29T12:00:00Z",
                           "2024-02-29 12:00:00Z",
                           "2024-02-29t12:00:00Z",
                           "2024-02-29T12:00:00z",
                           "2024-02-29T24:00:00Z",
                           "2024-02-29T12:60:00Z",
                           "2024-02-29T12:00:60Z",
                           "2024-02-29T12:00:00.Z",
                           "2024-02-29T12:00:00.1234567890Z",
                           "2024-02-29T12:00Z",
                           "2024-02-29T12:00:00+24:00",
                           "2024-02-29T12:00:00+0100",
                           "2024-02-29T12:00:00+01",
                           "2024-02-29T12:00:00ZZ",
                           "0000-01-01T00:00:00Z",
                           "-024-01-01T00:00:00Z",
                           "2024-13-01T00:00:00Z",
                           "2024-00-01T00:00:00Z",
                           "2024-01-00T00:00:00Z",
                           "2024-02-29T12:00:00+01:00:00.0000001",
                           "2024-02-29T12:00:00 Z",
                           " 2024-02-29T12:00:00Z",
                           "2024-2-29T12:00:00Z",
                           "2024-02-29T12:00:00,5Z",
                           "2024-02-29T12:00:00+01:60",
                           "+024-01-01T00:00:00Z"}) {
    EXPECT_FALSE(instant_of(text)) << text;
  }
}

TEST(MessagePackReader, ReadsDatesAndTimesOfDay) {
  using namespace std::chrono;
  EXPECT_EQ(decode("82a85f5f646174655f5fc3a576616c7565aa323032342d30312d3031"),
            value(key::date{2024y / January / 1}));
  EXPECT_EQ(decode("82a85f5f74696d655f5fc3a576616c7565a831303a33303a3030"),
            value(key::time_of_day{10h + 30min}));
  EXPECT_EQ(decode(sentinel("__time__", "23:59:59.999999", false)),
            value(key::time_of_day{24h - 1us}));
  EXPECT_EQ(decode(sentinel("__date__", "9999-12-31", false)),
            value(key::date{9999y / December / 31}));
  for (const auto* text : {"2024-01-32", "2024-02-30", "2024-1-1", "20240101", "2024-01-01T", ""}) {
    EXPECT_NE(decode(sentinel("__date__", text)).if_is<key::map>(), nullptr) << text;
  }
  for (const auto* text :
       {"10:30", "10:30:00Z", "10:30:00+00:00", "10:30:00.0000001", "24:00:00", ""}) {
    EXPECT_NE(decode(sentinel("__time__", text)).if_is<key::map>(), nullptr) << text;
  }
}

TEST(MessagePackReader, OnlyTheWholeSentinelIsAPointInTime) {
  const std::string day = "2024-01-01";
  EXPECT_NE(decode(sentinel("__day__", day)).if_is<key::map>(), nullptr);
  EXPECT_NE(decode("82a85f5f646174655f5fc2a576616c7565aa323032342d30312d3031").if_is<key::map>(),
            nullptr)
      << "false";
  EXPECT_NE(decode("82a85f5f646174655f5f01a576616c7565aa323032342d30312d3031").if_is<key::map>(),
            nullptr)
      << "1 is not true";
  EXPECT_NE(decode("82a85f5f646174655f5fc3a576616c756500").if_is<key::map>(), nullptr) << "no text";
  EXPECT_NE(decode("8201c3a576616c7565aa323032342d30312d3031").if_is<key::map>(), nullptr)
      << "no text as key";
  EXPECT_NE(decode("82a85f5f646174655f5fc3a57661757565aa323032342d30312d3031").if_is<key::map>(),
            nullptr)
      << "no value";
  EXPECT_NE(
      decode("83a85f5f646174655f5fc3a576616c7565aa323032342d30312d3031a17800").if_is<key::map>(),
      nullptr)
      << "one entry too many";
  EXPECT_NE(
      decode_value(from_hex(sentinel("__date__", day)), {.temporal = false}).if_is<key::map>(),
      nullptr);
}

}  // namespace
