#include <holdfast/failover/call_context.hpp>
#include <holdfast/failover/classify.hpp>

#include <cstddef>
#include <new>
#include <typeinfo>

namespace HOLDFAST_NAMESPACE {

failure_rules& failure_rules::add(on_failure what, predicate fits) {
  rules_.push_back({.what = what, .fits = std::move(fits)});
  return *this;
}

bool failure_rules::never_recovered(const std::exception_ptr& thrown) noexcept {
  // Throwing it again to see what it is costs a microsecond, twice; an outage throws the same type over and over. Whether a handler takes an
  // exception depends on its type alone, so the verdict on the last type is kept.
  struct verdict {
    const std::type_info* type = nullptr;
    std::size_t hash = 0;  // another library may have been loaded to the same address
    bool never = false;
  };
  thread_local verdict last;
  const std::type_info* type = thrown ? thrown.__cxa_exception_type() : nullptr;
  if (type == nullptr) return false;
  const auto hash = type->hash_code();
  if (last.type != type || last.hash != hash)
    last = {.type = type, .hash = hash, .never = is<std::bad_alloc>(thrown) || is<cancelled>(thrown)};
  return last.never;
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
