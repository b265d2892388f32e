#include "sequence/wiped_on_fork.hpp"

#include <sys/mman.h>

namespace HOLDFAST_NAMESPACE::detail::sequence {

wiped_page map_wiped_page() {
  void* address =
      ::mmap(nullptr, wiped_page::size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (address == MAP_FAILED) throw std::bad_alloc();
#ifdef MADV_WIPEONFORK
  return {.address = address, .wiped = ::madvise(address, wiped_page::size, MADV_WIPEONFORK) == 0};
#else
  return {.address = address, .wiped = false};
#endif
}

void unmap_page(void* address) noexcept { ::munmap(address, wiped_page::size); }

}  // namespace HOLDFAST_NAMESPACE::detail::sequence
