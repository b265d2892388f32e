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

  /// The cells must be printable. A row may have fewer cells than the header, not more. The note is
  /// printed in a line below the row.
  void add(std::vector<std::string> cells, std::string note = {}) {
    notes_.push_back(std::move(note));
    widths_.resize(std::max(widths_.size(), cells.size()));
    for (std::size_t i = 0; i < cells.size(); ++i)
      widths_[i] = std::max(widths_[i], columns_of(cells[i]));
    rows_.push_back(std::move(cells));
  }

  void print(output& out) const {
    for (std::size_t row = 0; row < rows_.size(); ++row) {
      const auto& cells = rows_[row];
      std::string line;
      for (std::size_t i = 0; i < cells.size(); ++i) {
        const std::string padding(widths_[i] - columns_of(cells[i]), ' ');
        line += i >= first_right_ ? padding + cells[i] : cells[i] + padding;
        line += "  ";
      }
      while (line.ends_with(' ')) line.pop_back();
      out << line << "\n";
      if (!notes_[row].empty()) out << "    " << notes_[row] << "\n";
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
  std::vector<std::string> notes_{};
};

/// A table of any length, printed in parts of 1000 rows, each with widths of its own. A table
/// without rows prints nothing. Call `finish` at the end.
/// Thread-safety: none.
class long_table {
 public:
  long_table(output& out, std::vector<std::string> header)
      : out_(out), header_(std::move(header)), part_(header_) {}

  void add(std::vector<std::string> cells, std::string note = {}) {
    part_.add(std::move(cells), std::move(note));
    if (++rows_ == part_size) finish();
  }
  void finish() {
    if (rows_ == 0) return;
    part_.print(out_);
    part_ = table(header_);
    rows_ = 0;
  }

 private:
  static constexpr std::size_t part_size = 1000;

  output& out_;
  std::vector<std::string> header_;
  table part_;
  std::size_t rows_ = 0;
};

}  // namespace holdfast::cli
