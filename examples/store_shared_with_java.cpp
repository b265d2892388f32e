// A table shared with services that use the Java library: their keys, their class names, their
// JSON. Without an argument it shows what a row looks like; with the URL of a PostgreSQL it writes
// one.

#include <holdfast/holdfast.hpp>
#include <holdfast/nlohmann.hpp>

#include <chrono>
#include <iostream>
#include <string>
#include <vector>

namespace app {

// region type
struct country {
  std::string code;
  std::string name;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(country, code, name)  // the properties as Jackson names them
// endregion

}  // namespace app

int main(int argc, char** argv) {
  using namespace std::chrono_literals;
  // region row
  holdfast::payload_registry types;
  types.add<app::country>("com.acme.Country");
  types.add_java_list<std::vector<app::country>>();  // java.util.ArrayList

  const holdfast::key::failover_keys country_by_code(
      {.name = "country-by-code", .domain = "country"}, {.style = holdfast::key::style::exact});
  const auto now = holdfast::system_clock()->now();
  const holdfast::entry france{.name = "country",
                               .key = country_by_code("FR"),
                               .as_of = now,
                               .expire_on = now + 24h,
                               .payload = holdfast::encode_payload(app::country{"FR", "France"}),
                               .payload_class = types.name_of<app::country>()};
  // endregion
  std::cout << france.key << '\n' << france.payload_class << '\n' << *france.payload << '\n';
  if (argc < 2) return 0;

  const std::string url = argv[1];
  // region open
  const auto store = holdfast::open(url).store({.prefix = "MYAPP_", .peer = holdfast::peer::java});
  store->put(france);
  // endregion
}
