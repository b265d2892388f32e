// Any text, read as a configuration: refused as one that breaks rules, or a plan that any point can
// be registered with.

#include <holdfast/error.hpp>

#include "failover/config/plan.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (text.find("file") != std::string_view::npos) return 0;  // of keys: not to be opened here
  const auto none = [](const std::string& name) {
    return name == "SET" ? std::optional<std::string>("7") : std::nullopt;
  };
  try {
    const auto plan = holdfast::detail::failover::config::make_plan("fuzz", text, {}, none);
    holdfast::point_options options;
    plan.points->apply("p", options);
    for (const auto& each : plan.points->unclaimed()) plan.points->apply(each, options);
    require(plan.points->unclaimed().empty());
  } catch (const holdfast::error& refused) {
    require(refused.code() == holdfast::errc::invalid_argument && !refused.message().empty());
  }
  return 0;
}
