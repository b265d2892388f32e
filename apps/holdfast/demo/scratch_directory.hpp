#pragma once

#include <holdfast/error.hpp>

#include <cstdlib>
#include <filesystem>
#include <string>

namespace holdfast::cli {

/// A temporary directory. The destructor removes it.
class scratch_directory {
 public:
  scratch_directory() {
    path_ = (std::filesystem::temp_directory_path() / "holdfast-demo-XXXXXX").string();
    if (mkdtemp(path_.data()) == nullptr)
      throw error(errc::unavailable, "cannot create a temporary directory; check TMPDIR");
  }
  scratch_directory(const scratch_directory&) = delete;
  scratch_directory& operator=(const scratch_directory&) = delete;
  ~scratch_directory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  [[nodiscard]] std::string url() const { return "sqlite://" + path_ + "/answers.db"; }

 private:
  std::string path_;
};

}  // namespace holdfast::cli
