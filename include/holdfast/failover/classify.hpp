#pragma once

/// \file
/// Which failures are answered from the store, which leave as they are, and which say that the stored answer is no longer true.

#include <holdfast/version.hpp>

#include <cstdint>
#include <exception>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

namespace HOLDFAST_NAMESPACE {

/// What to do when an upstream throws.
enum class on_failure : std::uint8_t {
  recover,    ///< serve the last good answer if there is one
  pass,       ///< let the exception leave; the stored answer stays
  invalidate  ///< let the exception leave, and store that there is nothing: "not found", "gone"
};

/// Rules, tried in the order in which they were given; the first that fits decides.
///
///     holdfast::failure_rules{}.pass<auth_error>().invalidate<not_found>().otherwise(holdfast::on_failure::recover)
///
/// `std::bad_alloc`, `holdfast::cancelled` and the unwinding of a cancelled thread always pass, whatever the rules say.
/// Thread-safety: like a standard container; predicates may be called from several threads at once.
class HOLDFAST_API failure_rules {
 public:
  using predicate = std::function<bool(const std::exception_ptr&)>;

  /// For exceptions that `catch (const E&)` would catch.
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
  /// For exceptions of a type that also fulfil a condition: `.when<http_error>(on_failure::invalidate, [](auto& e) { return e.status == 410; })`
  template <class E, class Condition>
  failure_rules& when(on_failure what, Condition fits) {
    return add(what, [fits = std::move(fits)](const std::exception_ptr& thrown) {
      try {
        std::rethrow_exception(thrown);
      } catch (const E& caught) {
        return static_cast<bool>(fits(caught));
      } catch (...) {
        return false;
      }
    });
  }
  /// Any other predicate. What it throws counts as "does not fit".
  failure_rules& add(on_failure what, predicate fits);
  /// When no rule fits; `recover` unless said.
  failure_rules& otherwise(on_failure what) {
    otherwise_ = what;
    return *this;
  }

  /// What to do about this exception. Never throws.
  [[nodiscard]] on_failure operator()(const std::exception_ptr& thrown) const noexcept;

  /// Out of memory, or cancelled: nobody may recover from that.
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
    on_failure what;
    predicate fits;
  };
  std::vector<rule> rules_{};
  on_failure otherwise_ = on_failure::recover;
};

}  // namespace HOLDFAST_NAMESPACE
