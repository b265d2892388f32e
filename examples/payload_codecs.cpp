// Answers as bytes: JSON for a struct, a form of its own for another type, and the names under
// which both are stored.

#include <holdfast/holdfast.hpp>
#include <holdfast/nlohmann.hpp>

#include <charconv>
#include <chrono>
#include <iostream>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace app {

// region json
struct country {
  std::string code;
  std::string name;
  std::optional<double> area;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(country, code, name, area)
// endregion

// region own
struct money {
  long cents = 0;
};

std::string holdfast_encode(const money& m) { return std::to_string(m.cents) + " cents"; }

money holdfast_decode(std::string_view bytes, std::type_identity<money> /*unused*/) {
  money m;
  const auto end = std::from_chars(bytes.data(), bytes.data() + bytes.size(), m.cents);
  if (end.ec != std::errc() || !bytes.ends_with(" cents"))
    throw std::invalid_argument("not an amount of money");
  return m;
}
// endregion

}  // namespace app

int main() {
  using namespace std::chrono_literals;
  std::cout << "# codecs\n";
  // region codecs
  const app::country france{"FR", "France", 551695};
  std::cout << holdfast::encode_payload(france) << '\n';
  std::cout << holdfast::encode_payload(
                   std::vector<std::optional<app::country>>{france, std::nullopt})
            << '\n';
  std::cout << holdfast::encode_payload(app::money{250}) << '\n';
  std::cout << holdfast::decode_payload<app::country>(
                   R"({"code":"DE","name":"Germany","area":null})")
                   .name
            << '\n';
  // endregion

  std::cout << "# refused\n";
  // region refused
  const auto try_it = [](auto action) {
    try {
      action();
    } catch (const holdfast::error& refused) {
      std::cout << to_string(refused.code()) << ": " << refused.what() << '\n';
    }
  };
  try_it([] {
    (void)holdfast::encode_payload(
        app::country{"XX", "Nowhere", std::numeric_limits<double>::quiet_NaN()});
  });
  try_it([] { (void)holdfast::encode_payload(app::country{"XX", "\xff", {}}); });
  try_it([] { (void)holdfast::decode_payload<app::country>(R"({"code":7})"); });
  try_it([] { (void)holdfast::decode_payload<app::country>("not JSON"); });
  try_it([] { (void)holdfast::decode_payload<app::money>("7 euros"); });
  // endregion

  std::cout << "# registry\n";
  // region registry
  holdfast::payload_registry types;
  types.add<app::country>("com.acme.Country", {"com.acme.old.Country"});  // written, and read too
  types.add<app::money>("com.acme.Money");
  types.allow("com.partner");  // a class, or everything in a package

  std::cout << types.name_of<app::country>() << ", " << types.name_of<std::vector<app::country>>()
            << '\n';
  const auto allowed = types.allowlist_of<app::country>();
  for (const char* name : {"com.acme.old.Country", "com.partner.sub.Country",
                           "com.partnership.Country", "com.acme.Money"})
    std::cout << name << (allowed.allows(name) ? " is decoded\n" : " is refused\n");
  // endregion

  std::cout << "# store\n";
  // region store
  const auto store = holdfast::open("memory:").store();
  const auto now = holdfast::system_clock()->now();
  store->put({.name = "country",
              .key = "FR",
              .as_of = now,
              .expire_on = now + 24h,
              .payload = holdfast::encode_payload(france),
              .payload_class = types.name_of<app::country>()});

  const auto found = store->find("country", "FR");
  if (found && found->payload) {
    allowed.check(found->payload_class);  // first, and throws errc::permission
    std::cout << holdfast::decode_payload<app::country>(*found->payload).name << '\n';
  }
  // endregion
}
