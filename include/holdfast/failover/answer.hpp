#pragma once

/// \file
/// The answer to a protected call: the value and its provenance.

#include <holdfast/clock.hpp>
#include <holdfast/error.hpp>
#include <holdfast/version.hpp>

#include <chrono>
#include <cstdint>
#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace HOLDFAST_NAMESPACE {

/// Where an answer comes from.
enum class origin : std::uint8_t {
  live,       ///< from the upstream, in this call
  stored,     ///< from the store: the last good answer
  substitute  ///< a default value, or a value that a hook made
};
/// The name of the enumerator, for example `live`. Does not change between versions.
[[nodiscard]] HOLDFAST_API std::string_view to_string(origin source) noexcept;

/// Why an answer is not live.
enum class cause_code : std::uint8_t {
  none,    ///< the answer is live
  failed,  ///< the upstream threw
  late,    ///< the upstream did not answer within the deadline, or the soft timeout
  /// The upstream was not called: breaker open, concurrency limit reached, or no thread free
  refused,
  /// Nothing failed: the stored answer is younger than the soft expiry
  fresh,
  /// Nothing failed: the stored answer is past its soft expiry, and a refresh has started
  refreshing,
  abandoned,  ///< a split-phase call was dropped without an outcome
  /// Nothing failed: a drill rehearsed an outage; see drill.hpp
  drill
};
/// The name of the enumerator, for example `failed`. Does not change between versions.
[[nodiscard]] HOLDFAST_API std::string_view to_string(cause_code code) noexcept;

/// Whether an answer has all its parts. Only scattered calls and lists can be incomplete.
enum class completeness : std::uint8_t { yes, no, unknown };  // unknown: no list of its parts
/// The name of the enumerator, for example `yes`. Does not change between versions.
[[nodiscard]] HOLDFAST_API std::string_view to_string(completeness complete) noexcept;

/// Why an answer is not live: a code and, if something was thrown, the exception. The library logs
/// and counts codes and type names only, because a message may contain host names, statements or
/// secrets.
/// Thread-safety: immutable.
class HOLDFAST_API cause {
 public:
  cause() noexcept = default;
  explicit cause(cause_code code, std::exception_ptr error = nullptr) noexcept
      : error_(std::move(error)), code_(code) {}

  [[nodiscard]] cause_code code() const noexcept { return code_; }
  /// The exception, or null if nothing was thrown.
  [[nodiscard]] const std::exception_ptr& error() const noexcept { return error_; }
  /// The type name of the exception, for example `std::runtime_error`. Empty if nothing was thrown.
  [[nodiscard]] std::string type() const;
  /// The text of the exception. It may contain secrets: do not show it to users.
  [[nodiscard]] std::string message() const;

 private:
  std::exception_ptr error_;
  cause_code code_ = cause_code::none;
};

/// Where an answer comes from, and how old it is.
struct provenance {
  holdfast::origin origin = holdfast::origin::live;
  /// Start of the call that produced the answer. For a substitute: start of this call.
  timestamp as_of{};
  /// Last moment at which the answer may be served from the store.
  timestamp expires{};
  completeness complete = completeness::yes;
  holdfast::cause cause{};
  /// Number of the decision that was reported for this answer; 0 if none was. decision_ref converts
  /// it to the reference that decision_log::find takes.
  std::uint64_t decision = 0;
};

/// The answer to a protected call. It is empty if the call returned an empty optional, or if the
/// store has a tombstone. There is no `operator bool`: it could mean "has a value" or "is live".
/// Thread-safety: like a standard container.
template <class T>
class answer {
 public:
  using value_type = T;

  answer(std::optional<T> value, holdfast::provenance provenance)
      : value_(std::move(value)), provenance_(std::move(provenance)) {}

  [[nodiscard]] bool live() const noexcept { return provenance_.origin == origin::live; }
  [[nodiscard]] bool stale() const noexcept { return !live(); }
  [[nodiscard]] bool has_value() const noexcept { return value_.has_value(); }

  /// Throws errc::not_found if the answer is empty.
  [[nodiscard]] T& value() & { return checked(); }
  [[nodiscard]] const T& value() const& { return const_cast<answer*>(this)->checked(); }
  [[nodiscard]] T&& value() && { return std::move(checked()); }
  [[nodiscard]] T& operator*() & { return value(); }
  [[nodiscard]] const T& operator*() const& { return value(); }
  [[nodiscard]] T&& operator*() && { return std::move(*this).value(); }
  [[nodiscard]] T* operator->() { return &value(); }
  [[nodiscard]] const T* operator->() const { return &value(); }
  template <class U>
  [[nodiscard]] T value_or(U&& fallback) const& {
    return value_.value_or(std::forward<U>(fallback));
  }
  [[nodiscard]] const std::optional<T>& optional() const& noexcept { return value_; }
  [[nodiscard]] std::optional<T>&& optional() && noexcept { return std::move(value_); }

  [[nodiscard]] origin source() const noexcept { return provenance_.origin; }
  /// Start of the call that produced this answer.
  [[nodiscard]] timestamp as_of() const noexcept { return provenance_.as_of; }
  [[nodiscard]] timestamp expires() const noexcept { return provenance_.expires; }
  [[nodiscard]] std::chrono::microseconds age(timestamp now) const noexcept {
    return now - provenance_.as_of;
  }
  [[nodiscard]] completeness complete() const noexcept { return provenance_.complete; }
  [[nodiscard]] const holdfast::cause& cause() const noexcept { return provenance_.cause; }
  [[nodiscard]] const holdfast::provenance& provenance() const noexcept { return provenance_; }

 private:
  T& checked() {
    if (!value_) throw error(errc::not_found, "the answer is empty; check has_value() first");
    return *value_;
  }

  std::optional<T> value_;
  holdfast::provenance provenance_;
};

}  // namespace HOLDFAST_NAMESPACE
