#pragma once

#include <holdfast/version.hpp>

#include "sql/mysql_link.hpp"
#include "sql/mysql_words.hpp"

#include <cstddef>
#include <list>
#include <string>
#include <string_view>
#include <unordered_map>

namespace HOLDFAST_NAMESPACE::sql::mysql {

/// The prepared statements of one connection, by their text. Bounded twice, because the server pays for them too: by their number, and by
/// their parameters, of which the statement for a batch has thousands. The longest unused goes first.
class prepared_statements {
 public:
  static constexpr std::size_t most = 256;
  static constexpr std::size_t most_parameters = 16'384;

  struct entry {
    std::string text;
    statement_handle handle;
    std::size_t parameters;
    effect does;
  };

  /// The statement, prepared if need be. Valid until the next call.
  const entry& get(std::string_view text, link& on, time_limit limit);
  /// The server does not know it any more.
  void forget(std::string_view text, link& on, time_limit limit) noexcept;

 private:
  void drop_last(link& on, time_limit limit) noexcept;

  std::list<entry> by_use_{};  ///< the last used first
  std::unordered_map<std::string_view, std::list<entry>::iterator> by_text_{};
  std::size_t parameters_ = 0;
};

}  // namespace HOLDFAST_NAMESPACE::sql::mysql
