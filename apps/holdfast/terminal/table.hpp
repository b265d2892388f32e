#pragma once

/// \file
/// A table whose columns are as wide as their widest cell.

#include "terminal/output.hpp"

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace holdfast::cli {

/// Thread-safety: none.
class table {
 public:
  /// The columns from `first_right` on are aligned to the right, for numbers.
  explicit table(std::vector<std::string> header, std::size_t first_right = SIZE_MAX)
      : first_right_(first_right) {
    add(std::move(header));
  }

  /// The cells must be printable. A row may have fewer cells than the header, not more.
  void add(std::vector<std::string> cells) {
    widths_.resize(std::max(widths_.size(), cells.size()));
    for (std::size_t i = 0; i < cells.size(); ++i)
      widths_[i] = std::max(widths_[i], columns_of(cells[i]));
    rows_.push_back(std::move(cells));
  }

  void print(output& out) const {
    for (const auto& cells : rows_) {
      std::string line;
      for (std::size_t i = 0; i < cells.size(); ++i) {
        const std::string padding(widths_[i] - columns_of(cells[i]), ' ');
        line += i >= first_right_ ? padding + cells[i] : cells[i] + padding;
        line += "  ";
      }
      while (line.ends_with(' ')) line.pop_back();
      out << line << "\n";
    }
  }

 private:
  /// The number of characters: continuation bytes of UTF-8 take no column.
  static std::size_t columns_of(const std::string& cell) {
    return static_cast<std::size_t>(
        std::ranges::count_if(cell, [](char c) { return (c & '\xc0') != '\x80'; }));
  }

  std::size_t first_right_;
  std::vector<std::size_t> widths_{};
  std::vector<std::vector<std::string>> rows_{};
};

}  // namespace holdfast::cli
