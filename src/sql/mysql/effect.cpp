#include "sql/mysql/effect.hpp"

#include "sql/keyword.hpp"

#include <algorithm>
#include <array>

namespace HOLDFAST_NAMESPACE::detail::sql::mysql {

effect effect_of(std::string_view text) {
  constexpr std::string_view separators = " \t\r\n(";
  text = from_first_keyword(text, separators);
  const auto first = text.substr(0, text.find_first_of(separators));
  const auto is = [first](std::string_view keyword) {
    return first.size() == keyword.size() && starts_with_keyword(first, keyword);
  };
  if (is("SHOW")) return effect::none;
  if (is("SELECT")) {
    // SELECT NEXT VALUE FOR s and SETVAL(s, n) advance a sequence; SELECT ... INTO writes.
    const bool writes = contains_keyword(text, "NEXT") || contains_keyword(text, "SETVAL") ||
                        contains_keyword(text, "INTO");
    return writes ? effect::anything : effect::none;
  }
  constexpr std::array<std::string_view, 5> keywords{"INSERT", "UPDATE", "DELETE", "REPLACE",
                                                     "WITH"};
  return std::ranges::any_of(keywords, is) ? effect::rows : effect::anything;
}

}  // namespace HOLDFAST_NAMESPACE::detail::sql::mysql
