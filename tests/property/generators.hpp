#pragma once

/// \file
/// Random texts and values for properties, crowded around what escapes and encoders treat
/// specially.

#include <holdfast/key/failover.hpp>
#include <holdfast/key/value.hpp>

#include <rapidcheck.h>

#include <chrono>
#include <cmath>
#include <cstdint>
#include <map>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace HOLDFAST_NAMESPACE::key {

/// How rapidcheck shows a counterexample: as the failover scheme prints it, which needs no encoder
/// of its own.
inline void showValue(const value& v, std::ostream& out) {
  const failover_keys keys({.name = "shown"}, {.style = style::escaped});
  try {
    out << v.type_name() << " " << keys.raw_of(std::vector<value>{v});
  } catch (const error& e) {
    out << v.type_name() << " (" << e.what() << ")";
  }
}

}  // namespace HOLDFAST_NAMESPACE::key

namespace holdfast_test {

namespace key = holdfast::key;

/// Text of up to eight pieces out of a list; pieces may be more than one byte.
inline rc::Gen<std::string> text_of(std::vector<std::string> pieces) {
  return rc::gen::map(rc::gen::resize(8, rc::gen::container<std::vector<std::string>>(
                                             rc::gen::elementOf(std::move(pieces)))),
                      [](const std::vector<std::string>& parts) {
                        std::string joined;
                        for (const auto& part : parts) joined += part;
                        return joined;
                      });
}

/// Text out of everything that style `escaped` writes itself: the search for collisions lives on
/// it.
inline rc::Gen<std::string> adversarial_text() {
  return rc::gen::weightedOneOf<std::string>({
      {8, text_of({":", ",", "\\", "e", "0", "[", "]", "-", "=", "{", "}", " ", ", ", "a"})},
      {1, rc::gen::elementOf(std::vector<std::string>{"", "NO-ARG", "null", "\\0", "\\e", "\\-",
                                                      "\\[\\]", "Optional.empty"})},
  });
}

/// Well-formed UTF-8 of one to four bytes per character.
inline rc::Gen<std::string> any_text() {
  return text_of({"a",
                  "Z",
                  "0",
                  " ",
                  "\n",
                  "\\",
                  "\"",
                  ":",
                  ",",
                  "=",
                  "{",
                  "\x7f",
                  "é",
                  "ß",
                  "€",
                  "中",
                  "\xef\xbf\xbf",
                  "😀",
                  std::string(1, '\0'),
                  std::string(31, 'x'),
                  std::string(256, 'y')});
}

/// Text that both styles print alike. Inside a map more characters are special.
inline rc::Gen<std::string> tame_text(bool inside_map) {
  std::vector<std::string> pieces{"a", "B", "7",  " ",  ".",  "-",      "_",
                                  "/", "é", "😀", "\n", "\"", "NO-ARG", "null"};
  if (!inside_map) pieces.insert(pieces.end(), {"=", "{", "}", "[", "]"});
  return rc::gen::suchThat(text_of(std::move(pieces)), [](const std::string& text) {
    return !text.empty() && text != "NO-ARG";
  });
}

inline rc::Gen<double> finite_double() {
  return rc::gen::oneOf(
      rc::gen::suchThat(rc::gen::arbitrary<double>(), [](double d) { return std::isfinite(d); }),
      rc::gen::elementOf(std::vector<double>{
          0.0, -0.0, 0.5, 2.0, 1e7, 1e-3, 5e-324, 1.7976931348623157e308, 9007199254740993.0,
          9223372036854775808.0, 18446744073709551616.0, -9223372036854775808.0}));
}

/// Integers, with the bounds of every width of MessagePack.
inline rc::Gen<std::int64_t> any_int() {
  return rc::gen::oneOf(rc::gen::arbitrary<std::int64_t>(),
                        rc::gen::elementOf(std::vector<std::int64_t>{
                            0, 1, -1, -32, -33, 127, 128, -128, -129, 255, 256, 65535, 65536,
                            -32768, -32769, 4294967295, 4294967296, INT64_MIN, INT64_MAX}));
}

inline rc::Gen<key::uuid> any_uuid() {
  return rc::gen::map(
      rc::gen::container<std::array<std::uint8_t, 16>>(rc::gen::arbitrary<std::uint8_t>()),
      [](const auto& bytes) { return key::uuid{bytes}; });
}

/// Moments of the years 1 to 9999, to the microsecond.
inline rc::Gen<std::chrono::sys_time<std::chrono::microseconds>> any_moment() {
  constexpr std::int64_t first = -62135596800, last = 253402300799;
  return rc::gen::map(
      rc::gen::pair(rc::gen::inRange(first, last),
                    rc::gen::elementOf(std::vector<int>{0, 1, 1000, 450000, 123456, 999999})),
      [](const std::pair<std::int64_t, int>& parts) {
        return std::chrono::sys_time<std::chrono::microseconds>(
            std::chrono::seconds(parts.first) + std::chrono::microseconds(parts.second));
      });
}

inline rc::Gen<key::byte_string> any_bytes() {
  return rc::gen::map(rc::gen::arbitrary<std::vector<std::uint8_t>>(),
                      [](const std::vector<std::uint8_t>& bytes) {
                        key::byte_string result;
                        for (const auto each : bytes)
                          result.push_back(static_cast<std::byte>(each));
                        return result;
                      });
}

/// Adversarial values of a C++ type: what a signature is made of.
template <class T>
struct adversarial;

template <>
struct adversarial<std::string> {
  static rc::Gen<std::string> generator() { return adversarial_text(); }
};
template <>
struct adversarial<int> {
  static rc::Gen<int> generator() { return rc::gen::inRange(-12, 12); }
};
template <class T>
struct adversarial<std::optional<T>> {
  static rc::Gen<std::optional<T>> generator() {
    return rc::gen::map(rc::gen::pair(rc::gen::inRange(0, 4), adversarial<T>::generator()),
                        [](const std::pair<int, T>& parts) {
                          return parts.first == 0 ? std::nullopt : std::optional<T>(parts.second);
                        });
  }
};
template <class T>
struct adversarial<std::vector<T>> {
  static rc::Gen<std::vector<T>> generator() {
    return rc::gen::mapcat(rc::gen::inRange<std::size_t>(0, 4), [](std::size_t count) {
      return rc::gen::container<std::vector<T>>(count, adversarial<T>::generator());
    });
  }
};
template <class K, class V>
struct adversarial<std::map<K, V>> {
  static rc::Gen<std::map<K, V>> generator() {
    return rc::gen::map(adversarial<std::vector<std::pair<K, V>>>::generator(),
                        [](const std::vector<std::pair<K, V>>& pairs) {
                          return std::map<K, V>(pairs.begin(), pairs.end());
                        });
  }
};
template <class A, class B>
struct adversarial<std::pair<A, B>> {
  static rc::Gen<std::pair<A, B>> generator() {
    return rc::gen::pair(adversarial<A>::generator(), adversarial<B>::generator());
  }
};
template <class... A>
struct adversarial<std::tuple<A...>> {
  static rc::Gen<std::tuple<A...>> generator() {
    return rc::gen::tuple(adversarial<A>::generator()...);
  }
};

}  // namespace holdfast_test
