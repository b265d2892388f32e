// Style `escaped` of the failover scheme: different argument values of one signature never make the
// same raw text, and ordinary arguments make the text that style `exact` makes.

#include <holdfast/key/failover.hpp>
#include <holdfast/key/value.hpp>

#include "property/generators.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

namespace {

using namespace holdfast_test;  // NOLINT(google-build-using-namespace): the generators are this file's vocabulary
using text = std::string;
template <class T>
using list = std::vector<T>;
template <class T>
using maybe = std::optional<T>;

// A description that is injective by construction (everything carries its length), to tell values
// apart without the code under test.
std::string describe(const text& v) { return "t" + std::to_string(v.size()) + ":" + v; }
std::string describe(int v) { return "i" + std::to_string(v) + ";"; }
template <class T>
std::string describe(const maybe<T>& v);
template <class T>
std::string describe(const list<T>& v);
template <class K, class V>
std::string describe(const std::map<K, V>& v);

template <class T>
std::string describe(const maybe<T>& v) {
  return v ? "o" + describe(*v) : "n";
}
template <class T>
std::string describe(const list<T>& v) {
  std::string all = "l" + std::to_string(v.size()) + ":";
  for (const auto& each : v) all += describe(each);
  return all;
}
template <class K, class V>
std::string describe(const std::map<K, V>& v) {
  std::string all = "m" + std::to_string(v.size()) + ":";
  for (const auto& [k, item] : v) all += describe(k) + describe(item);
  return all;
}

/// Remembers every raw text it has seen, with the arguments that made it.
class collision_search {
 public:
  explicit collision_search(key::style style = key::style::escaped)
      : keys_({.name = "point"}, {.style = style}) {}

  template <class... A>
  void add(const A&... args) {
    std::string made_from = (describe(args) + ... + "");
    const auto [at, fresh] = seen_.try_emplace(keys_.raw(args...), made_from);
    if (!fresh && at->second != made_from && collision_.empty()) {
      collision_ = "'" + at->first + "' is the text of " + at->second + " and of " + made_from;
    }
    ++added_;
  }
  template <class... A>
  void add_tuple(const std::tuple<A...>& args) {
    std::apply([this](const auto&... each) { this->add(each...); }, args);
  }

  [[nodiscard]] const std::string& collision() const { return collision_; }
  [[nodiscard]] std::size_t added() const { return added_; }

