#pragma once

#include <holdfast/version.hpp>

#include "http/fields.hpp"

#include <string>

namespace HOLDFAST_NAMESPACE::detail::serve::gateway {

/// A copy of the fields with which a client asks for a part of an answer, or for an answer only if
/// it has changed. Usually empty.
/// Thread-safety: immutable.
class request_conditions {
 public:
  explicit request_conditions(const http::fields& request);
  request_conditions(const request_conditions&) = delete;
  request_conditions& operator=(const request_conditions&) = delete;

  [[nodiscard]] const http::fields& fields() const noexcept { return fields_; }

 private:
  std::string text_{};
  http::fields fields_{};
};

}  // namespace HOLDFAST_NAMESPACE::detail::serve::gateway
