// Any bytes, read as the JSON of a payload and as an answer of a type, and any text as a payload
// class.

#include <holdfast/nlohmann.hpp>
#include <holdfast/payload.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace app {

struct country {
  std::string code;
  std::optional<double> area;
  std::vector<std::optional<std::string>> languages;
  bool operator==(const country&) const = default;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(country, code, area, languages)

}  // namespace app

namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

template <class T>
void read_as(std::string_view input) {
  std::optional<T> read;
  try {
    read = holdfast::decode_payload<T>(input);
  } catch (const holdfast::error& refused) {
    require(refused.code() == holdfast::errc::malformed && !refused.message().empty());
    return;
  }
  // What was read can be written, and is the same when it is read again.
  require(holdfast::decode_payload<T>(holdfast::encode_payload(*read)) == *read);
}

void use_as_class(std::string_view name) {
  holdfast::payload_allowlist list;
  try {
    list.allow(std::string(name));
  } catch (const holdfast::error&) {
    require(!list.allows(name));
    return;
  }
  require(list.allows(name) && list.allows(std::string(name) + ".X") &&
          !list.allows(std::string(name) + "X"));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data),
                               size);  // NOLINT(cppcoreguidelines-pro-type-reinterpret-cast)
  read_as<nlohmann::json>(input);
  read_as<app::country>(input);
  read_as<std::vector<std::int16_t>>(input);
  read_as<std::int32_t>(input);
  use_as_class(input);
  return 0;
}
