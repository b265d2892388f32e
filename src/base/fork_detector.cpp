#include "base/fork_detector.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>

namespace HOLDFAST_NAMESPACE::detail {

namespace {
constexpr std::size_t page_size = 4096;  // the kernel rounds up to its own page size
}

fork_detector::fork_detector() : owner_(::getpid()) {
#ifdef MADV_WIPEONFORK
  void* page =
      ::mmap(nullptr, page_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return;
  if (::madvise(page, page_size, MADV_WIPEONFORK) != 0) {
    ::munmap(page, page_size);
    return;
  }
  page_ = static_cast<volatile int*>(page);
  *page_ = 1;
#endif
}

fork_detector::~fork_detector() {
  if (page_ != nullptr) ::munmap(const_cast<int*>(page_), page_size);
}

bool fork_detector::pid_differs() const noexcept { return ::getpid() != owner_; }

}  // namespace HOLDFAST_NAMESPACE::detail
