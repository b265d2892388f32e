#pragma once

/// \file
/// A value, or the exception that kept it from being made: for callers that do not want exceptions to leave.

#include <holdfast/version.hpp>

#include <exception>
#include <utility>
#include <variant>

namespace HOLDFAST_NAMESPACE {

/// Either a T or an exception, kept as it was thrown.
/// Thread-safety: like a standard container.
template <class T>
class result {
 public:
  result(T value) : kept_(std::move(value)) {}                            // NOLINT(google-explicit-constructor)
  result(std::exception_ptr error) noexcept : kept_(std::move(error)) {}  // NOLINT(google-explicit-constructor)

  [[nodiscard]] bool has_value() const noexcept { return kept_.index() == 0; }

  /// Throws the exception when there is no value.
  [[nodiscard]] T& value() & {
    check();
    return *std::get_if<0>(&kept_);
  }
  [[nodiscard]] const T& value() const& {
    check();
    return *std::get_if<0>(&kept_);
  }
  [[nodiscard]] T&& value() && {
    check();
    return std::move(*std::get_if<0>(&kept_));
  }
  [[nodiscard]] T& operator*() & { return value(); }
  [[nodiscard]] const T& operator*() const& { return value(); }
  [[nodiscard]] T&& operator*() && { return std::move(*this).value(); }
  [[nodiscard]] T* operator->() { return &value(); }
  [[nodiscard]] const T* operator->() const { return &value(); }

  /// The exception itself; null when there is a value.
  [[nodiscard]] std::exception_ptr error() const noexcept {
    const auto* thrown = std::get_if<1>(&kept_);
    return thrown != nullptr ? *thrown : nullptr;
  }

 private:
  void check() const {
    if (const auto* thrown = std::get_if<1>(&kept_)) std::rethrow_exception(*thrown);
  }

  std::variant<T, std::exception_ptr> kept_;
};

}  // namespace HOLDFAST_NAMESPACE
