#pragma once

/// \file
/// A counter of a sink that follows a number which is counted elsewhere.

#include <holdfast/metrics.hpp>
#include <holdfast/version.hpp>

#include <cstdint>
#include <memory>
#include <utility>

namespace HOLDFAST_NAMESPACE::detail::serve {

/// Thread-safety: none.
class followed_counter {
 public:
  followed_counter() = default;
  /// What the number was before does not count: `begin`.
  explicit followed_counter(std::shared_ptr<metrics::counter> counter, std::uint64_t begin = 0)
      : counter_(std::move(counter)), last_(begin) {}

  void follow(std::uint64_t value) {
    if (value > last_) counter_->add(value - last_);
    last_ = value;
  }

 private:
  std::shared_ptr<metrics::counter> counter_{};
  std::uint64_t last_ = 0;
};

}  // namespace HOLDFAST_NAMESPACE::detail::serve
