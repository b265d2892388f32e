#pragma once

/// \file
/// The private part of sequence_handle.

#include <holdfast/sequence/window.hpp>
#include <holdfast/version.hpp>

#include "sequence/sequence_state.hpp"
#include "sequence/wiped_on_fork.hpp"

#include <cstdint>
#include <memory>

namespace HOLDFAST_NAMESPACE::detail::sequence {

/// Takes ids from a sequence for one thread.
/// Thread-safety: none.
class handle {
 public:
  handle(std::shared_ptr<sequence_state> state, std::int64_t max_ids);
  handle(const handle&) = delete;
  handle& operator=(const handle&) = delete;
  ~handle();

  [[nodiscard]] handle_window& window() const noexcept { return *window_; }
  /// Takes ids into the empty window, and returns the first one.
  std::int64_t refill();

 private:
  const std::shared_ptr<sequence::sequence_state> state_;
  const std::uint64_t max_ids_;
  const wiped_on_fork<handle_window> window_{};
};

}  // namespace HOLDFAST_NAMESPACE::detail::sequence
