#include "sql/placeholders.hpp"

#include <holdfast/error.hpp>

#include <charconv>
#include <limits>
#include <system_error>

namespace HOLDFAST_NAMESPACE::detail::sql {

std::string number_placeholders(std::string_view text) {
  std::string result;
  result.reserve(text.size() + 16);
  unsigned number = 0;
  for (const char c : text) {
    if (c == '?') result.append("$").append(std::to_string(++number));
    else result += c;
  }
  return result;
}

std::string placeholder(dialect_id dialect, unsigned number) {
  return dialect == dialect_id::postgresql ? "$" + std::to_string(number) : "?";
}

question_mark_text use_question_marks(std::string_view text) {
  question_mark_text result;
  bool numbered = false;
  char quote = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    result.text += c;
    if (quote != 0) {
      if (c == quote) quote = 0;
    } else if (c == '\'' || c == '"') {
      quote = c;
    } else if (c == '?') {
      result.order.push_back(static_cast<std::uint16_t>(result.order.size()));
    } else if (c == '$' && i + 1 < text.size() && text[i + 1] >= '1' && text[i + 1] <= '9') {
      unsigned number = 0;
      const auto [end, problem] =
          std::from_chars(text.data() + i + 1, text.data() + text.size(), number);
      if (problem != std::errc() || number > std::numeric_limits<std::uint16_t>::max())
        throw error(errc::invalid_argument, "a statement has more parameters than ODBC can carry");
      numbered = true;
      result.text.back() = '?';
      result.order.push_back(static_cast<std::uint16_t>(number - 1));
      i = static_cast<std::size_t>(end - text.data()) - 1;
    }
  }
  if (!numbered) result.order.clear();
  return result;
}

}  // namespace HOLDFAST_NAMESPACE::detail::sql
