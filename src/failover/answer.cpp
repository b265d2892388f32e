#include <holdfast/failover/answer.hpp>
#include <holdfast/failover/call_context.hpp>
#include <holdfast/failover/status.hpp>

#include "failover/exception_type.hpp"

namespace HOLDFAST_NAMESPACE {

std::string_view to_string(cause_code code) noexcept {
  switch (code) {
    case cause_code::none:
      return "none";
    case cause_code::failed:
      return "failed";
    case cause_code::late:
      return "late";
    case cause_code::refused:
      return "refused";
    case cause_code::fresh:
      return "fresh";
    case cause_code::refreshing:
      return "refreshing";
    case cause_code::abandoned:
      return "abandoned";
  }
  return "unknown";
}

std::string cause::type() const { return exception_type(error_); }

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
