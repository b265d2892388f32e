#pragma once

/// \file
/// Time as the rest of the library sees it, so that a test can hold it still.

#include <holdfast/version.hpp>

#include <chrono>
#include <memory>

namespace HOLDFAST_NAMESPACE {

/// A moment as it is stored: UTC, whole microseconds. Databases round differently, so we truncate first.
using timestamp = std::chrono::sys_time<std::chrono::microseconds>;

/// Wall time for what is stored, steady time for deadlines: a deadline never uses wall time.
/// Thread-safety: every function may be called from any thread.
class HOLDFAST_API clock {
 public:
  virtual ~clock();
  [[nodiscard]] virtual timestamp now() const noexcept = 0;
  [[nodiscard]] virtual std::chrono::steady_clock::time_point steady() const noexcept = 0;
};

/// The machine's own.
[[nodiscard]] HOLDFAST_API std::shared_ptr<const clock> system_clock();

}  // namespace HOLDFAST_NAMESPACE
