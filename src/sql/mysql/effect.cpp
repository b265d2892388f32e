#include "sql/mysql/effect.hpp"

#include "sql/keyword.hpp"

#include <algorithm>
#include <array>

namespace HOLDFAST_NAMESPACE::detail::sql::mysql {

namespace {

/// Returns the effect of a SET. `SET STATEMENT variable = value FOR statement` has the effect of
/// its statement. Another SET may change a global variable.
effect effect_of_setting(std::string_view text) {
  constexpr std::string_view begin = "SET STATEMENT ";
  constexpr std::string_view separator = " FOR ";
  if (!text.starts_with(begin)) return effect::anything;
  const auto position = text.find(separator);
  // With a second one the value or the statement contains the separator.
  if (position == std::string_view::npos || text.rfind(separator) != position)
    return effect::anything;
  return effect_of(text.substr(position + separator.size()));
}

}  // namespace

effect effect_of(std::string_view text) {
  constexpr std::string_view separators = " \t\r\n(";
  text = from_first_keyword(text, separators);
  const auto first = text.substr(0, text.find_first_of(separators));
  const auto is = [first](std::string_view keyword) {
    return first.size() == keyword.size() && starts_with_keyword(first, keyword);
  };
  if (is("SHOW")) return effect::none;
  if (is("SET")) return effect_of_setting(text);
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
