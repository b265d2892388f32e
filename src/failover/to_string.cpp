// The names of the enumerations of protected calls. A value that is not in its enumeration is
// "unknown".

#include <holdfast/failover/answer.hpp>
#include <holdfast/failover/classify.hpp>
#include <holdfast/failover/hooks.hpp>
#include <holdfast/failover/options.hpp>
#include <holdfast/failover/scatter.hpp>

#include <string_view>

namespace HOLDFAST_NAMESPACE {

std::string_view to_string(origin source) noexcept {
  switch (source) {
    case origin::live:
      return "live";
    case origin::stored:
      return "stored";
    case origin::substitute:
      return "substitute";
  }
  return "unknown";
}

std::string_view to_string(completeness complete) noexcept {
  switch (complete) {
    case completeness::yes:
      return "yes";
    case completeness::no:
      return "no";
    case completeness::unknown:
      return "unknown";
  }
  return "unknown";
}

std::string_view to_string(on_failure action) noexcept {
  switch (action) {
    case on_failure::recover:
      return "recover";
    case on_failure::pass:
      return "pass";
    case on_failure::invalidate:
      return "invalidate";
  }
  return "unknown";
}

std::string_view to_string(result_kind kind) noexcept {
  switch (kind) {
    case result_kind::store:
      return "store";
    case result_kind::absent:
      return "absent";
    case result_kind::ignore:
      return "ignore";
  }
  return "unknown";
}

std::string_view to_string(exception_policy policy) noexcept {
  switch (policy) {
    case exception_policy::rethrow:
      return "rethrow";
    case exception_policy::never_throw:
      return "never_throw";
    case exception_policy::custom:
      return "custom";
  }
  return "unknown";
}

std::string_view to_string(scope sharing) noexcept {
  switch (sharing) {
    case scope::by_arguments:
      return "by_arguments";
    case scope::shared:
      return "shared";
  }
  return "unknown";
}

std::string_view to_string(late_call policy) noexcept {
  switch (policy) {
    case late_call::keep:
      return "keep";
    case late_call::cancel:
      return "cancel";
  }
  return "unknown";
}

std::string_view to_string(partial::rule policy) noexcept {
  switch (policy) {
    case partial::rule::keep:
      return "keep";
    case partial::rule::drop:
      return "drop";
    case partial::rule::fail:
      return "fail";
    case partial::rule::at_least:
      return "at_least";
  }
  return "unknown";
}

std::string_view to_string(unlisted policy) noexcept {
  switch (policy) {
    case unlisted::refuse:
      return "refuse";
    case unlisted::serve:
      return "serve";
  }
  return "unknown";
}

}  // namespace HOLDFAST_NAMESPACE
