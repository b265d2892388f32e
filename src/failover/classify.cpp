#include <holdfast/failover/call_context.hpp>
#include <holdfast/failover/classify.hpp>

#include <new>

namespace HOLDFAST_NAMESPACE {

failure_rules& failure_rules::add(on_failure what, predicate fits) {
  rules_.push_back({.what = what, .fits = std::move(fits)});
  return *this;
}

bool failure_rules::never_recovered(const std::exception_ptr& thrown) noexcept {
  return is<std::bad_alloc>(thrown) || is<cancelled>(thrown);
}

on_failure failure_rules::operator()(const std::exception_ptr& thrown) const noexcept {
  if (never_recovered(thrown)) return on_failure::pass;
  for (const rule& each : rules_) {
    try {
      if (each.fits && each.fits(thrown)) return each.what;
    } catch (...) {  // NOLINT(bugprone-empty-catch)
      // It does not fit.
    }
  }
  return otherwise_;
}

}  // namespace HOLDFAST_NAMESPACE
