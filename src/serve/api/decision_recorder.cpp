#include "serve/api/decision_recorder.hpp"

#include <utility>

namespace HOLDFAST_NAMESPACE::detail::serve {

namespace {

/// A call that throws has no provenance, so the reference of its decision is left here.
std::string& last_decision() {
  thread_local std::string ref;
  return ref;
}

}  // namespace

engine_insight server_insight(std::shared_ptr<decision_log> log) {
  return {.on_decision =
              [log = std::move(log)](const decision& reported) {
                log->record(reported);
                last_decision() = reported.ref;
              },
          .coverage = true};
}

std::string take_last_decision() { return std::exchange(last_decision(), {}); }

}  // namespace HOLDFAST_NAMESPACE::detail::serve
