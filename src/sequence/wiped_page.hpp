#pragma once

#include <holdfast/version.hpp>

#include <cstddef>

namespace HOLDFAST_NAMESPACE::detail {

/// A page of memory that is zero at first, and zero again in every child process.
/// Thread-safety: the page is the caller's business.
class wiped_page {
 public:
  static constexpr std::size_t size = 4096;

  /// Throws std::bad_alloc.
  wiped_page();
  wiped_page(const wiped_page&) = delete;
  wiped_page& operator=(const wiped_page&) = delete;
  ~wiped_page();

  [[nodiscard]] void* data() const noexcept { return data_; }
  /// False on kernels (before Linux 4.14) and in sandboxes that do not wipe: a child then finds a copy, and must compare process ids.
  [[nodiscard]] bool wipes() const noexcept { return wipes_; }

 private:
  void* data_;
  bool wipes_ = false;
};

}  // namespace HOLDFAST_NAMESPACE::detail
