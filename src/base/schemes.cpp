#include "base/schemes.hpp"

#include <holdfast/error.hpp>

#include "base/trim.hpp"

#include <cstdlib>
#include <string>

namespace HOLDFAST_NAMESPACE::detail {

void check_scheme(std::string_view url) {
  const char* const variable = std::getenv("HOLDFAST_SCHEMES");  // NOLINT(concurrency-mt-unsafe)
  const auto scheme = url.substr(0, url.find(':'));
  if (variable == nullptr || scheme == "memory") return;
  std::string_view list = variable;
  if (trimmed(list).empty()) {
    throw error(errc::invalid_argument,
                "HOLDFAST_SCHEMES is set and empty, which allows no URL; list the schemes, as in "
                "HOLDFAST_SCHEMES=postgresql,redis, or unset it",
                {.path = "url"});
  }
  for (;;) {
    const auto comma = list.find(',');
    if (trimmed(list.substr(0, comma)) == scheme) return;
    if (comma == std::string_view::npos) break;
    list.remove_prefix(comma + 1);
  }
  // A text without a colon may be a misplaced password, so the message does not repeat it.
  const std::string name = url.find(':') == std::string_view::npos
                               ? "without a scheme"
                               : "'" + std::string(scheme) + ":'";
  throw error(errc::invalid_argument,
              "URLs " + name + " are not allowed here: HOLDFAST_SCHEMES is " + variable +
                  "; add the scheme to it, or use another URL",
              {.path = "url"});
}

}  // namespace HOLDFAST_NAMESPACE::detail
