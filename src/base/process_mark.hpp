#pragma once

#include <holdfast/version.hpp>

#include <sys/types.h>

namespace HOLDFAST_NAMESPACE {

/// Knows whether it was made in this process, or came with a fork. Asking costs a look into memory: a page that the kernel wipes in children.
/// Where the kernel cannot, it compares process ids, which is a system call each time.
/// Thread-safety: immutable.
class HOLDFAST_API process_mark {
 public:
  process_mark();
  process_mark(const process_mark&) = delete;
  process_mark& operator=(const process_mark&) = delete;
  ~process_mark();

  [[nodiscard]] bool inherited() const noexcept { return page_ != nullptr ? *page_ == 0 : other_process(); }

 private:
  [[nodiscard]] bool other_process() const noexcept;

  pid_t owner_;
  volatile int* page_ = nullptr;
};

}  // namespace HOLDFAST_NAMESPACE
