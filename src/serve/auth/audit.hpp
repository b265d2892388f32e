#pragma once

#include <holdfast/clock.hpp>
#include <holdfast/version.hpp>

#include "serve/auth/caller.hpp"

#include <cstdint>
#include <string>

namespace HOLDFAST_NAMESPACE::detail::serve {

/// One action that changed something, or showed a payload.
struct audit_entry {
  /// The epoch stands for the time at which the entry is recorded.
  timestamp time{};
  std::string caller{};
  std::string address{};
  std::string tenant{};
  /// `outbox.replay`, `sequence.reset`, `token.add`
  std::string action{};
  /// What it was done to: `orders`, `order.id`
  std::string subject{};
  std::uint64_t count = 0;
  /// `done`, `refused: ...`, `failed: ...`
  std::string result{};
};

/// Thread-safety: may be called from any thread.
class audit_log {
 public:
  audit_log() = default;
  audit_log(const audit_log&) = delete;
  audit_log& operator=(const audit_log&) = delete;
  virtual ~audit_log() = default;
  /// Never throws: a failure is logged, and counted.
  virtual void record(audit_entry entry) noexcept = 0;
  /// Fills in who and when.
  void record(const caller& actor, std::string action, std::string subject, std::uint64_t count,
              std::string result) noexcept;
};

}  // namespace HOLDFAST_NAMESPACE::detail::serve
