// A custom generator replaces the rules of layer 1 completely: it gets the arguments and returns
// the raw text.

#include <holdfast/key.hpp>

#include <cctype>
#include <iostream>
#include <span>
#include <string>

namespace key = holdfast::key;

// region generator
// One row for FR, fr and Fr. A generator refuses what it does not understand: a guess could be
// another call's text.
std::string upper_case_code(const key::point_info&, std::span<const key::value> args) {
  const auto* code = args.size() == 1 ? args.front().if_is<std::string>() : nullptr;
  if (code == nullptr)
    throw holdfast::error(holdfast::errc::invalid_argument, "expected one country code",
                          {.path = "args"});
  std::string raw = *code;
  for (char& c : raw) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return raw;
}
// endregion

int main() {
  // region use
  key::generators known;  // has sorted_csv
  known.add("upper_case_code", upper_case_code);

  const key::failover_keys by_code({.name = "country-by-code"}, {.generator = "upper_case_code"},
                                   known);
  std::cout << by_code.raw("fr") << ' ' << (by_code("fr") == by_code("FR")) << '\n';

  const key::failover_keys by_ids({.name = "entities-by-ids"}, {.generator = "sorted_csv"}, known);
  std::cout << by_ids.raw("3, 2,1") << ' ' << (by_ids("3, 2,1") == by_ids("1,2,3")) << '\n';

  // A name that is not registered is an error here, before the first call.
  try {
    const key::failover_keys misspelt({.name = "country-by-code"}, {.generator = "uper_case_code"},
                                      known);
  } catch (const holdfast::error& refused) {
    std::cout << refused.what() << '\n';
  }
  // endregion
}
