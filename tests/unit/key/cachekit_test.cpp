#include <holdfast/key/cachekit.hpp>
#include <holdfast/key/interop.hpp>

#include "support/failure_of.hpp"
#include "unit/key/wire_support.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace app {
int get_user(int id);
struct service {
  void method();
};
enum class colour : std::uint8_t { red = 3 };
}  // namespace app
int global_function();

namespace {

using namespace holdfast::key;
using holdfast::errc;
using holdfast::error;
using holdfast::test::failure_of;

const cachekit_keys get_user({.ns = "test", .module = "__main__", .qualname = "get_user"});

TEST(CacheKitKey, MatchesThePublishedKeys) {
  EXPECT_EQ(get_user(42),
            "ns:test:func:__main__.get_user:args:"
            "3870b2ea5735ae639ded9450ef117768db676f037bec636503796c5b81095153:1s");
  EXPECT_EQ(cachekit({.ns = "test", .module = "__main__", .qualname = "get_user"}, "hello")
                .substr(36, 64),
            "07ed6e7b87ff98f70efe4f4a8f082fa79415b9f670be68f3ada1f42244b5b6de");
}

TEST(CacheKitKey, KeywordsAreSortedAndDifferFromPositions) {
  EXPECT_EQ(get_user(kw("b", 1), kw("a", 2)), get_user(kw("a", 2), kw("b", 1)));
  EXPECT_NE(get_user(1), get_user(kw("a", 1)));
  EXPECT_EQ(get_user(1, kw("a", 2), 3), get_user(1, 3, kw("a", 2)));
  const auto twice = failure_of([] { (void)get_user(kw("a", 1), kw("a", 2)); });
  EXPECT_EQ(twice.code(), errc::duplicate);
  EXPECT_EQ(twice.path(), "kwargs");
}

TEST(CacheKitKey, ValuesOfDifferentTypesDiffer) {
  const std::set<std::string> keys{get_user(1), get_user(1.0), get_user(true), get_user("1"),
                                   get_user(std::vector{std::byte{'1'}})};
  EXPECT_EQ(keys.size(), 5U);
  EXPECT_EQ(get_user(0.0), get_user(-0.0));
  EXPECT_EQ(get_user(app::colour::red), get_user(3));
  EXPECT_EQ(get_user(1.5F), get_user(1.5));
  EXPECT_EQ(get_user(uuid::parse("550E8400-E29B-41D4-A716-446655440000")),
            get_user("550e8400-e29b-41d4-a716-446655440000"));
  EXPECT_EQ(get_user(decimal{"1_0.10"}), get_user("10.10"));
  EXPECT_EQ(get_user(path{"C:\\a\\b", path::flavour::windows}), get_user("C:/a/b"));
}

TEST(CacheKitKey, MapsAreSortedWhateverHoldsThem) {
  std::map<std::string, int> sorted;
  std::unordered_map<std::string, int> hashed;
  for (int i = 0; i < 40; ++i) sorted[std::to_string(i)] = hashed[std::to_string(i)] = i;
  EXPECT_EQ(get_user(sorted), get_user(hashed));
  EXPECT_EQ(get_user(std::map<double, int>{{0.5, 1}}, std::map<int, int>{{-1, 1}, {3, 2}}),
            get_user(std::unordered_map<double, int>{{0.5, 1}},
                     std::unordered_map<int, int>{{3, 2}, {-1, 1}}));
}

TEST(CacheKitKey, TimesKeepTheirOffset) {
  using namespace std::chrono;
  const instant utc{sys_seconds{1'704'067'200s}, 0, {}};
  const instant paris{sys_seconds{1'704'067'200s}, 1000, 1h};
  const instant odd{sys_seconds{1'704'067'200s}, 0, -(2h + 3min + 4s + 5us)};
  EXPECT_EQ(get_user(utc), get_user("2024-01-01T00:00:00+00:00"));
  EXPECT_EQ(get_user(sys_days{2024y / January / 1}), get_user(utc));
  EXPECT_EQ(get_user(paris), get_user("2024-01-01T01:00:00.000001+01:00"));
  EXPECT_EQ(get_user(odd), get_user("2023-12-31T21:56:55.999995-02:03:04.000005"));
  EXPECT_EQ(failure_of([] { (void)get_user(sys_days{10000y / January / 1}); }).code(),
            errc::out_of_range);
  EXPECT_EQ(failure_of([] { (void)get_user(instant{sys_seconds{seconds::max()}, 0, {}}); }).code(),
            errc::out_of_range);
}

TEST(CacheKitKey, ArraysAreHashedWithinTheirLimits) {
  EXPECT_EQ(
      get_user(array(std::vector<std::int32_t>{0, 1, 2})),
      get_user(std::tuple("__array_v1__", std::vector{3}, "i32",
                          "c14fd1735c750aba187cb4d6ef01f04b26a1e8e76fde1f7253476c8a165c4531")));
  const std::vector<double> largest(12'500);
  const std::vector<double> too_many(12'501);
  EXPECT_NO_THROW((void)get_user(array(largest)));
  EXPECT_EQ(failure_of([&] { (void)get_user(array(too_many)); }).code(), errc::too_large);
  const std::vector<array_view<double>> fifty(50, array(largest));
  EXPECT_NO_THROW((void)get_user(fifty));
  const auto over =
      failure_of([&] { (void)get_user(fifty, kw("k", array(std::vector<double>{1}))); });
  EXPECT_EQ(over.code(), errc::too_large);
  EXPECT_EQ(over.path(), "kwargs[\"k\"]");
}

TEST(CacheKitKey, DialectsDifferInNameAndCode) {
  const auto key = [](dialect d, std::string_view serializer, std::string_view qualname = "f") {
    const auto text =
        cachekit({.module = "m", .qualname = qualname, .serializer = serializer, .dialect = d}, 1);
    return text.substr(0, text.find(":args:")) + text.substr(text.rfind(':'));
  };
  EXPECT_EQ(key(dialect::v1_0, "std", "<lambda>"), "func:m.<lambda>:1s");
  EXPECT_EQ(key(dialect::py_0_17, "std", "<lambda>"), "func:m._lambda_:1s");
  EXPECT_EQ(key(dialect::current, "std", "a..b é"), "func:m.a.b__:1s");
  EXPECT_EQ(key(dialect::v1_0, "local"), "func:m.f:1s");
  EXPECT_EQ(key(dialect::py_0_17, "local"), "func:m.f:1l");
  EXPECT_EQ(key(dialect::py_0_17, "cbor"), "func:m.f:1s");
  EXPECT_EQ(key(dialect::py_0_17, "default"), "func:m.f:1s");
  EXPECT_EQ(key(dialect::current, "pythonic"), "func:m.f:1a");
  EXPECT_EQ(key(dialect::current, "cbor"), "func:m.f:1x23d5");
  EXPECT_EQ(key(dialect::current, "toml"), "func:m.f:1x0c41");
  EXPECT_EQ(key(dialect::current, "<custom>:ArrowSerializer"), "func:m.f:1x2263");
  EXPECT_EQ(failure_of([&] { (void)key(dialect::current, ""); }).code(), errc::invalid_argument);
  EXPECT_EQ(cachekit({.module = "m", .qualname = "f", .integrity = false}, 1).substr(79), "0s");
}

TEST(CacheKitKey, TheFormerNameOfADialectStillCompiles) {
  static_assert(dialect::seed == dialect::v1_0);
}

TEST(CacheKitKey, LongKeysAreShortenedByCodePoints) {
  const auto length = [](std::size_t n, const char* character) {
    std::string ns;
    for (std::size_t i = 0; i < n; ++i) ns += character;
    return cachekit({.ns = ns, .module = "m", .qualname = "f"}, 1);
  };
  EXPECT_EQ(length(165, "n").size(), 250U);
  EXPECT_EQ(length(166, "n").size(), 83U);
  EXPECT_GT(length(165, "\U0001F600").size(), 700U);
  EXPECT_EQ(length(166, "\U0001F600").size(), 3 + 47 * 4 + 33U);
  EXPECT_EQ(cachekit({.ns = "a b\r\nc", .module = "m", .qualname = "f"}, 1).substr(0, 9),
            "ns:a_b__c");
}

TEST(CacheKitKey, FunctionsAreNamedAsInTheSource) {
  static_assert(function_name<&app::get_user>.module == "app");
  static_assert(function_name<&app::get_user>.qualname == "get_user");
  static_assert(function_name<&app::service::method>.module == "app.service");
  static_assert(function_name<&global_function>.module == "__main__");
  EXPECT_EQ(of<&app::get_user>(42), cachekit({.module = "app", .qualname = "get_user"}, 42));
}

TEST(CacheKitKey, HasTheDepthLimitOfTheReference) {
  const auto nested = [](std::size_t levels, value leaf) {
    for (std::size_t i = 0; i < levels; ++i) {
      list parent;
      parent.items.push_back(std::move(leaf));
      leaf = value(std::move(parent));
    }
    return leaf;
  };
  EXPECT_NO_THROW((void)get_user(nested(509, 1)));
  EXPECT_EQ(failure_of([&] { (void)get_user(nested(510, 1)); }).code(), errc::too_deep);
  EXPECT_NO_THROW((void)get_user(nested(509, list{})));
  EXPECT_EQ(failure_of([&] { (void)get_user(nested(510, list{})); }).code(), errc::too_deep);
  EXPECT_NO_THROW((void)interop("a", "b", nested(1000, 1)));
  EXPECT_EQ(failure_of([&] { (void)nested(1'000'000, 1); }).code(), errc::too_deep)
      << "an error, not a crash";
}

TEST(CacheKitKey, RefusesUnsupportedValues) {
  EXPECT_EQ(failure_of([] { (void)get_user(value(set{})); }).code(), errc::unsupported_type);
  EXPECT_EQ(failure_of([] { (void)get_user(value(object{"a.B", "text"})); }).code(),
            errc::unsupported_type);
  EXPECT_EQ(failure_of([] { (void)get_user(big_integer{"18446744073709551616"}); }).code(),
            errc::out_of_range);
  const auto e = failure_of([] {
    (void)get_user(1, 2, std::map<std::string, std::vector<value>>{{"a", {big_integer{"1e"}}}});
  });
  EXPECT_EQ(e.path(), "args[2].items[\"a\"][0]");
  const value mixed(map{{{value("a"), value(1)}, {value(1), value(2)}}});
  EXPECT_EQ(failure_of([&] { (void)get_user(mixed); }).code(), errc::unsupported_type);
  const value nan_key(
      map{{{value(std::numeric_limits<double>::quiet_NaN()), value(1)}, {value(1), value(2)}}});
  EXPECT_EQ(failure_of([&] { (void)get_user(nan_key); }).code(), errc::not_finite);
}

TEST(CacheKitKey, LargeArgumentsAreStreamed) {
  // explain() keeps the bytes; the call operator streams them into the hash. Both give one key.
  for (const std::size_t size : {2000UL, 2040UL, 2048UL, 2049UL, 4096UL, 100'000UL}) {
    const std::string text(size, 'x');
    const std::vector<std::string> many(100, std::string(size / 100, 'y'));
    const std::vector<value> args{to_value(text), to_value(many)};
    EXPECT_EQ(get_user(text, many), get_user.explain(args).key) << size;
  }
}

TEST(InteropKey, MatchesThePublishedKeys) {
  EXPECT_EQ(interop("users", "get_all"),
            "users:get_all:8064bf5f945dba521b017bb3f32b31a293a6e16944838d171ea9e77fab085e8e");
  EXPECT_EQ(interop("t", "op", -9007199254740993),
            "t:op:ec3d13acc481d13ce04b5eac65c743fb8050e0d41cc999e8337969475b6f5def");
}

TEST(InteropKey, WholeFloatsAreIntegers) {
  EXPECT_EQ(interop("a", "b", 2.0), interop("a", "b", 2));
  EXPECT_EQ(interop("a", "b", -0.0), interop("a", "b", 0));
  EXPECT_EQ(interop("a", "b", -9223372036854775808.0),
            interop("a", "b", std::numeric_limits<std::int64_t>::min()));
  EXPECT_NE(interop("a", "b", 18446744073709551616.0),
            interop("a", "b", std::numeric_limits<std::uint64_t>::max()));
  EXPECT_NE(interop("a", "b", 2.5), interop("a", "b", 2));
  EXPECT_EQ(
      failure_of([] { (void)interop("a", "b", std::numeric_limits<double>::infinity()); }).code(),
      errc::not_finite);
}

TEST(InteropKey, SetsAreSortedByTheirBytes) {
  EXPECT_EQ(interop("a", "b", std::set{3, 1, 2}), interop("a", "b", std::vector{1, 2, 3}));
  EXPECT_EQ(interop("a", "b", std::unordered_set{300, -1, 2}),
            interop("a", "b", std::vector{2, 300, -1}));
  const value duplicates(set{{value(2), value(2.0), value(2.5)}});
  EXPECT_EQ(interop("a", "b", duplicates), interop("a", "b", std::tuple(2, 2.5)));
  const value nested(set{{value(set{{value("b"), value("a")}}), value(list{})}});
  EXPECT_EQ(interop("a", "b", nested),
            interop("a", "b", std::tuple(std::vector<int>{}, std::tuple("a", "b"))));
}

TEST(InteropKey, SegmentsAreCheckedNeverRepaired) {
  for (const char* bad :
       {"", "Users", "a:b", "a b", "op\n", "-a", ".a", "a..b", "caf\u00e9", "ns", "nsapi"}) {
    EXPECT_EQ(failure_of([&] { (void)interop(bad, "op", 1); }).code(), errc::invalid_argument)
        << bad;
  }
  EXPECT_EQ(failure_of([] { (void)interop("users", "getUser", 1); }).path(), "operation");
  EXPECT_NO_THROW((void)interop("users", "ns", 1));
  EXPECT_NO_THROW((void)interop(std::string(64, 'a'), "0._-", 1));
  EXPECT_EQ(failure_of([] { (void)interop(std::string(65, 'a'), "op", 1); }).code(),
            errc::invalid_argument);
}

TEST(InteropKey, MapsHaveTextKeys) {
  const auto e = failure_of([] { (void)interop("a", "b", std::map<int, int>{{1, 1}}); });
  EXPECT_EQ(e.code(), errc::unsupported_type);
  EXPECT_EQ(e.path(), "args[0]");
}

TEST(InteropValue, FloatsStayFloatsAndTimesAreMarked) {
  using namespace std::chrono;
  EXPECT_EQ(wire::to_hex(encode_value(2.0)), "cb4000000000000000");
  EXPECT_EQ(wire::to_hex(encode_value(-0.0)), "cb8000000000000000");
  EXPECT_EQ(wire::to_hex(encode_value(std::map<std::string, int>{{"name", 1}, {"age", 30}})),
            "82a36167651ea46e616d6501");
  EXPECT_EQ(wire::to_hex(encode_value(date{2024y / January / 1})),
            "82a85f5f646174655f5fc3a576616c7565aa323032342d30312d3031");
  EXPECT_EQ(wire::to_hex(encode_value(time_of_day{10h + 30min})),
            "82a85f5f74696d655f5fc3a576616c7565a831303a33303a3030");
  EXPECT_EQ(failure_of([] { (void)encode_value(std::set{1}); }).code(), errc::unsupported_type);
  EXPECT_EQ(failure_of([] { (void)encode_value(uuid{}); }).path(), "value");
  EXPECT_EQ(failure_of([] {
              (void)encode_value(std::vector{1.0, std::numeric_limits<double>::quiet_NaN()});
            }).path(),
            "value[1]");
}

}  // namespace
