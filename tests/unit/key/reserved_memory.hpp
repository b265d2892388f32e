#pragma once

// Reserves addresses without memory, for inputs beyond a limit of hundreds of megabytes that the
// code under test must refuse without reading them.

#include <sys/mman.h>

#include <cstddef>
#include <cstring>
#include <span>
#include <stdexcept>

namespace wire {

class reserved_memory {
 public:
  explicit reserved_memory(std::size_t size)
      : size_(size),
        start_(::mmap(nullptr, size, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)) {
    if (start_ == MAP_FAILED) throw std::runtime_error("cannot reserve addresses");
  }
  reserved_memory(const reserved_memory&) = delete;
  reserved_memory& operator=(const reserved_memory&) = delete;
  ~reserved_memory() { ::munmap(start_, size_); }

  [[nodiscard]] std::span<const std::byte> bytes() const {
    return {static_cast<const std::byte*>(start_), size_};
  }
  /// Puts bytes at the front; the rest reads as zeros.
  void write(std::span<const std::byte> front) const {
    std::memcpy(start_, front.data(), front.size());
  }

 private:
  std::size_t size_;
  void* start_;
};

}  // namespace wire
