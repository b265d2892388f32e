#include "sql/error_class.hpp"

#include "base/utf8.hpp"

#include <algorithm>
#include <utility>

namespace HOLDFAST_NAMESPACE::detail::sql {

const error_class* find_class(std::span<const sqlstate_class> table, std::string_view sqlstate) {
  const auto row = std::ranges::find_if(
      table, [&](const sqlstate_class& each) { return sqlstate.starts_with(each.prefix); });
  return row == table.end() ? nullptr : &row->meaning;
}

error make_error(const error_class& meaning, std::string text, error::details details,
                 std::string_view column) {
  details.transient = meaning.transient;
  if (meaning.is_not_null_violation) details.not_null_column = column;
  if (meaning.hides_server_text)
    return {meaning.code, std::string(meaning.advice), std::move(details)};
  if (!meaning.advice.empty()) text.append("; ").append(meaning.advice);
  return {meaning.code, text, std::move(details)};
}

std::string one_line_excerpt(std::string_view text, std::size_t limit) {
  std::string line(text.substr(0, limit));
  if (text.size() > limit) {
    constexpr std::string_view ellipsis = "...";
    std::size_t size = limit - std::min(limit, ellipsis.size());
    while (size > 0 && continues_code_point(line[size])) --size;  // cuts before a character
    line.resize(size);
    line += ellipsis;
  }
  std::ranges::replace_if(line, [](unsigned char c) { return c < 0x20U || c == 0x7FU; }, ' ');
  return line;
}

}  // namespace HOLDFAST_NAMESPACE::detail::sql
