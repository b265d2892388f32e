#pragma once

/// \file
/// Rules that decide which exceptions are answered from the store, which reach the caller, and
/// which invalidate the stored answer.

#include <holdfast/version.hpp>

#include <cstdint>
#include <exception>
#include <functional>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace HOLDFAST_NAMESPACE {

/// What to do when an upstream throws.
enum class on_failure : std::uint8_t {
  recover,    ///< serve the last good answer, if the store has one
  pass,       ///< rethrow to the caller; the stored answer stays
  invalidate  ///< rethrow to the caller and store a tombstone; for "not found" and "gone"
};
/// The name of the enumerator, for example `recover`. Does not change between versions.
[[nodiscard]] HOLDFAST_API std::string_view to_string(on_failure action) noexcept;

/// An ordered list of rules. The first rule that matches an exception decides.
///
///     holdfast::failure_rules{}.pass<auth_error>().invalidate<not_found>().otherwise(holdfast::on_failure::recover)
///
/// `std::bad_alloc`, `holdfast::cancelled` and the unwinding of a cancelled thread always pass; no
/// rule can change that.
/// Thread-safety: like a standard container. Predicates are called from several threads at once.
class HOLDFAST_API failure_rules {
 public:
  using predicate = std::function<bool(const std::exception_ptr&)>;

  /// These three match exceptions that `catch (const E&)` would catch.
  template <class E>
  failure_rules& recover() {
    return add(on_failure::recover, &is<E>);
  }
  template <class E>
  failure_rules& pass() {
    return add(on_failure::pass, &is<E>);
  }
  template <class E>
  failure_rules& invalidate() {
    return add(on_failure::invalidate, &is<E>);
  }
  /// Matches exceptions of a type that satisfy a condition:
  /// `.when<http_error>(on_failure::invalidate, [](auto& e) { return e.status == 410; })`
  template <class E, class Condition>
  failure_rules& when(on_failure action, Condition condition) {
    return add(action, [condition = std::move(condition)](const std::exception_ptr& thrown) {
      try {
        std::rethrow_exception(thrown);
      } catch (const E& caught) {
        return static_cast<bool>(condition(caught));
      } catch (...) {
        return false;
      }
    });
  }
  /// Adds a rule with any predicate. A predicate that throws does not match.
  failure_rules& add(on_failure action, predicate matches);
  /// Sets the action for exceptions that match no rule. The default is `recover`.
  failure_rules& otherwise(on_failure action) {
    otherwise_ = action;
    return *this;
  }

  /// The action for this exception.
  [[nodiscard]] on_failure operator()(const std::exception_ptr& thrown) const noexcept;

  /// True for std::bad_alloc and `cancelled`, which always pass.
  [[nodiscard]] static bool never_recovered(const std::exception_ptr& thrown) noexcept;

 private:
  template <class E>
  static bool is(const std::exception_ptr& thrown) {
    try {
      std::rethrow_exception(thrown);
    } catch (const E&) {
      return true;
    } catch (...) {
      return false;
    }
  }

  struct rule {
    on_failure action;
    predicate matches;
  };
  std::vector<rule> rules_{};
  on_failure otherwise_ = on_failure::recover;
};

}  // namespace HOLDFAST_NAMESPACE
