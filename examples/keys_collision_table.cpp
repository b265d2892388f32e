// Prints a table of docs/keys.md: calls of different types that share a text in the style escaped.
// Every row is computed.

#include <holdfast/key.hpp>

#include <array>
#include <cmath>
#include <filesystem>
#include <iostream>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <variant>
#include <vector>

namespace key = holdfast::key;
using texts = std::vector<std::string>;
using text_map = std::map<std::string, std::string>;
using either = std::variant<int, std::string>;

const key::failover_keys keys({.name = "x"});

// Two calls and the text they share. A row that is no longer true says so, and the test fails.
static void same(const std::string& a, const std::string& b, const std::string& raw_a,
                 const std::string& raw_b) {
  std::cout << "| `" << a << "` | `" << b << "` | `" << raw_a << "` |"
            << (raw_a == raw_b ? "" : " but " + raw_b) << '\n';
}
#define SAME(a, ...) same(#a, #__VA_ARGS__, keys.raw(a), keys.raw(__VA_ARGS__))

int main() {
  std::cout << "# collisions\n";
  SAME(1, "1");
  SAME(true, "true");
  SAME('x', "x");
  SAME(1.5, "1.5");
  SAME(0.1, 0.1f);
  SAME(1.5, key::decimal{"1.5"});
  SAME(1, key::big_integer{"1"});
  SAME("FR", texts{"FR"});
  SAME(nullptr, std::optional<int>{});
  SAME(5, std::optional{5});
  SAME(std::tuple(1, 2), std::vector{1, 2});
  SAME(std::tuple(1, 2), std::set{2, 1});
  SAME(std::tuple(1, -1), key::array(std::array{1, -1}));
  SAME(std::tuple(1, -1), std::array{std::byte{1}, std::byte{255}});
  SAME("a/b", std::filesystem::path("a/b"));
  SAME(key::uuid{}, "00000000-0000-0000-0000-000000000000");
  SAME("{a=1}", text_map{{"a", "1"}});
  SAME(std::tuple("{a=1", " b=2}"), text_map{{"a", "1"}, {"b", "2"}});
  SAME(key::instant{}, "1970-01-01T00", "00", "00Z");

  std::cout << "# within\n";
  SAME(either{1}, either{"1"});
  SAME(std::nan("1"), std::nan("2"));
  SAME(std::optional<std::optional<int>>{}, std::make_optional(std::optional<int>{}));
  SAME(key::instant{}, key::instant{.offset = std::chrono::hours{1}});
  SAME(key::path{"a"}, key::path{"a", key::path::flavour::windows});
}
