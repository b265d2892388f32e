// What holds across the schemes: C++ arguments and run-time values make the same keys, order does
// not matter where the format has none, types are told apart where the format tells them apart,
// values survive a round trip, and errors say where.

#include <holdfast/cachekit/messagepack.hpp>
#include <holdfast/error.hpp>
#include <holdfast/key/cachekit.hpp>
#include <holdfast/key/failover.hpp>
#include <holdfast/key/interop.hpp>
#include <holdfast/key/keyable.hpp>
#include <holdfast/key/typed_json.hpp>
#include <holdfast/key/value.hpp>

#include "property/generators.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

namespace app {

enum class colour { red, green };
std::string_view holdfast_key(colour c) { return c == colour::red ? "RED" : "a:b"; }

struct money {
  std::string currency;
  std::int64_t cents;
};
auto holdfast_key(const money& m) { return std::tuple(m.currency, m.cents); }

}  // namespace app

namespace {

using namespace holdfast_test;  // NOLINT(google-build-using-namespace): the generators are this file's vocabulary

template <class... A>
void same_failover_key(const A&... args) {
  const std::vector<key::value> values{key::to_value(args)...};
  for (const auto style : {key::style::exact, key::style::escaped}) {
    const key::failover_keys keys({.name = "point", .domain = "domain"}, {.style = style});
    RC_ASSERT(keys.raw(args...) == keys.raw_of(values));
    RC_ASSERT(keys(args...) == keys.of(values));
  }
}

template <class... A>
void same_cachekit_key(const A&... args) {
  const std::vector<key::value> values{key::to_value(args)...};
  const key::cachekit_keys keys({.ns = "test", .module = "app", .qualname = "f"});
  RC_ASSERT(keys(args...) == keys.of(values));
  RC_ASSERT(keys(args...) == keys.explain(values).key);
}

template <class... A>
void same_interop_key(const A&... args) {
  const std::vector<key::value> values{key::to_value(args)...};
  const key::interop_keys keys("users", "get_user");
  RC_ASSERT(keys(args...) == keys.of(values));
  RC_ASSERT(keys(args...) == keys.explain(values).key);
}

template <class... A>
void same_key(const A&... args) {
  same_failover_key(args...);
  same_cachekit_key(args...);
  same_interop_key(args...);
}

// Mutant: to_value makes a signed integer of an unsigned one beyond 2^63, or a double of a float.
RC_GTEST_PROP(CppArgumentsAndValuesMakeTheSameKey, OfNumbers, ()) {
  const auto number = *any_int();
  same_key(number, static_cast<std::uint64_t>(number), static_cast<std::int32_t>(number),
           static_cast<std::uint16_t>(number), static_cast<std::int8_t>(number), number % 2 == 0,
           *finite_double());
  same_failover_key(*rc::gen::arbitrary<float>());
  same_cachekit_key(*rc::gen::arbitrary<float>());
}

// Mutant: to_value takes bytes for text, or a character for a number.
RC_GTEST_PROP(CppArgumentsAndValuesMakeTheSameKey, OfTexts, ()) {
  const auto text = *any_text();
  same_key(text, std::string_view(text), std::optional<std::string>(text),
           std::optional<std::string>(), nullptr, U'é', *any_bytes());
}

// Mutant: to_value takes a set for a list.
RC_GTEST_PROP(CppArgumentsAndValuesMakeTheSameKey, OfContainers, ()) {
  const auto texts = *rc::gen::container<std::vector<std::string>>(any_text());
  const auto numbers = *rc::gen::arbitrary<std::vector<int>>();
  std::vector<std::optional<std::string>> optionals(texts.begin(), texts.end());
  optionals.emplace_back();
  std::map<std::string, std::vector<int>> by_text;
  for (const auto& each : texts) by_text[each] = numbers;
  same_key(texts, numbers, optionals, by_text, std::tuple(texts, 1, std::pair(true, numbers)),
           std::vector{numbers, numbers});
  same_key(std::vector<bool>{true, false}, std::array<double, 2>{0.5, 2.0});

  const std::set<std::string> unique(texts.begin(), texts.end());
  same_failover_key(unique);
  same_interop_key(unique);
  same_failover_key(std::map<int, std::string>{{1, "a"}, {-1, "b"}});
  same_cachekit_key(std::map<int, std::string>{{1, "a"}, {-1, "b"}});
  const std::unordered_map<std::string, std::vector<int>> hashed(by_text.begin(), by_text.end());
  same_cachekit_key(hashed);
  same_interop_key(hashed);
}

// Mutant: to_value keeps seconds only.
RC_GTEST_PROP(CppArgumentsAndValuesMakeTheSameKey, OfTheModelsOwnTypes, ()) {
  same_key(*any_moment(), *any_uuid(), key::decimal{"1.10"}, std::filesystem::path("/a//b/./c"),
           app::colour::green, app::money{*any_text(), *any_int()});
  const auto numbers = *rc::gen::arbitrary<std::vector<double>>();
  same_cachekit_key(key::array(numbers));
  same_cachekit_key(std::vector{key::array(numbers)});
}

// Mutant: keyword arguments are written in the order in which they come.
RC_GTEST_PROP(CppArgumentsAndValuesMakeTheSameKey, OfKeywords, ()) {
  const auto text = *any_text();
  const auto number = *any_int();
  const key::cachekit_keys keys({.module = "app", .qualname = "f"});
  const std::vector<key::value> positional{number};
  const std::vector<std::pair<std::string, key::value>> named{{"b", text}, {"a", number}};
  RC_ASSERT(keys(key::kw("b", text), number, key::kw("a", number)) == keys.of(positional, named));
  const std::vector<std::pair<std::string, key::value>> other_order{{"a", number}, {"b", text}};
  RC_ASSERT(keys.of(positional, other_order) == keys.of(positional, named));
  RC_ASSERT(keys(number, key::kw("a", number), key::kw("b", text)) == keys.of(positional, named));
}

/// A value of the interop value profile. Maps are in the order in which they are encoded, so that
/// equality can be asked of the whole.
rc::Gen<key::value> any_interop_value(int depth);

rc::Gen<key::value> any_interop_scalar() {
  const auto as_value = [](const auto& v) { return key::value(v); };
  const auto moment = rc::gen::map(
      rc::gen::pair(any_moment(), rc::gen::inRange(-1439, 1440)), [](const auto& parts) {
        const auto seconds = std::chrono::floor<std::chrono::seconds>(parts.first);
        key::instant result{
            seconds,
            static_cast<std::uint32_t>(std::chrono::nanoseconds(parts.first - seconds).count()),
            std::chrono::minutes(parts.second)};
        // Near the ends of the calendar only UTC stays inside it.
        if (seconds < std::chrono::sys_days{std::chrono::year{2} / 1 / 1} ||
            seconds > std::chrono::sys_days{std::chrono::year{9999} / 1 / 1})
          result.offset = {};
        return key::value(result);
      });
  const auto day = rc::gen::map(any_moment(), [](const auto& m) {
    return key::value(key::date{std::chrono::floor<std::chrono::days>(m)});
  });
  const auto clock = rc::gen::map(
      rc::gen::inRange<std::int64_t>(0, 86'400'000'000),
      [](std::int64_t us) { return key::value(key::time_of_day{std::chrono::microseconds(us)}); });
  return rc::gen::oneOf(rc::gen::just(key::value()),
                        rc::gen::map(rc::gen::arbitrary<bool>(), as_value),
                        rc::gen::map(any_int(), as_value),
                        rc::gen::map(rc::gen::arbitrary<std::uint64_t>(), as_value),
                        rc::gen::map(finite_double(), as_value), rc::gen::map(any_text(), as_value),
                        rc::gen::map(any_bytes(), as_value), moment, day, clock);
}

rc::Gen<key::value> any_interop_value(int depth) {
  if (depth == 0) return any_interop_scalar();
  const auto items = rc::gen::map(
      rc::gen::resize(4, rc::gen::container<std::vector<key::value>>(any_interop_value(depth - 1))),
      [](std::vector<key::value> v) { return key::value(key::list{std::move(v)}); });
  const auto entries =
      rc::gen::map(rc::gen::resize(4, rc::gen::container<std::map<std::string, key::value>>(
                                          any_text(), any_interop_value(depth - 1))),
                   [](const std::map<std::string, key::value>& sorted) {
                     key::map result;
                     for (const auto& [k, v] : sorted) result.items.emplace_back(k, v);
                     return key::value(std::move(result));
                   });
  return rc::gen::oneOf(any_interop_scalar(), items, entries);
}

// Mutant: the encoder writes -1 as 0xfe, or the decoder reads an offset with the wrong sign.
RC_GTEST_PROP(InteropValues, SurviveARoundTrip, ()) {
  const auto v = *any_interop_value(3);
  const auto document = key::encode_value(v);
  RC_ASSERT(key::decode_value(document) == v);
  RC_ASSERT(key::encode_value(key::decode_value(document)) == document);
}

/// The same value with the entries of every map, and the items of every set, in another order.
key::value reordered(const key::value& v) {
  if (const auto* items = v.if_is<key::list>()) {
    key::list result;
    for (const auto& each : items->items) result.items.push_back(reordered(each));
    return result;
  }
  if (const auto* items = v.if_is<key::set>()) {
    key::set result;
    for (const auto& each : items->items)
      result.items.insert(
          result.items.begin() + *rc::gen::inRange<std::ptrdiff_t>(0, std::ssize(result.items) + 1),
          reordered(each));
    return result;
  }
  if (const auto* entries = v.if_is<key::map>()) {
    key::map result;
    for (const auto& [k, item] : entries->items) {
      result.items.insert(
          result.items.begin() + *rc::gen::inRange<std::ptrdiff_t>(0, std::ssize(result.items) + 1),
          {k, reordered(item)});
    }
    return result;
  }
  return v;
}

bool holds_date_or_clock(const key::value& v) {
  if (v.if_is<key::date>() != nullptr || v.if_is<key::time_of_day>() != nullptr) return true;
  if (const auto* items = v.if_is<key::list>())
    return std::ranges::any_of(items->items, holds_date_or_clock);
  if (const auto* entries = v.if_is<key::map>())
    return std::ranges::any_of(entries->items,
                               [](const auto& e) { return holds_date_or_clock(e.second); });
  return false;
}

rc::Gen<key::value> any_argument() {
  return rc::gen::suchThat(any_interop_value(2),
                           [](const key::value& v) { return !holds_date_or_clock(v); });
}

// Mutant: maps are written in the order in which they come, or sorted only at the top.
RC_GTEST_PROP(Keys, DoNotDependOnTheOrderOfMaps, ()) {
  const std::vector<key::value> args{*any_argument()};
  const std::vector<key::value> shuffled{reordered(args[0])};
  const key::interop_keys interop("users", "get_user");
  RC_ASSERT(interop.of(args) == interop.of(shuffled));
  const key::cachekit_keys automatic({.module = "app", .qualname = "f"});
  RC_ASSERT(automatic.of(args) == automatic.of(shuffled));
}

// Mutant: sets are written in the order in which they come, or sorted by value instead of by bytes.
RC_GTEST_PROP(Keys, DoNotDependOnTheOrderOrDuplicatesOfSetsInInterop, ()) {
  key::set items{*rc::gen::resize(6, rc::gen::container<std::vector<key::value>>(any_argument()))};
  const key::interop_keys interop("users", "get_user");
  const auto expected = interop.of(std::vector<key::value>{items});
  RC_ASSERT(interop.of(std::vector<key::value>{reordered(items)}) == expected);
  if (!items.items.empty()) items.items.push_back(items.items.front());
  RC_ASSERT(interop.of(std::vector<key::value>{items}) == expected);
}

// Mutant: auto mode collapses integral floats, as interop does.
RC_GTEST_PROP(AutoMode, TellsTypesApart, ()) {
  const auto number = *rc::gen::inRange<std::int64_t>(-1'000'000, 1'000'000);
  const auto digits = std::to_string(number);
  key::byte_string bytes;
  for (const char c : digits) bytes.push_back(static_cast<std::byte>(c));
  const key::cachekit_keys keys({.module = "app", .qualname = "f"});
  const std::set<std::string> all{keys(number),
                                  keys(static_cast<double>(number)),
                                  keys(digits),
                                  keys(bytes),
                                  keys(number != 0),
                                  keys(std::vector{number}),
                                  keys(std::vector<std::vector<std::int64_t>>{{number}}),
                                  keys(std::map<std::string, std::int64_t>{{"a", number}}),
                                  keys(key::kw("a", number)),
                                  keys(number, nullptr),
                                  keys(nullptr),
                                  keys()};
  RC_ASSERT(all.size() == 12u);
}

// Mutant: the integral range of floats ends at 2^63.
RC_GTEST_PROP(Interop, TakesIntegralFloatsForIntegers, ()) {
  const auto number = *rc::gen::oneOf(
      rc::gen::inRange<std::int64_t>(-(std::int64_t{1} << 53), std::int64_t{1} << 53),
      rc::gen::just(std::int64_t{0}));
  RC_ASSERT(key::interop("t", "op", static_cast<double>(number)) ==
            key::interop("t", "op", number));
  RC_ASSERT(key::interop("t", "op", static_cast<double>(number) / 2.0) !=
                key::interop("t", "op", number) ||
            number == 0);
  const auto beyond = (std::uint64_t{1} << 63) + (*rc::gen::inRange<std::uint64_t>(0, 1000) << 11);
  RC_ASSERT(key::interop("t", "op", static_cast<double>(beyond)) ==
            key::interop("t", "op", beyond));
}

/// Typed JSON with a fault at a known place.
struct faulty_json {
  std::string text;
  std::string path;
};

faulty_json any_faulty_json() {
  const auto fault = *rc::gen::elementOf(
      std::vector<std::string>{"7",
                               "null",
                               "\"text\"",
                               "[]",
                               "{}",
                               R"({"t":7})",
                               R"({"t":"nothing_like_it"})",
                               R"({"t":"int"})",
                               R"({"t":"int","v":"1.5"})",
                               R"({"t":"int","v":""})",
                               R"({"t":"f64","v":"1.5"})",
                               R"({"t":"float","bits":"0x123"})",
                               R"({"t":"bool","v":"true"})",
                               R"({"t":"str","v":7})",
                               R"({"t":"str","wtf8":"ff"})",
                               R"({"t":"str","wtf8":"f"})",
                               R"({"t":"char","v":"ab"})",
                               R"({"t":"char","v":""})",
                               R"({"t":"bytes","v":"0"})",
                               R"({"t":"bytes","v":"zz"})",
                               R"({"t":"list"})",
                               R"({"t":"list","v":{}})",

                               R"({"t":"uuid","v":"550e8400"})",
                               R"({"t":"path","flavour":"dos","v":"a"})",
                               R"({"t":"path","v":7})",
                               R"({"t":"datetime","c":[2024,1,1,0,0,0,0]})",
                               R"({"t":"datetime","c":[2024,13,1,0,0,0,0],"off_us":0})",
                               R"({"t":"datetime","c":[2024,1,1,0,0,0,0],"off_us":null})",
                               R"({"t":"datetime","c":[2024],"off_us":0})",
                               R"({"t":"timedelta","us":1})"});
  faulty_json result{fault, ""};
  for (int levels = *rc::gen::inRange(0, 6); levels > 0; --levels) {
    const auto before = *rc::gen::inRange<std::size_t>(0, 3);
    if (*rc::gen::arbitrary<bool>()) {
      std::string items;
      for (std::size_t i = 0; i < before; ++i) items += R"({"t":"none"},)";
      result.text = R"({"t":"list","v":[)" + items + result.text + R"(,{"t":"bool","v":true}]})";
      result.path = "[" + std::to_string(before) + "]" + result.path;
    } else {
      std::string entries;
      for (std::size_t i = 0; i < before; ++i)
        entries += R"([{"t":"str","v":"k)" + std::to_string(i) + R"("},{"t":"int","v":"1"}],)";
      result.text =
          R"({"t":"map","v":[)" + entries + R"([{"t":"str","v":"key"},)" + result.text + "]]}";
      result.path = ".items[\"key\"]" + result.path;
    }
  }
  result.path = "value" + result.path;
  return result;
}

// Mutant: the reader forgets to leave a list that it has read, or counts its items from 1.
RC_GTEST_PROP(TypedJson, ErrorsNameThePathToTheFault, ()) {
  const auto faulty = any_faulty_json();
  for (const auto scheme : {key::scheme::failover, key::scheme::cachekit_auto, key::scheme::interop,
                            key::scheme::interop_value}) {
    key::typed_json_reader reader(scheme);
    std::string path = "accepted: " + faulty.text;
    try {
      static_cast<void>(reader.read(faulty.text));
    } catch (const holdfast::error& e) {
      path = e.path();
      RC_ASSERT(!e.message().empty());
    }
    RC_ASSERT(path == faulty.path);
  }
}

}  // namespace
