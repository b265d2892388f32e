// A user's program with the opt-in JSON codec. It ends with 0 when an answer came back as it was,
// and a bad one was refused.

#include <holdfast/holdfast.hpp>
#include <holdfast/nlohmann.hpp>

#include <optional>
#include <string>
#include <vector>

namespace app {
struct country {
  std::string code;
  std::optional<int> area;
  bool operator==(const country&) const = default;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(country, code, area)
}  // namespace app

int main() {
  const std::vector<app::country> some{{"FR", 551695}, {"XX", {}}};
  const auto bytes = holdfast::encode_payload(some);
  if (holdfast::decode_payload<std::vector<app::country>>(bytes) != some) return 1;

  holdfast::payload_registry types;
  types.add<app::country>("app.country");
  try {
    types.allowlist_of<app::country>().check("app.other");
    return 2;
  } catch (const holdfast::error& refused) {
    return refused.code() == holdfast::errc::permission ? 0 : 3;
  }
}
