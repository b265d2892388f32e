// The names of the enumerations of schemas. A value that is not in its enumeration is "unknown".

#include <holdfast/schema.hpp>

#include <string_view>

namespace HOLDFAST_NAMESPACE {

std::string_view to_string(upgrade_mode mode) noexcept {
  switch (mode) {
    case upgrade_mode::run:
      return "run";
    case upgrade_mode::dry_run:
      return "dry_run";
  }
  return "unknown";
}

}  // namespace HOLDFAST_NAMESPACE
