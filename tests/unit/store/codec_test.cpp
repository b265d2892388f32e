// An answer becomes bytes and an answer again, or is refused: never something else on the way.

#include <holdfast/nlohmann.hpp>

#include "support/failure_of.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

namespace app {

struct country {
  std::string code;
  std::string name;
  std::optional<double> area{};
  std::vector<std::string> languages{};
  bool operator==(const country&) const = default;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(country, code, name, area, languages)

/// No default constructor, and a form of its own.
class money {
 public:
  explicit money(long cents) : cents_(cents) {}
  bool operator==(const money&) const = default;

  friend std::string holdfast_encode(const money& m) { return "cents=" + std::to_string(m.cents_); }
  friend money holdfast_decode(std::string_view bytes, std::type_identity<money>) {
    if (!bytes.starts_with("cents=")) throw std::invalid_argument("no cents");
    return money(std::stol(std::string(bytes.substr(6))));
  }

 private:
  long cents_;
};

struct paint {
  int red = 0;
  bool operator==(const paint&) const = default;
};
struct plain {
  int x = 0;
};
/// Says something that no one expects.
struct rude {};
[[maybe_unused]] std::string holdfast_encode(const rude&) { throw 7; }
[[maybe_unused]] rude holdfast_decode(std::string_view, std::type_identity<rude>) {
  throw std::bad_alloc();
}

}  // namespace app

template <>
struct holdfast::codec<app::paint> {
  [[nodiscard]] std::string encode(const app::paint& c) const { return {static_cast<char>(c.red)}; }
  [[nodiscard]] app::paint decode(std::string_view bytes) const {
    return {static_cast<unsigned char>(bytes.at(0))};
  }
};

namespace holdfast::test {
namespace {

template <class T>
T there_and_back(const T& value) {
  return decode_payload<T>(encode_payload(value));
}

TEST(Codec, IsDeducedFromTheType) {
  static_assert(encodable<std::string> && encodable<std::vector<std::byte>>);
  static_assert(encodable<app::country> && encodable<std::vector<app::country>> &&
                encodable<std::optional<app::country>>);
  static_assert(encodable<std::vector<std::optional<app::country>>> &&
                encodable<std::map<std::string, app::country>>);
  static_assert(encodable<app::money> && encodable<app::paint> && encodable<int> &&
                encodable<nlohmann::json>);
  static_assert(!encodable<app::plain> && !encodable<std::vector<app::plain>> &&
                !encodable<std::optional<app::plain>>);
  static_assert(!encodable<int*>);
  static_assert(codec_for<json_codec<std::string>, std::string> &&
                !codec_for<json_codec<std::string>, int>);
}

TEST(Codec, RawBytesStayAsTheyAre) {
  const std::string any("a\0\xff\n", 4);
  EXPECT_EQ(encode_payload(any), any) << "a header that is included does not make it JSON";
  EXPECT_EQ(there_and_back(any), any);
  const std::vector<std::byte> bytes{std::byte{0}, std::byte{255}};
  EXPECT_EQ(encode_payload(bytes), std::string("\0\xff", 2));
  EXPECT_EQ(there_and_back(bytes), bytes);
  EXPECT_TRUE(there_and_back(std::vector<std::byte>{}).empty());
}

TEST(Codec, BasicTypesNeedNoOtherLibrary) {
  static_assert(std::is_base_of_v<built_in_codec<int>, codec<int>>,
                "nlohmann.hpp, which is included here, does not replace it");
  static_assert(encodable<std::vector<bool>> && encodable<std::optional<std::string>> &&
                encodable<std::vector<std::vector<std::byte>>> && encodable<char> &&
                encodable<std::vector<std::optional<double>>>);
  EXPECT_EQ(encode_payload(42), "42");
  EXPECT_EQ(encode_payload(-1.5F), "-1.5");
  EXPECT_EQ(encode_payload(1.0), "1.0");
  EXPECT_EQ(encode_payload(true), "true");
  EXPECT_EQ(encode_payload(std::optional<int>{}), "null");
  EXPECT_EQ(encode_payload(std::vector<bool>{true, false}), "[true,false]");
  EXPECT_EQ(encode_payload(std::vector<std::string>{"a\"\\\n", "é", ""}),
            R"(["a\"\\\u000a","é",""])");
  const std::vector<std::vector<std::byte>> pieces{{std::byte{0}, std::byte{255}}, {}};
  EXPECT_EQ(encode_payload(pieces), R"(["AP8=",""])");
  EXPECT_EQ(there_and_back(pieces), pieces);
  const std::vector<std::optional<double>> numbers{0.1, std::nullopt, -0.0, 1e300, 5e-324};
  EXPECT_EQ(there_and_back(numbers), numbers);
  EXPECT_EQ(there_and_back(0.1F), 0.1F);
  EXPECT_EQ(there_and_back(std::numeric_limits<std::int64_t>::min()),
            std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(there_and_back(std::vector<std::vector<int>>{{1, 2}, {}}),
            (std::vector<std::vector<int>>{{1, 2}, {}}));
}

/// What was kept before these codecs existed can still be read, and by programs that use the other.
template <class T>
void expect_same_text_as_nlohmann(const T& value) {
  const json_codec<T> other;
  EXPECT_EQ(decode_payload<T>(encode_payload(value, other)), value);
  EXPECT_EQ(decode_payload<T>(encode_payload(value), other), value);
}
TEST(Codec, BuiltInAndNlohmannReadEachOther) {
  expect_same_text_as_nlohmann(std::numeric_limits<std::uint64_t>::max());
  expect_same_text_as_nlohmann(std::vector<double>{0.1, 1e22, 1, 1e-7, 12345678901234567890.0});
  expect_same_text_as_nlohmann(std::vector<float>{0.1F, 3.4e38F});
  expect_same_text_as_nlohmann(std::optional<std::string>("\x01\x1f\x7f\xf0\x9f\x98\x80/\"\\"));
  expect_same_text_as_nlohmann(std::vector<std::optional<bool>>{true, std::nullopt});
}

TEST(Codec, BuiltInCodecsReadJsonAndNothingElse) {
  EXPECT_EQ(decode_payload<std::vector<int>>(" [ 1 ,\n2 ] "), (std::vector<int>{1, 2}));
  EXPECT_EQ(decode_payload<double>("7"), 7.0);
  EXPECT_EQ(decode_payload<std::optional<std::string>>(R"("\u00e9\ud83d\ude00\/\t")"),
            "é\xf0\x9f\x98\x80/\t");
  for (const char* bad : {"", "[", "[1", "[1,", "[1,]", "[,1]", "[1 2]", "[01]", "[1.5]", "[true]",
                          "[1]x", "1", "[+1]", "[1e2]", "[99999999999]", "[null]", "{}"})
    EXPECT_EQ(failure_of([&] { (void)decode_payload<std::vector<int>>(bad); }).code(),
              errc::malformed)
        << bad;
  for (const char* bad : {"1.", ".5", "1e", "-", "inf", "NaN", "1e999", "0x1", "1e400"})
    EXPECT_EQ(failure_of([&] { (void)decode_payload<double>(bad); }).code(), errc::malformed)
        << bad;
  for (const char* bad : {"\"", "\"\n\"", "\"\xff\"", R"("\u12")", R"("\ud800")",
                          R"("\ud800\u0041")", R"("\udc00")", R"("\x")", "'a'"})
    EXPECT_EQ(failure_of([&] { (void)decode_payload<std::optional<std::string>>(bad); }).code(),
              errc::malformed)
        << bad;
  EXPECT_EQ(failure_of([] {
              (void)decode_payload<std::vector<std::vector<std::byte>>>(R"(["A"])");
            }).code(),
            errc::malformed);
  EXPECT_EQ(failure_of([] { (void)encode_payload(std::vector<std::string>{"\xff"}); }).code(),
            errc::ill_formed_text);
  EXPECT_EQ(std::string(failure_of([] {
                          (void)decode_payload<std::vector<int>>("[1,\"secret\"]");
                        }).what()),
            "payload: the payload does not match the type: expected a number at byte 4");
}

TEST(Codec, JsonCarriesStructsContainersAndOptionals) {
  const app::country france{"FR", "France é \"q\"", 551'695.0, {"fr"}};
  EXPECT_EQ(encode_payload(app::country{"FR", "France"}),
            R"({"area":null,"code":"FR","languages":[],"name":"France"})");
  EXPECT_EQ(there_and_back(france), france);
  const std::vector<std::optional<app::country>> some{france, std::nullopt};
  EXPECT_EQ(there_and_back(some), some);
  EXPECT_EQ(encode_payload(std::optional<int>{}), "null");
  EXPECT_EQ(decode_payload<std::optional<int>>("7"), 7);
  EXPECT_EQ(there_and_back(std::map<std::string, int>{{"a", 1}}),
            (std::map<std::string, int>{{"a", 1}}));
  EXPECT_EQ(there_and_back(std::numeric_limits<std::uint64_t>::max()),
            std::numeric_limits<std::uint64_t>::max());
  EXPECT_EQ(there_and_back(0.1), 0.1);
  EXPECT_EQ(encode_payload(std::string("a\"b"), json_codec<std::string>{}), R"("a\"b")");
}

TEST(Codec, YoursComeFirst) {
  EXPECT_EQ(encode_payload(app::money(250)), "cents=250");
  EXPECT_EQ(there_and_back(app::money(250)), app::money(250));
  EXPECT_EQ(there_and_back(app::paint{200}), app::paint{200});
}

TEST(Codec, WhatJsonCannotSayIsRefused) {
  const auto nan = std::numeric_limits<double>::quiet_NaN();
  auto e = failure_of([&] {
    (void)encode_payload(std::vector<app::country>{{"FR", "France"}, {"XX", "Nowhere", nan}});
  });
  EXPECT_EQ(e.code(), errc::not_finite);
  EXPECT_EQ(e.path(), "answer[1].area") << e.what();
  EXPECT_EQ(
      failure_of([&] { (void)encode_payload(std::numeric_limits<double>::infinity()); }).code(),
      errc::not_finite);
  e = failure_of([&] {
    (void)encode_payload(app::country{"FR",
                                      "Fran\xe7"
                                      "ais"});
  });
  EXPECT_EQ(e.code(), errc::ill_formed_text) << e.what();
  EXPECT_EQ(
      failure_of([&] { (void)encode_payload(std::map<std::string, int>{{"\xff", 1}}); }).code(),
      errc::ill_formed_text);
  EXPECT_EQ(failure_of([&] {
              (void)encode_payload(nlohmann::json{{"a", nlohmann::json::binary({1})}});
            }).code(),
            errc::unsupported_type);
}

TEST(Codec, BadBytesSayWhatIsWrongAndNotWhatTheyHold) {
  for (const char* bad : {"", "{", "{}x", R"({"code":"secret)", "nul", "[1,]", "\xff", "'a'", "NaN",
                          "1e999", "\"\xc3\""}) {
    const auto e = failure_of([&] { (void)decode_payload<nlohmann::json>(bad); });
    EXPECT_EQ(e.code(), errc::malformed) << bad;
    EXPECT_EQ(std::string(e.what()).find("secret"), std::string::npos) << e.what();
  }
  auto e = failure_of([&] { (void)decode_payload<app::country>(R"({"code":7})"); });
  EXPECT_EQ(e.code(), errc::malformed);
  EXPECT_NE(e.message().find("must be string"), std::string::npos) << e.what();
  e = failure_of([&] { (void)decode_payload<app::country>(R"({"code":"FR"})"); });
  EXPECT_NE(e.message().find("'name' not found"), std::string::npos) << e.what();
}

TEST(Codec, AnIntegerIsNotCutToSize) {
  EXPECT_EQ(decode_payload<std::uint8_t>("255"), 255);
  EXPECT_EQ(decode_payload<std::int64_t>("-9223372036854775808"),
            std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(decode_payload<std::uint64_t>("18446744073709551615"),
            std::numeric_limits<std::uint64_t>::max());
  for (const char* bad : {"256", "-1", "1.5", "true", "\"1\""})
    EXPECT_EQ(failure_of([&] { (void)decode_payload<std::uint8_t>(bad); }).code(), errc::malformed)
        << bad;
  EXPECT_EQ(failure_of([&] { (void)decode_payload<std::int64_t>("9223372036854775808"); }).code(),
            errc::malformed);
  EXPECT_EQ(failure_of([&] { (void)decode_payload<std::uint64_t>("-1"); }).code(), errc::malformed);
}

TEST(Codec, DepthHasALimit) {
  const auto nested = [](std::size_t height) {
    return std::string(height, '[') + std::string(height, ']');
  };
  EXPECT_EQ(encode_payload(decode_payload<nlohmann::json>(nested(1024))), nested(1024));
  EXPECT_EQ(failure_of([&] { (void)decode_payload<nlohmann::json>(nested(1025)); }).code(),
            errc::malformed);
  EXPECT_EQ(
      failure_of([&] { (void)decode_payload<nlohmann::json>(std::string(1'000'000, '[')); }).code(),
      errc::malformed);
  EXPECT_NO_THROW(
      (void)decode_payload<nlohmann::json>(R"([")" + std::string(5000, '[') + R"(\"["])"))
      << "brackets in text do not count";
  nlohmann::json deep = nlohmann::json::array();
  for (int i = 0; i < 1100; ++i) deep = nlohmann::json::array({std::move(deep)});
  EXPECT_EQ(failure_of([&] { (void)encode_payload(deep); }).code(), errc::too_deep);
}

TEST(Codec, WhatACodecThrowsBecomesAnError) {
  auto e = failure_of([] { (void)decode_payload<app::money>("euros"); });
  EXPECT_EQ(e.code(), errc::malformed);
  EXPECT_EQ(e.message(), "the payload cannot be decoded: no cents");
  EXPECT_EQ(failure_of([] { (void)decode_payload<app::paint>(""); }).code(), errc::malformed);
  EXPECT_EQ(failure_of([] { (void)encode_payload(app::rude{}); }).code(), errc::malformed);
  EXPECT_THROW((void)decode_payload<app::rude>(""), std::bad_alloc) << "no fault of the bytes";
}

}  // namespace
}  // namespace holdfast::test
