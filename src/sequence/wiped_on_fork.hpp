#pragma once

/// \file
/// Memory that is all zeros in a forked child.

#include <holdfast/version.hpp>

#include <cstddef>
#include <new>
#include <type_traits>

namespace HOLDFAST_NAMESPACE::detail::sequence {

struct wiped_page {
  static constexpr std::size_t size = 4096;

  void* address;
  /// False if the kernel cannot wipe: Linux before 4.14, and some sandboxes.
  bool wiped;
};

/// A page of zeros that is zeros again in every child process (MADV_WIPEONFORK). Throws
/// std::bad_alloc.
[[nodiscard]] wiped_page map_wiped_page();
void unmap_page(void* address) noexcept;

/// A T in a page of its own that is all zeros in a forked child.
///
/// A child inherits the lease of its parent, and would give out the same ids. next() must notice
/// that it runs in a child, but getpid() on every call would be too slow. With the bounds of the
/// lease in this memory, the child sees an empty lease and takes the slow path, which throws. This
/// costs the fast path nothing.
///
/// Where `wiped` is false, the child has an ordinary copy of T. The fast path must then be closed,
/// so that every call takes the slow path.
///
/// Thread-safety: that of T.
template <class T>
class wiped_on_fork {
  static_assert(std::is_trivially_destructible_v<T> && sizeof(T) <= wiped_page::size);

 public:
  wiped_on_fork() : page_(map_wiped_page()), object_(new(page_.address) T) {}
  wiped_on_fork(const wiped_on_fork&) = delete;
  wiped_on_fork& operator=(const wiped_on_fork&) = delete;
  ~wiped_on_fork() { unmap_page(page_.address); }

  [[nodiscard]] T& operator*() const noexcept { return *object_; }
  [[nodiscard]] T* operator->() const noexcept { return object_; }
  [[nodiscard]] bool wiped() const noexcept { return page_.wiped; }

 private:
  const wiped_page page_;
  T* const object_;
};

}  // namespace HOLDFAST_NAMESPACE::detail::sequence
