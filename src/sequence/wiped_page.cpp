#include "sequence/wiped_page.hpp"

#include <sys/mman.h>

#include <new>

namespace HOLDFAST_NAMESPACE::detail {

wiped_page::wiped_page() : data_(::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {
  if (data_ == MAP_FAILED) throw std::bad_alloc();
#ifdef MADV_WIPEONFORK
  wipes_ = ::madvise(data_, size, MADV_WIPEONFORK) == 0;
#endif
}

wiped_page::~wiped_page() { ::munmap(data_, size); }

}  // namespace HOLDFAST_NAMESPACE::detail
