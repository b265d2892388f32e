// Prints a table of docs/keys.md: what the style escaped escapes. Every row is computed, so every
// row is a test.

#include <holdfast/key.hpp>

#include <iostream>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace key = holdfast::key;
using texts = std::vector<std::string>;
using lists = std::vector<std::vector<int>>;
using maybes = std::vector<std::optional<int>>;
using text_map = std::map<std::string, std::string>;

namespace {

const key::failover_keys escaped({.name = "x"});
const key::failover_keys exact({.name = "x"}, {.style = key::style::exact});

std::string code(const std::string& text) { return text.empty() ? "nothing" : "`" + text + "`"; }

// The arguments as they stand in this file, and the text of each style.
#define STYLES(...)                                                                 \
  std::cout << "| `" #__VA_ARGS__ "` | " << code(escaped.raw(__VA_ARGS__)) << " | " \
            << code(exact.raw(__VA_ARGS__)) << " |\n"

}  // namespace

int main() {
  std::cout << "# escapes\n";
  STYLES("a:b", "c");
  STYLES("a", "b:c");
  STYLES("a,b");
  STYLES(texts{"a", "b"});
  STYLES("C:\\");
  STYLES("");
  STYLES(nullptr);
  STYLES(texts{});
  STYLES(texts{""});
  STYLES(maybes{std::nullopt});
  STYLES(maybes{1, std::nullopt});
  STYLES(lists{{1, 2}, {3}});
  STYLES(lists{{}});
  STYLES("NO-ARG");
  STYLES(text_map{{"a", "1=2"}});
  STYLES(text_map{{"a=1", "2"}});
  STYLES(text_map{{"a", ""}});
  STYLES(std::map<std::string, lists>{{"a", {{1, 2}, {}}}});
}
