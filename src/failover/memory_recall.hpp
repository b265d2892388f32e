#pragma once

/// \file
/// Recoveries on a thread that must not wait for the store, such as an event loop.
///
///   1. The thread makes a memory_recall and looks the key up (`point::peek`). The read copies what
///      the memory of this process has, and reports no row.
///   2. If that is the answer, the thread calls `use()` and recovers the call. The read gets the
///      same row, whatever has happened to the memory since. Otherwise another thread recovers the
///      call.

#include <holdfast/store.hpp>

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::failover {

/// Thread-safety: used on the thread that made it. Does not nest.
class HOLDFAST_API memory_recall {
 public:
  memory_recall() noexcept;
  memory_recall(const memory_recall&) = delete;
  memory_recall& operator=(const memory_recall&) = delete;
  ~memory_recall();

  /// Null outside of a recall.
  [[nodiscard]] static memory_recall* current() noexcept;

  /// Whether memory has the answer for each key that was looked up.
  [[nodiscard]] bool is_complete() const noexcept {
    for (const auto& row : rows_) {
      if (!row.remembered.current) return false;
    }
    return !rows_.empty();
  }
  /// The row of the first key, also if it may be outdated; null: memory has none.
  [[nodiscard]] const entry* first_row() const noexcept {
    if (rows_.empty()) return nullptr;
    const auto& first = rows_.front().remembered.entry;
    return first ? &*first : nullptr;
  }
  /// From now on, reads get the rows that were looked up.
  void use() noexcept { in_use_ = true; }

  // For read_row.
  [[nodiscard]] bool is_used() const noexcept { return in_use_; }
  void add(std::string key, remembered_entry remembered) {
    rows_.push_back({std::move(key), std::move(remembered)});
  }
  /// Null: the key was not looked up.
  [[nodiscard]] const remembered_entry* find(std::string_view key) const noexcept {
    for (const auto& row : rows_) {
      if (row.key == key) return &row.remembered;
    }
    return nullptr;
  }

 private:
  struct row {
    std::string key{};
    remembered_entry remembered{};
  };
  std::vector<row> rows_{};
  bool in_use_ = false;
};

}  // namespace HOLDFAST_NAMESPACE::detail::failover
