#include "base/process_mark.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>

namespace HOLDFAST_NAMESPACE {

namespace {
constexpr std::size_t page_size = 4096;  // or part of a larger one: it is the kernel that rounds up
}

process_mark::process_mark() : owner_(::getpid()) {
#ifdef MADV_WIPEONFORK
  void* made = ::mmap(nullptr, page_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (made == MAP_FAILED) return;
  if (::madvise(made, page_size, MADV_WIPEONFORK) != 0) {
    ::munmap(made, page_size);
    return;
  }
  page_ = static_cast<volatile int*>(made);
  *page_ = 1;
#endif
}

process_mark::~process_mark() {
  if (page_ != nullptr) ::munmap(const_cast<int*>(page_), page_size);
}

bool process_mark::other_process() const noexcept { return ::getpid() != owner_; }

}  // namespace HOLDFAST_NAMESPACE
