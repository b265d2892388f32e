#pragma once

#include "support/temporary_directory.hpp"

#include <cstdint>
#include <filesystem>

namespace holdfast::test {

/// A small file system of its own, in memory, that can be made full and roomy again: ENOSPC for
/// real. Nobody else sees it, and it is gone with the processes that do, for it lives in a mount
/// namespace of the thread that makes it. Servers started by that thread see it. Needs root. Throws
/// std::system_error.
/// Thread-safety: one thread.
class limited_disk {
 public:
  limited_disk();
  limited_disk(const limited_disk&) = delete;
  limited_disk& operator=(const limited_disk&) = delete;
  ~limited_disk();

  [[nodiscard]] const std::filesystem::path& path() const noexcept { return directory_.path(); }
  [[nodiscard]] std::uint64_t used() const;
  /// From now on there is room for this much more than is used.
  void leave(std::uint64_t bytes);

 private:
  void mount(std::uint64_t size, unsigned long flags) const;

  temporary_directory directory_{};
};

}  // namespace holdfast::test
