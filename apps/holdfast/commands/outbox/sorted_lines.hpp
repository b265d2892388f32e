#pragma once

/// \file
/// Sorts any number of lines within bounded memory.

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

namespace holdfast::cli {

/// Lines that do not fit into memory are kept in temporary files without a name, in sorted runs,
/// which are merged at the end.
/// Thread-safety: none.
class sorted_lines {
 public:
  /// The place of a line: the group first, then the lane, then the sequence.
  using place = std::tuple<std::uint8_t, std::uint64_t, std::int64_t>;

  /// `memory`: bytes of lines that are kept in memory.
  explicit sorted_lines(std::size_t memory) : memory_(memory) {}

  /// Throws errc::unavailable if a temporary file cannot be written.
  void add(place at, std::string text);
  /// Calls `write` for each line, in order. Call it once. Throws as `add`.
  void write_all(const std::function<void(const std::string&)>& write);
  /// The number of files that were needed.
  [[nodiscard]] std::size_t files() const noexcept { return runs_.size(); }

 private:
  struct line {
    place at{};
    std::string text{};
  };
  struct close_file {
    void operator()(std::FILE* file) const noexcept { (void)std::fclose(file); }
  };
  using run = std::unique_ptr<std::FILE, close_file>;

  void spill();
  /// Returns false at the end of the run.
  [[nodiscard]] static bool read(std::FILE* file, line& next);

  std::size_t memory_;
  std::size_t used_ = 0;
  std::vector<line> lines_{};
  std::vector<run> runs_{};
};

}  // namespace holdfast::cli