 private:
  key::failover_keys keys_;
  std::unordered_map<std::string, std::string> seen_;
  std::string collision_;
  std::size_t added_ = 0;
};

/// All texts of up to so many pieces, the empty one included, and `NO-ARG`.
list<text> texts(const list<text>& pieces, std::size_t most) {
  list<text> all{""};
  for (std::size_t begin = 0, count = 1; count <= most; ++count) {
    const auto end = all.size();
    for (; begin < end; ++begin) {
      for (const auto& piece : pieces) all.push_back(all[begin] + piece);
    }
  }
  all.emplace_back("NO-ARG");
  return all;
}

/// The same, where each character is a piece.
list<text> texts(std::string_view alphabet, std::size_t longest) {
  list<text> pieces;
  for (const char c : alphabet) pieces.emplace_back(1, c);
  return texts(pieces, longest);
}

/// All lists of the values up to a length, the empty one included.
template <class T>
list<list<T>> lists(const list<T>& values, std::size_t longest) {
  list<list<T>> all{{}};
  for (std::size_t begin = 0, length = 1; length <= longest; ++length) {
    const auto end = all.size();
    for (; begin < end; ++begin) {
      for (const auto& each : values) {
        all.push_back(all[begin]);
        all.back().push_back(each);
      }
    }
  }
  return all;
}

/// The values, and nothing.
template <class T>
list<maybe<T>> maybes(const list<T>& values) {
  list<maybe<T>> all(values.begin(), values.end());
  all.push_back(std::nullopt);
  return all;
}

/// All maps of up to two entries.
template <class V>
list<std::map<text, V>> maps(const list<text>& keys, const list<V>& values) {
  list<std::map<text, V>> all{{}};
  for (const auto& key_1 : keys) {
    for (const auto& value_1 : values) {
      all.push_back({{key_1, value_1}});
      for (const auto& key_2 : keys) {
        for (const auto& value_2 : values) {
          if (key_1 < key_2) all.push_back({{key_1, value_1}, {key_2, value_2}});
        }
      }
    }
  }
  return all;
}

// Each search was seen red on a mutant of the escaping; the mutant is named above it.

// Mutant: `:` is not escaped in text. Then ("a:", "b") and ("a", ":b") meet.
TEST(EscapedStyleIsInjective, OverTwoTexts) {
  collision_search search;
  for (const auto& alphabet : {text(":,\\e0[]-={} "), text(":\\")}) {
    const auto all = texts(alphabet, alphabet.size() > 4 ? 2 : 6);
    for (const auto& first : all) {
      for (const auto& second : all) search.add(first, second);
    }
  }
  EXPECT_EQ(search.collision(), "");
  EXPECT_GT(search.added(), 40'000u);
}

// Mutant: `NO-ARG` is not escaped. Then the call without arguments meets the call with that text.
TEST(EscapedStyleIsInjective, OverOneTextAndNone) {
  collision_search search;
  search.add();
  for (const auto& each : texts(":,\\e0[]-={} ", 3)) search.add(each);
  for (const auto& each : texts("NO-ARG\\", 4)) search.add(each);
  EXPECT_EQ(search.collision(), "");
  EXPECT_GT(search.added(), 4'000u);
}

// Mutant: `,` is not escaped in text. Then ["a,b"] and ["a","b"] meet.
TEST(EscapedStyleIsInjective, OverAListOfTexts) {
  collision_search search;
  for (const auto& each : lists(texts(",\\e-0", 2), 3)) search.add(each);
  for (const auto& each : lists(texts(":,\\[]", 1), 5)) search.add(each);
  EXPECT_EQ(search.collision(), "");
  EXPECT_GT(search.added(), 40'000u);
}

// Mutant: null prints as `0`. Then null meets the text "0".
TEST(EscapedStyleIsInjective, OverAnOptionalTextAndAListOfThem) {
  collision_search search;
  const auto elements = maybes(texts(":,\\e0-", 1));
  for (const auto& first : maybes(texts(":,\\e0-[]", 2))) {
    for (const auto& second : lists(elements, 3)) search.add(first, second);
  }
  EXPECT_EQ(search.collision(), "");
  EXPECT_GT(search.added(), 40'000u);
}

// Mutant: an empty list, or one of null only, has no prefix. Then null and [null] meet.
TEST(EscapedStyleIsInjective, OverAnOptionalListOfOptionalTexts) {
  collision_search search;
  for (const auto& each : maybes(lists(maybes(texts(",\\0-e", 2)), 3))) search.add(each);
  EXPECT_EQ(search.collision(), "");
  EXPECT_GT(search.added(), 30'000u);
}

// Mutant: an empty text prints as nothing. Then [[]] and [[""]] meet.
TEST(EscapedStyleIsInjective, OverAListOfListsOfTexts) {
  collision_search search;
  for (const auto& each : lists(lists(texts(",\\[]e", 1), 2), 2)) search.add(each);
  for (const auto& each : lists(lists(list<text>{"", "\\", "[", "]", "a"}, 2), 3)) search.add(each);
  EXPECT_EQ(search.collision(), "");
  EXPECT_GT(search.added(), 30'000u);
}

// Mutant: nested lists begin without their bracket. Then [[null], ...] and [null, ...] meet.
TEST(EscapedStyleIsInjective, OverAListOfOptionalListsOfOptionalTexts) {
  collision_search search;
  const auto inner = maybes(lists(maybes(list<text>{"", "\\", "0", "[", "]"}), 2));
  for (const auto& each : lists(inner, 3)) search.add(each);
  EXPECT_EQ(search.collision(), "");
  EXPECT_GT(search.added(), 80'000u);
}

// Mutant: `=` is not escaped inside a map. Then {"a=b": "c"} and {"a": "b=c"} meet.
// Mutant: `,` is not escaped inside a map. Then {"a": "b", "c, d": "e"} and {"a": "b, c", "d": "e"}
// meet.
TEST(EscapedStyleIsInjective, OverAMapOfTexts) {
  collision_search search;
  for (const auto& pieces : {list<text>{"=", "a"}, list<text>{", ", "a"}, list<text>{"}", "{"}}) {
    const auto parts = texts(pieces, 3);
    for (const auto& each : maps(parts, parts)) search.add(each);
  }
  const auto parts = texts(",= {}[]\\", 1);
  for (const auto& each : maps(parts, parts)) search.add(each);
  EXPECT_EQ(search.collision(), "");
  EXPECT_GT(search.added(), 80'000u);
}

// Mutant: inside a map, null prints as `null`. Then null meets the text "null".
TEST(EscapedStyleIsInjective, OverAMapOfListsOfOptionalTexts) {
  collision_search search;
  const auto items = lists(maybes(list<text>{"", "null", ", ", "]", "[", "\\", "0"}), 2);
  for (const auto& each : maps(list<text>{"", "a", "=[", "]", ", "}, items)) search.add(each);
  EXPECT_EQ(search.collision(), "");
  EXPECT_GT(search.added(), 40'000u);
}

// Mutant: `,` `{` `}` are not escaped inside a map. Then a text can hide where one map ends and the
// next begins.
TEST(EscapedStyleIsInjective, OverAListOfMaps) {
  collision_search search;
  const auto parts = texts(list<text>{"},{", "a"}, 3);
  list<std::map<text, text>> inner{{}};
  for (const auto& k : parts) {
    for (const auto& v : parts) inner.push_back({{k, v}});
  }
  for (const auto& each : lists(inner, 2)) search.add(each);
  for (const auto& each : lists(maps(list<text>{"", "a", "="}, list<text>{"", "}", "{", "\\"}), 2))
    search.add(each);
  EXPECT_EQ(search.collision(), "");
  EXPECT_GT(search.added(), 60'000u);
}

// Mutant: `:` is not escaped in text. Then text can hide where the list begins.
TEST(EscapedStyleIsInjective, OverATextAListOfNumbersAndAText) {
  collision_search search;
  const auto outer = texts(":01", 3);
  for (const auto& first : outer) {
    for (const auto& second : lists(list<int>{0, 1}, 3)) {
      for (const auto& third : outer) search.add(first, second, third);
    }
  }
  for (const auto& first : texts(":,\\-", 1)) {
    for (const auto& second : lists(list<int>{0, 1, -1, 10}, 2)) {
      for (const auto& third : texts(":,\\-01", 2)) search.add(first, second, third);
    }
  }
  EXPECT_EQ(search.collision(), "");
  EXPECT_GT(search.added(), 20'000u);
}

// The search itself: style `exact` collides, as the Java library does, and the search says so.
TEST(EscapedStyleIsInjective, AndTheSearchFindsTheCollisionsOfTheOtherStyle) {
  collision_search search(key::style::exact);
  const auto all = texts(":a", 2);
  for (const auto& first : all) {
    for (const auto& second : all) search.add(first, second);
  }
  EXPECT_NE(search.collision(), "");
}

/// Longer values than can be enumerated, many at a time, all of one signature.
template <class... Signature>
void search_randomly() {
  const auto pool = *rc::gen::container<std::vector<std::tuple<Signature...>>>(
      60, adversarial<std::tuple<Signature...>>::generator());
  collision_search search;
  for (const auto& args : pool) search.add_tuple(args);
  RC_ASSERT(search.collision() == "");
}

RC_GTEST_PROP(EscapedStyleIsInjectiveAtRandom, OverTexts, ()) {
  search_randomly<text, text, text>();
}
RC_GTEST_PROP(EscapedStyleIsInjectiveAtRandom, OverOptionalsAndLists, ()) {
  search_randomly<maybe<text>, list<maybe<text>>, list<text>>();
}
RC_GTEST_PROP(EscapedStyleIsInjectiveAtRandom, OverNestedLists, ()) {
  search_randomly<list<maybe<list<maybe<list<text>>>>>>();
}
RC_GTEST_PROP(EscapedStyleIsInjectiveAtRandom, OverMaps, ()) {
  search_randomly<std::map<text, text>, text, std::map<text, list<maybe<text>>>>();
}
RC_GTEST_PROP(EscapedStyleIsInjectiveAtRandom, OverNumbersAndTexts, ()) {
  search_randomly<text, list<int>, text, maybe<int>>();
}

rc::Gen<key::value> tame_scalar(bool inside_map) {
  const auto as_value = [](const auto& v) { return key::value(v); };
  return rc::gen::oneOf(
      rc::gen::map(tame_text(inside_map), as_value), rc::gen::map(any_int(), as_value),
      rc::gen::map(finite_double(), as_value), rc::gen::map(rc::gen::arbitrary<bool>(), as_value),
      rc::gen::map(rc::gen::arbitrary<float>(), as_value), rc::gen::map(any_uuid(), as_value),
      rc::gen::map(any_moment(), [](const auto& moment) { return key::to_value(moment); }),
      rc::gen::elementOf(std::vector<key::value>{
          key::decimal{"1.10"}, key::decimal{"1E+3"}, key::character{U'x'}, key::character{U'é'},
          key::big_integer{"18446744073709551616"}, key::path{"/a/b", key::path::flavour::posix},
          key::object{"a.B", "B(7)"}}));
}

rc::Gen<key::value> tame_map() {
  const auto entries =
      rc::gen::container<std::map<std::string, key::value>>(tame_text(true), tame_scalar(true));
  return rc::gen::map(rc::gen::resize(4, entries),
                      [](const std::map<std::string, key::value>& sorted) {
                        key::map result;
                        for (const auto& [k, v] : sorted) result.items.emplace_back(k, v);
                        return key::value(std::move(result));
                      });
}

rc::Gen<key::value> tame_argument() {
  const auto flat_list = rc::gen::map(
      rc::gen::nonEmpty(rc::gen::container<std::vector<key::value>>(
          rc::gen::oneOf(tame_scalar(false), tame_map()))),
      [](std::vector<key::value> items) { return key::value(key::list{std::move(items)}); });
  const auto bytes = rc::gen::map(rc::gen::nonEmpty(any_bytes()),
                                  [](const key::byte_string& v) { return key::value(v); });
  return rc::gen::oneOf(tame_scalar(false), tame_map(), flat_list, bytes);
}

// Mutant: style `escaped` also escapes `/` (or any character that ordinary text has).
RC_GTEST_PROP(EscapedStyle, EqualsExactForOrdinaryArguments, ()) {
  const auto args =
      *rc::gen::resize(6, rc::gen::container<std::vector<key::value>>(tame_argument()));
  const key::failover_keys escaped({.name = "point"}, {.style = key::style::escaped});
  const key::failover_keys exact({.name = "point"}, {.style = key::style::exact});
  RC_ASSERT(escaped.raw_of(args) == exact.raw_of(args));
  RC_ASSERT(escaped.of(args) == exact.of(args));
}

}  // namespace
