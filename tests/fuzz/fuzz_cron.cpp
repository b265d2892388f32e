// Any text, read as a cron expression: refused as one that breaks a rule, or a schedule whose
// moments only grow and match its own text.

#include <holdfast/error.hpp>

#include "base/cron.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const auto schedule = holdfast::detail::cron::parse(text);
    require(schedule.text() == text);
    auto at = std::chrono::sys_seconds(std::chrono::seconds(1'767'225'600));  // 2026
    for (int i = 0; i < 5; ++i) {
      const auto next = schedule.next(at);
      require(next.has_value() && *next > at);
      // Nothing in between: from the second before it, the same moment is found.
      require(schedule.next(*next - std::chrono::seconds(1)) == next);
      at = *next;
    }
  } catch (const holdfast::error& refused) {
    require(refused.code() == holdfast::errc::invalid_argument && !refused.message().empty());
  }
  return 0;
}
