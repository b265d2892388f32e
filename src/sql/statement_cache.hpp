#pragma once

#include <holdfast/version.hpp>

#include "sql/public_names.hpp"

#include <cstddef>
#include <iterator>
#include <list>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace HOLDFAST_NAMESPACE::detail::sql {

/// What a connection keeps for each prepared statement (a handle, a name), by the text of the
/// statement and in the order of last use.
template <class Statement>
class statement_cache {
 public:
  [[nodiscard]] std::size_t size() const noexcept { return by_use_.size(); }
  [[nodiscard]] bool empty() const noexcept { return by_use_.empty(); }

  /// Returns the statement and marks it as the most recently used, or returns null.
  [[nodiscard]] Statement* find(std::string_view text) {
    // A connection often repeats one statement. To compare it is faster than to hash it.
    if (!by_use_.empty() && by_use_.front().first == text) return &by_use_.front().second;
    const auto position = by_text_.find(text);
    if (position == by_text_.end()) return nullptr;
    by_use_.splice(by_use_.begin(), by_use_, position->second);
    return &by_use_.front().second;
  }
  /// As find, but does not count as a use.
  [[nodiscard]] const Statement* peek(std::string_view text) const {
    const auto position = by_text_.find(text);
    return position == by_text_.end() ? nullptr : &position->second->second;
  }
  /// The least recently used statement. The cache must not be empty.
  [[nodiscard]] const Statement& oldest() const { return by_use_.back().second; }

  /// Adds a statement; its text must not be in the cache. Adds nothing if it throws.
  Statement& add(std::string text, Statement statement) {
    by_use_.emplace_front(std::move(text), std::move(statement));
    try {
      by_text_.emplace(by_use_.front().first, by_use_.begin());
    } catch (...) {
      by_use_.pop_front();
      throw;
    }
    return by_use_.front().second;
  }

  /// Removes the least recently used statement and returns it. The cache must not be empty.
  Statement remove_oldest() { return remove(std::prev(by_use_.end())); }
  /// Removes a statement and returns it, or nullopt.
  std::optional<Statement> remove(std::string_view text) {
    const auto position = by_text_.find(text);
    if (position == by_text_.end()) return std::nullopt;
    return remove(position->second);
  }
  /// Removes the first statement for which `predicate` is true.
  template <class Predicate>
  void remove_first(Predicate predicate) {
    for (auto position = by_use_.begin(); position != by_use_.end(); ++position) {
      if (predicate(position->second)) return (void)remove(position);
    }
  }
  void clear() noexcept {
    by_text_.clear();
    by_use_.clear();
  }

 private:
  using list = std::list<std::pair<std::string, Statement>>;

  Statement remove(typename list::iterator position) {
    Statement statement = std::move(position->second);
    by_text_.erase(position->first);
    by_use_.erase(position);
    return statement;
  }

  list by_use_{};  // the most recently used first
  std::unordered_map<std::string_view, typename list::iterator> by_text_{};  // views of by_use_
};

}  // namespace HOLDFAST_NAMESPACE::detail::sql
