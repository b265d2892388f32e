#include <holdfast/failover/answer.hpp>
#include <holdfast/failover/call_context.hpp>

#include "failover/type_name.hpp"

#include <array>

namespace HOLDFAST_NAMESPACE {

std::string_view to_string(cause_code code) noexcept {
  constexpr std::array<std::string_view, 8> names{"none",  "failed",     "late",      "refused",
                                                  "fresh", "refreshing", "abandoned", "drill"};
  const auto index = static_cast<std::size_t>(code);
  return index < names.size() ? names[index] : "unknown";
}

std::string cause::type() const { return detail::failover::exception_type(error_); }

std::string cause::message() const {
  if (!error_) return {};
  try {
    std::rethrow_exception(error_);
  } catch (const std::exception& thrown) {
    return thrown.what();
  } catch (...) {
    return {};
  }
}

cancelled::cancelled() noexcept = default;
cancelled::~cancelled() = default;
const char* cancelled::what() const noexcept { return "the call was cancelled"; }

}  // namespace HOLDFAST_NAMESPACE
