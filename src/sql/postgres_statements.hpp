#pragma once

#include <holdfast/version.hpp>

#include "sql/postgres_binary.hpp"

#include <cstddef>
#include <list>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace HOLDFAST_NAMESPACE::sql::postgres {

/// Which statements one connection has prepared on its server, under which names, and which of them was not used for longest.
/// It only keeps the books; preparing and deallocating is the connection's work.
class prepared_statements {
 public:
  static constexpr std::size_t limit = 256;  ///< each costs the server some ten kilobytes

  /// The name of a statement, made from its text and types: behind a pooler that lends one server session to many clients, the same
  /// name then means the same statement.
  [[nodiscard]] static std::string name_of(std::string_view text, std::span<const oid> types);

  /// The name under which the statement is known, or nullptr. It counts as used now.
  [[nodiscard]] const std::string* find(std::string_view text, std::span<const oid> types);
  /// The name that must be deallocated before this statement is prepared, or nullptr: the same text with other types, or, when there
  /// is no room, the oldest.
  [[nodiscard]] const std::string* in_the_way_of(std::string_view text) const;
  void add(std::string text, std::span<const oid> types, std::string name);
  void remove(std::string_view name);
  [[nodiscard]] std::size_t size() const noexcept { return by_use_.size(); }

 private:
  struct entry {
    std::string text;
    std::vector<oid> types;
    std::string name;
  };
  std::list<entry> by_use_{};  // the newest first
  std::unordered_map<std::string_view, std::list<entry>::iterator> by_text_{};
};

}  // namespace HOLDFAST_NAMESPACE::sql::postgres
