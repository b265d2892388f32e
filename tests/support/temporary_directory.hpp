#pragma once

#include <filesystem>
#include <string>

namespace holdfast::test {

/// What a temporary directory lies on.
enum class medium {
  disk,   ///< TMPDIR, or /tmp
  memory  ///< TMPDIR, or /dev/shm when it has room, or /tmp
};

/// A private directory (mode 700), removed with everything in it at the end. HOLDFAST_KEEP=1 keeps
/// it, under a name with `kept-` before it, and says where. What a killed program left behind is
/// removed by the next one: each holds a lock on its own.
class temporary_directory {
 public:
  /// The name begins with `holdfast-temporary.<purpose>`. It belongs to `owner` when we are root
  /// and one is given; to us otherwise.
  explicit temporary_directory(const std::string& purpose = "test", const std::string& owner = {},
                               medium on = medium::disk);
  temporary_directory(temporary_directory&& other) noexcept;
  temporary_directory& operator=(temporary_directory&&) = delete;
  ~temporary_directory();

  [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }

 private:
  std::filesystem::path path_;
  int lock_ = -1;
};

}  // namespace holdfast::test
