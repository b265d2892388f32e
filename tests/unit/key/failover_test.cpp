#include <holdfast/key/failover.hpp>

#include "support/failure_of.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <deque>
#include <filesystem>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace money {

struct amount {
  std::string currency;
  int cents;
};
auto holdfast_key(const amount& a) { return a.currency + "/" + std::to_string(a.cents); }

enum class status { active, closed };
std::string_view holdfast_key(status s) { return s == status::active ? "ACTIVE" : "CLOSED"; }

}  // namespace money

namespace {

using namespace holdfast::key;
using holdfast::errc;
using holdfast::error;
using holdfast::test::failure_of;

const failover_keys exact({.name = "country-by-code"}, {.style = style::exact});
const failover_keys escaped({.name = "country-by-code"});

TEST(FailoverKey, MatchesThePublishedUuids) {
  EXPECT_EQ(exact(), "d2926335-695e-3edd-bccf-67bff3f530c0");
  EXPECT_EQ(exact("FR"), "cd4502b1-d2d2-39ee-930f-13582ac674c1");
  EXPECT_EQ(exact(""), "bcb1d9f8-1006-37fa-87be-826a7d6635a8");
  EXPECT_EQ(exact("x", nullptr, "y"), "85989064-7eac-32b4-a2cc-1d7d578f9146");
  EXPECT_EQ(exact(1e7), "77bd2fa5-0372-32de-b5a7-d023c82efd96");
  EXPECT_EQ(exact(0.1 + 0.2), "e4f9cc72-ea8e-31f8-8478-190103650e3b");
  EXPECT_EQ(exact("Société Générale"), "11d17102-cb42-3be9-883b-94c90678bcdf");
  EXPECT_EQ(failover({.name = "country-by-code"}, "FR"), "cd4502b1-d2d2-39ee-930f-13582ac674c1");
  EXPECT_EQ(failover({.name = "any", .domain = "country"}, "FR"),
            "fe378bef-459d-3ba5-bfb1-b6c2c8654d4c");
}

TEST(FailoverKey, ExactStyleIsJavas) {
  EXPECT_EQ(exact.raw(), "NO-ARG");
  EXPECT_EQ(exact.raw("active", "EU"), "active:EU");
  EXPECT_EQ(exact.raw(std::vector{1, 2, 3}), "1,2,3");
  EXPECT_EQ(exact.raw(std::vector<std::vector<int>>{{1, 2}, {3}}), "1,2,3");
  EXPECT_EQ(exact.raw("a:b", "c"), exact.raw("a", "b:c"));
  EXPECT_EQ(exact.raw(true, 'A', U'é', -9L), "true:A:é:-9");
  EXPECT_EQ(exact.raw(std::map<std::string, int>{{"b", 2}, {"a", 1}}), "{a=1, b=2}");
  EXPECT_EQ(exact.raw(std::set<std::string>{"b", "a"}), "a,b");
  EXPECT_EQ(exact.raw(std::vector<std::byte>{std::byte{0}, std::byte{255}, std::byte{127}}),
            "0,-1,127");
  EXPECT_EQ(exact.raw(array(std::vector<float>{0.5F, 1e10F})), "0.5,1.0E10");
}

TEST(FailoverKey, NumbersPrintAsJavaPrintsThem) {
  const auto raw = [](auto v) { return exact.raw(v); };
  EXPECT_EQ(raw(1.0), "1.0");
  EXPECT_EQ(raw(0.001), "0.001");
  EXPECT_EQ(raw(9.99e-4), "9.99E-4");
  EXPECT_EQ(raw(1e7), "1.0E7");
  EXPECT_EQ(raw(9999999.0), "9999999.0");
  EXPECT_EQ(raw(12345678.9), "1.23456789E7");
  EXPECT_EQ(raw(4.9e-324), "4.9E-324");
  EXPECT_EQ(raw(1.4e-45F), "1.4E-45");
  EXPECT_EQ(raw(2e23), "2.0E23");
  EXPECT_EQ(raw(1.0E23), "1.0E23");
  EXPECT_EQ(raw(std::numeric_limits<double>::max()), "1.7976931348623157E308");
  EXPECT_EQ(raw(std::numeric_limits<double>::min()), "2.2250738585072014E-308");
  EXPECT_EQ(raw(-0.0), "-0.0");
  EXPECT_EQ(raw(std::numeric_limits<double>::quiet_NaN()), "NaN");
  EXPECT_EQ(raw(-std::numeric_limits<double>::infinity()), "-Infinity");
  EXPECT_EQ(raw(0.1F), "0.1");
  EXPECT_EQ(raw(1.0F / 3), "0.33333334");
  EXPECT_EQ(raw(std::numeric_limits<std::int64_t>::min()), "-9223372036854775808");
  EXPECT_EQ(raw(std::numeric_limits<std::uint64_t>::max()), "18446744073709551615");
  EXPECT_EQ(raw(big_integer{"+0018446744073709551616"}), "18446744073709551616");
  EXPECT_EQ(raw(decimal{"0.0000001"}), "1E-7");
  EXPECT_EQ(raw(decimal{"1.00"}), "1.00");
  EXPECT_EQ(raw(decimal{"1E+3"}), "1E+3");
  EXPECT_EQ(raw(decimal{"-0.00"}), "0.00");
  EXPECT_EQ(raw(decimal{"123.4e5"}), "1.234E+7");
}

TEST(FailoverKey, TimesPrintAsJavaInstants) {
  using namespace std::chrono;
  const sys_seconds t{1'700'000'000s};
  EXPECT_EQ(exact.raw(t), "2023-11-14T22:13:20Z");
  EXPECT_EQ(exact.raw(t + 123ms), "2023-11-14T22:13:20.123Z");
  EXPECT_EQ(exact.raw(t + 123us), "2023-11-14T22:13:20.000123Z");
  EXPECT_EQ(exact.raw(t + 123'456'789ns), "2023-11-14T22:13:20.123456789Z");
  EXPECT_EQ(exact.raw(sys_days{1969y / December / 31} + 23h + 59min + 59s + 500ms),
            "1969-12-31T23:59:59.500Z");
}

TEST(FailoverKey, EscapedTellsApartWhatExactMixesUp) {
  EXPECT_EQ(escaped.raw("a:b", "c"), "a\\:b:c");
  EXPECT_EQ(escaped.raw("a", "b:c"), "a:b\\:c");
  EXPECT_EQ(escaped.raw("a,b\\"), "a\\,b\\\\");
  EXPECT_EQ(escaped.raw(""), "\\e");
  EXPECT_EQ(escaped.raw(nullptr), "\\0");
  EXPECT_EQ(escaped.raw("NO-ARG"), "\\NO-ARG");
  EXPECT_EQ(escaped.raw(), "NO-ARG");
  EXPECT_EQ(escaped.raw(std::vector<std::string>{}), "\\-");
  EXPECT_EQ(escaped.raw(std::vector<std::string>{""}), "\\e");
  EXPECT_EQ(escaped.raw(std::vector<std::optional<std::string>>{std::nullopt}), "\\-\\0");
  EXPECT_EQ(escaped.raw(std::optional<std::vector<std::string>>{}), "\\0");
  EXPECT_EQ(escaped.raw(std::vector<std::vector<int>>{{1, 2}, {3}}), "\\[1,2\\],\\[3\\]");
  EXPECT_EQ(escaped.raw(std::vector<std::vector<int>>{{}}), "\\[\\]");
  EXPECT_EQ(escaped.raw(std::map<std::string, std::string>{{"a", "1=2"}}), "{a=1\\=2}");
  EXPECT_EQ(escaped.raw(std::map<std::string, std::string>{{"a=1", "2"}}), "{a\\=1=2}");
  EXPECT_EQ(escaped.raw(std::map<std::string, std::vector<std::string>>{{"a", {"x", "]"}}}),
            "{a=[x, \\]]}");
}

TEST(FailoverKey, EscapedIsExactForOrdinaryArguments) {
  EXPECT_EQ(escaped("active", 7, true, 1.5, std::vector{1, 2}),
            exact("active", 7, true, 1.5, std::vector{1, 2}));
  EXPECT_EQ(escaped.raw(std::map<std::string, int>{{"a", 1}}),
            exact.raw(std::map<std::string, int>{{"a", 1}}));
}

TEST(FailoverKey, UserTypesNeedOneFunction) {
  EXPECT_EQ(exact.raw(money::amount{"EUR", 42}, money::status::closed), "EUR/42:CLOSED");
  EXPECT_EQ(exact.raw(std::vector{money::status::active}), "ACTIVE");
}

TEST(FailoverKey, EveryKindOfContainerWorks) {
  EXPECT_EQ(exact.raw(std::deque{1, 2}, std::array{3, 4}, std::pair(5, "x"), std::tuple(6, 7.5)),
            "1,2:3,4:5,x:6,7.5");
  EXPECT_EQ(exact.raw(std::vector<bool>{true, false}), "true,false");
  EXPECT_EQ(exact.raw(std::variant<int, std::string>("v"), std::filesystem::path("/a//b")),
            "v:/a//b");
  EXPECT_EQ(exact.raw(uuid::parse("550E8400-E29B-41D4-A716-446655440000")),
            "550e8400-e29b-41d4-a716-446655440000");
}

TEST(FailoverKey, EffectiveNameIsTheDomainUnlessBlank) {
  EXPECT_EQ(effective_name({.name = "tp-by-id"}), "tp-by-id");
  EXPECT_EQ(effective_name({.name = "tp-by-id", .domain = "tp"}), "tp");
  EXPECT_EQ(effective_name({.name = "n", .domain = " \t\n "}), "n");
  EXPECT_EQ(effective_name({.name = "n", .domain = "\u2003\u3000"}), "n");
  // Java does not treat a no-break space as white space.
  EXPECT_EQ(effective_name({.name = "n", .domain = "\u00a0"}), "\u00a0");
  EXPECT_EQ(effective_name({.name = "n", .domain = " d "}), " d ");  // not trimmed
}

TEST(FailoverKey, GeneratorsReplaceLayerOneCompletely) {
  generators registry;
  registry.add("first_only", [](const point_info& point, std::span<const value> args) {
    return std::string(point.name) + "/" + *args.front().if_is<std::string>();
  });
  const failover_keys custom({.name = "p", .domain = "d"}, {.generator = "first_only"}, registry);
  EXPECT_EQ(custom.raw("a", "ignored"), "p/a");
  EXPECT_EQ(custom("a", 1), custom("a", 2));
  EXPECT_EQ(custom("a"), custom.of_raw("p/a"));

  const failover_keys csv({.name = "entities-by-ids"}, {.generator = "sorted_csv"});
  EXPECT_EQ(csv.raw("3, 2,1"), "1,2,3");
  EXPECT_EQ(csv("1,2,3"), csv("3, 2,1"));
  EXPECT_EQ(csv.raw("b,a,,"), "a,b");
  EXPECT_EQ(failure_of([&] { (void)csv(1); }).code(), errc::invalid_argument);
}

TEST(FailoverKey, TheConstructorRefusesBadPoints) {
  const auto missing = failure_of([] { failover_keys({.name = "p"}, {.generator = "sortedcsv"}); });
  EXPECT_EQ(missing.code(), errc::not_found);
  EXPECT_NE(missing.message().find("sorted_csv"), std::string::npos)
      << "lists the registered names";
  EXPECT_EQ(failure_of([] { failover_keys({.name = " "}); }).code(), errc::invalid_argument);
  EXPECT_EQ(failure_of([] { (void)failover({.name = ""}, 1); }).code(), errc::invalid_argument);
  EXPECT_EQ(failure_of([] { failover_keys({.name = "\xff"}); }).code(), errc::ill_formed_text);
  EXPECT_EQ(failure_of([] {
              failover_keys({.name = "p"}, {.hash = row_hash::blake2b, .secret = "short"});
            }).code(),
            errc::invalid_argument);
  EXPECT_EQ(
      failure_of([] { failover_keys({.name = "p"}, {.secret = std::string(32, 's')}); }).code(),
      errc::invalid_argument);
  generators registry;
  EXPECT_EQ(failure_of([&] {
              registry.add("sorted_csv",
                           [](const point_info&, std::span<const value>) { return std::string(); });
            }).code(),
            errc::duplicate);
}

TEST(FailoverKey, Blake2bRowsAreVersionEightAndDependOnTheSecret) {
  const failover_keys plain({.name = "p"}, {.hash = row_hash::blake2b});
  const failover_keys keyed({.name = "p"},
                            {.hash = row_hash::blake2b, .secret = "0123456789abcdef"});
  EXPECT_EQ(plain("FR")[14], '8');
  EXPECT_EQ(keyed("FR")[14], '8');
  EXPECT_NE(plain("FR"), keyed("FR"));
  // From hashlib.blake2b(b"p:FR", digest_size=16[, key=secret]) with the version and variant bits
  // set.
  EXPECT_EQ(plain("FR"), "a20957a3-8cb1-8a66-af0b-5e99a555ebaf");
  EXPECT_EQ(keyed("FR"), "8fe46f6b-3757-83ff-82aa-2566fc09a31c");
}

TEST(FailoverKey, ObjectsWithoutTextWarnOncePerTypeOrAreRefused) {
  std::vector<std::string> warnings;
  const failover_keys noisy(
      {.name = "p"},
      {.style = style::exact, .on_unstable = [&](std::string_view point, std::string_view type) {
         warnings.push_back(std::string(point) + " " + std::string(type));
       }});
  const std::vector<value> args{object_identity{"a.B", 51966}};
  EXPECT_EQ(noisy.raw_of(args), "a.B@cafe");
  EXPECT_EQ(noisy.raw_of(args), "a.B@cafe");
  EXPECT_EQ(noisy.raw_of(std::vector<value>{object_identity{"a.C", -1}}), "a.C@ffffffff");
  EXPECT_EQ(warnings, (std::vector<std::string>{"p a.B", "p a.C"}));
  for (int i = 0; i < 5000; ++i)
    (void)noisy.raw_of(std::vector<value>{object_identity{"t" + std::to_string(i), 1}});
  EXPECT_EQ(warnings.size(), 1000U) << "bounded";
  EXPECT_EQ(failure_of([&] { (void)escaped.raw_of(args); }).code(), errc::unsupported_type);
}

TEST(FailoverKey, ErrorsNameThePath) {
  const auto e = failure_of([] {
    (void)exact.raw("ok",
                    std::map<std::string, std::vector<std::string>>{{"a", {"fine", "\xc3\x28"}}});
  });
  EXPECT_EQ(e.code(), errc::ill_formed_text);
  EXPECT_EQ(e.path(), "args[1].items[\"a\"][1]");
  EXPECT_EQ(failure_of([] { (void)exact.raw(decimal{"1.2.3"}); }).path(), "args[0]");
  const auto twice =
      failure_of([] { (void)exact.raw(std::multimap<std::string, int>{{"k", 1}, {"k", 2}}); });
  EXPECT_EQ(twice.code(), errc::duplicate);
}

TEST(FailoverKey, KeysCanBeMadeWhileAKeyIsMade) {
  // A holdfast_key function may make a key itself while the outer key is hashed.
  struct nested {
    std::string operator()(int depth) const {
      return depth == 0
                 ? exact("FR")
                 : exact(std::string(5000, 'x') + (*this)(depth - 1), std::string(5000, 'y'));
    }
  };
  const std::string outer = exact(std::string(5000, 'x') + exact("FR"), std::string(5000, 'y'));
  EXPECT_EQ(nested{}(1), outer);
}

TEST(FailoverKey, ManyThreadsMakeTheSameKeys) {
  std::vector<std::thread> threads;
  std::vector<std::string> keys(4);
  for (std::size_t t = 0; t < keys.size(); ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 1000; ++i) keys[t] = exact("FR", i);
    });
  }
  for (auto& thread : threads) thread.join();
  for (const auto& k : keys) EXPECT_EQ(k, exact("FR", 999));
}

}  // namespace
