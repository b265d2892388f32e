#pragma once

/// \file
/// What a caller gets: the value, and where it comes from.

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
  live,       ///< the upstream gave it, in this call
  stored,     ///< the last good one, from the store
  substitute  ///< neither: a default value, or a handler's
};

/// Why an answer is not live.
enum class cause_code : std::uint8_t {
  none,        ///< it is live
  failed,      ///< the upstream threw
  late,        ///< the upstream did not answer within the deadline
  refused,     ///< the upstream was not called: breaker open, concurrency limit reached, or no thread free
  fresh,       ///< nothing failed: the stored answer is younger than the soft expiry
  refreshing,  ///< nothing failed: the stored answer is past its soft expiry and is being refreshed
  abandoned    ///< a split-phase call was dropped without an outcome
};
/// The stable spelling: `none`, `failed` and so on.
[[nodiscard]] HOLDFAST_API std::string_view to_string(cause_code code) noexcept;

/// Whether an answer is the whole answer. Only scattered calls and lists can be partial.
enum class completeness : std::uint8_t { yes, no, unknown };

/// Why an answer is not live: a code and, when something was thrown, the exception. Codes and types may be logged and counted; a message may
/// hold host names, statements or secrets, so it is only given when asked for.
/// Thread-safety: immutable.
class HOLDFAST_API cause {
 public:
  cause() noexcept = default;
  explicit cause(cause_code code, std::exception_ptr error = nullptr) noexcept : error_(std::move(error)), code_(code) {}

  [[nodiscard]] cause_code code() const noexcept { return code_; }
  /// The exception itself; null when nothing was thrown.
  [[nodiscard]] const std::exception_ptr& error() const noexcept { return error_; }
  /// The name of its type, as `std::runtime_error`; empty when nothing was thrown.
  [[nodiscard]] std::string type() const;
  /// What it says. Think before showing this to anybody.
  [[nodiscard]] std::string message() const;

 private:
  std::exception_ptr error_;
  cause_code code_ = cause_code::none;
};

/// Everything about an answer but its value.
struct provenance {
  origin from = origin::live;
  timestamp as_of{};    ///< when the call that gave it started; of a substitute, when this call started
  timestamp expires{};  ///< the last moment at which it may be served from the store
  completeness complete = completeness::yes;
  cause why{};
};

/// The answer to a protected call. It may be empty: the call returned an empty optional, or what was stored says that there is nothing.
/// There is no `operator bool`: nobody could guess whether it means "there is a value" or "it is live".
/// Thread-safety: like a standard container.
template <class T>
class answer {
 public:
  using value_type = T;

  answer(std::optional<T> value, provenance from) : value_(std::move(value)), from_(std::move(from)) {}

  [[nodiscard]] bool live() const noexcept { return from_.from == origin::live; }
  [[nodiscard]] bool stale() const noexcept { return !live(); }
  [[nodiscard]] bool has_value() const noexcept { return value_.has_value(); }

  /// Throws errc::not_found when the answer is that there is nothing.
  [[nodiscard]] T& value() & { return *checked(); }
  [[nodiscard]] const T& value() const& { return *const_cast<answer*>(this)->checked(); }
  [[nodiscard]] T&& value() && { return std::move(*checked()); }
  [[nodiscard]] T& operator*() & { return value(); }
  [[nodiscard]] const T& operator*() const& { return value(); }
  [[nodiscard]] T&& operator*() && { return std::move(*this).value(); }
  [[nodiscard]] T* operator->() { return &value(); }
  [[nodiscard]] const T* operator->() const { return &value(); }
  template <class U>
  [[nodiscard]] T value_or(U&& otherwise) const& {
    return value_.value_or(std::forward<U>(otherwise));
  }
  [[nodiscard]] const std::optional<T>& optional() const& noexcept { return value_; }
  [[nodiscard]] std::optional<T>&& optional() && noexcept { return std::move(value_); }

  [[nodiscard]] origin from() const noexcept { return from_.from; }
  /// When the call that gave this answer started.
  [[nodiscard]] timestamp as_of() const noexcept { return from_.as_of; }
  [[nodiscard]] timestamp expires() const noexcept { return from_.expires; }
  [[nodiscard]] std::chrono::microseconds age(timestamp now) const noexcept { return now - from_.as_of; }
  [[nodiscard]] completeness complete() const noexcept { return from_.complete; }
  [[nodiscard]] const holdfast::cause& cause() const noexcept { return from_.why; }
  [[nodiscard]] const holdfast::provenance& provenance() const noexcept { return from_; }

 private:
  std::optional<T>& checked() {
    if (!value_) throw error(errc::not_found, "the answer is that there is nothing; ask has_value() first");
    return value_;
  }

  std::optional<T> value_;
  holdfast::provenance from_;
};

}  // namespace HOLDFAST_NAMESPACE
