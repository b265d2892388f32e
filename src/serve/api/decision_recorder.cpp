#include "serve/api/decision_recorder.hpp"

#include "serve/live/served_ages.hpp"

#include <utility>

namespace HOLDFAST_NAMESPACE::detail::serve {

namespace {

/// A call that throws has no provenance, so the reference of its decision is left here.
std::string& last_decision() {
  thread_local std::string ref;
  return ref;
}

/// Types of the server itself stand for a failure that a program or the gateway has reported: their
/// names say nothing to a reader.
decision without_own_types(decision reported) {
  if (reported.exception_type.starts_with("holdfast::detail::")) reported.exception_type.clear();
  return reported;
}

}  // namespace

engine_insight server_insight(std::shared_ptr<decision_log> log,
                              std::shared_ptr<served_ages> ages) {
  return {.on_decision =
              [log = std::move(log), ages = std::move(ages)](const decision& original) {
                const auto reported = without_own_types(original);
                log->record(reported);
                if (ages) ages->record(reported);
                last_decision() = reported.ref;
              },
          .coverage = true};
}

std::string take_last_decision() { return std::exchange(last_decision(), {}); }

}  // namespace HOLDFAST_NAMESPACE::detail::serve
