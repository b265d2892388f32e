#pragma once

/// \file
/// A value or an exception, for callers that do not want functions to throw.

#include <holdfast/version.hpp>

#include <exception>
#include <utility>
#include <variant>

namespace HOLDFAST_NAMESPACE {

/// Either a T or the exception that was thrown.
/// Thread-safety: like a standard container.
template <class T>
class result {
 public:
  result(T value) : content_(std::move(value)) {}  // NOLINT(google-explicit-constructor)
  result(std::exception_ptr error) noexcept
      : content_(std::move(error)) {}  // NOLINT(google-explicit-constructor)

  [[nodiscard]] bool has_value() const noexcept { return content_.index() == 0; }

  /// Throws the exception if there is no value.
  [[nodiscard]] T& value() & {
    check();
    return *std::get_if<0>(&content_);
  }
  [[nodiscard]] const T& value() const& {
    check();
    return *std::get_if<0>(&content_);
  }
  [[nodiscard]] T&& value() && {
    check();
    return std::move(*std::get_if<0>(&content_));
  }
  [[nodiscard]] T& operator*() & { return value(); }
  [[nodiscard]] const T& operator*() const& { return value(); }
  [[nodiscard]] T&& operator*() && { return std::move(*this).value(); }
  [[nodiscard]] T* operator->() { return &value(); }
  [[nodiscard]] const T* operator->() const { return &value(); }

  /// The exception, or null if there is a value.
  [[nodiscard]] std::exception_ptr error() const noexcept {
    const auto* thrown = std::get_if<1>(&content_);
    return thrown != nullptr ? *thrown : nullptr;
  }

 private:
  void check() const {
    if (const auto* thrown = std::get_if<1>(&content_)) std::rethrow_exception(*thrown);
  }

  std::variant<T, std::exception_ptr> content_;
};

}  // namespace HOLDFAST_NAMESPACE
