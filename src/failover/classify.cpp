#include <holdfast/failover/call_context.hpp>
#include <holdfast/failover/classify.hpp>

#include <cstddef>
#include <new>
#include <typeinfo>
#include <utility>

namespace HOLDFAST_NAMESPACE {

failure_rules& failure_rules::add(on_failure action, predicate matches) {
  rules_.push_back({.action = action, .matches = std::move(matches)});
  return *this;
}

bool failure_rules::never_recovered(const std::exception_ptr& thrown) noexcept {
  // Testing the type rethrows the exception, which costs about a microsecond, and an outage throws
  // the same type again and again. The result depends only on the type, so each thread caches it
  // for the last type.
  struct cached_result {
    const std::type_info* type = nullptr;
    std::size_t hash = 0;  // another library may be loaded at the same address later
    bool never = false;
  };
  thread_local cached_result last;
  const std::type_info* type = thrown ? thrown.__cxa_exception_type() : nullptr;
  if (type == nullptr) return false;
  const auto hash = type->hash_code();
  if (last.type != type || last.hash != hash)
    last = {
        .type = type, .hash = hash, .never = is<std::bad_alloc>(thrown) || is<cancelled>(thrown)};
  return last.never;
}

on_failure failure_rules::operator()(const std::exception_ptr& thrown) const noexcept {
  if (never_recovered(thrown)) return on_failure::pass;
  for (const rule& candidate : rules_) {
    try {
      if (candidate.matches && candidate.matches(thrown)) return candidate.action;
    } catch (...) {  // NOLINT(bugprone-empty-catch)
      // A predicate that throws does not match.
    }
  }
  return otherwise_;
}

}  // namespace HOLDFAST_NAMESPACE
