#pragma once

/// \file
/// The clock that the library reads. A test can pass its own.

#include <holdfast/version.hpp>

#include <chrono>
#include <memory>

namespace HOLDFAST_NAMESPACE {

/// A stored point in time: UTC, in whole microseconds. Databases round differently, so Holdfast
/// truncates before it stores.
using timestamp = std::chrono::sys_time<std::chrono::microseconds>;

/// Wall time for stored timestamps, steady time for deadlines.
/// Thread-safety: every function may be called from any thread.
class HOLDFAST_API clock {
 public:
  virtual ~clock();
  [[nodiscard]] virtual timestamp now() const noexcept = 0;
  [[nodiscard]] virtual std::chrono::steady_clock::time_point steady() const noexcept = 0;
};

/// The clock of this machine.
[[nodiscard]] HOLDFAST_API std::shared_ptr<const clock> system_clock();

}  // namespace HOLDFAST_NAMESPACE
