#pragma once

/// \file
/// Detects that an object was inherited by fork.

#include <holdfast/version.hpp>

#include <sys/types.h>

namespace HOLDFAST_NAMESPACE::detail {

/// Tells whether it was constructed in this process or inherited by fork.
///
/// Each object needs a page of memory, which the kernel wipes in children (MADV_WIPEONFORK). A
/// check reads one word of it. If the kernel cannot wipe pages, a check compares process ids, which
/// is a system call; it does not detect a descendant that was given the process id of the owner
/// again. Thread-safety: immutable.
class HOLDFAST_API fork_detector {
 public:
  fork_detector();
  fork_detector(const fork_detector&) = delete;
  fork_detector& operator=(const fork_detector&) = delete;
  ~fork_detector();

  [[nodiscard]] bool inherited_by_fork() const noexcept {
    return page_ != nullptr ? *page_ == 0 : pid_differs();
  }

 private:
  [[nodiscard]] bool pid_differs() const noexcept;

  pid_t owner_;
  volatile int* page_ = nullptr;
};

}  // namespace HOLDFAST_NAMESPACE::detail
