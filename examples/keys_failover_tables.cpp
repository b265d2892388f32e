// Prints tables of docs/keys.md: every row is computed, so every row is a test.

#include <holdfast/key.hpp>

#include <iostream>
#include <string>
#include <string_view>
#include <vector>

namespace key = holdfast::key;
using texts = std::vector<std::string>;

namespace {

const key::failover_keys keys({.name = "country-by-code"});

// | `arguments` | `raw` |, with the arguments as they stand in this file.
#define SEGMENT(...) std::cout << "| `" #__VA_ARGS__ "` | `" << keys.raw(__VA_ARGS__) << "` |\n"

void call(std::string_view written, const std::string& raw) {
  std::cout << "| `" << written << "` | `" << raw << "` |\n";
}

void name(std::string_view point, std::string_view domain) {
  const auto effective = key::effective_name({.name = point, .domain = domain});
  const key::failover_keys of({.name = point, .domain = domain});
  std::cout << "| `" << point << "` | " << (domain.empty() ? "" : "`" + std::string(domain) + "`")
            << " | `" << effective << "` | `" << of("1") << "` |\n";
}

}  // namespace

int main() {
  std::cout << "# segments\n";
  std::cout << "| none | `" << keys.raw() << "` |\n";
  SEGMENT("FR");
  SEGMENT(42);
  SEGMENT(1.5);
  SEGMENT(1e7);
  SEGMENT(0.1f);
  SEGMENT(true);
  SEGMENT(texts{"FR", "DE"});
  SEGMENT(std::vector{1, 2, 3});
  SEGMENT(std::array{true, false});

  std::cout << "# calls\n";
  call("findByCode(\"FR\")", keys.raw("FR"));
  call("findByIds(List.of(1, 2, 3))", keys.raw(std::vector{1, 2, 3}));
  call("findByCriteria(\"active\", \"EU\")", keys.raw("active", "EU"));
  call("findAll()", keys.raw());

  std::cout << "# names\n";
  name("tp-by-id", "");
  name("tp-list", "");
  name("tp-by-id", "tp");
  name("tp-list", "tp");
}
