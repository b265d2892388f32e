#include "sql/mysql_words.hpp"

#include <algorithm>
#include <array>
#include <cctype>

namespace HOLDFAST_NAMESPACE::sql::mysql {

namespace {

constexpr std::string_view between_words = " \t\r\n(";

bool same(char a, char b) { return std::toupper(static_cast<unsigned char>(a)) == b; }

/// Words are given in capitals.
bool is(std::string_view text, std::string_view word) { return std::ranges::equal(text, word, same); }
bool contains(std::string_view text, std::string_view word) { return !std::ranges::search(text, word, same).empty(); }

}  // namespace

effect effect_of(std::string_view text) {
  const auto begin = text.find_first_not_of(between_words);
  if (begin == std::string_view::npos) return effect::anything;
  text.remove_prefix(begin);
  const auto first = text.substr(0, text.find_first_of(between_words));
  if (is(first, "SHOW")) return effect::reads;
  if (is(first, "SELECT")) {
    const bool counts_up = contains(text, "NEXT") || contains(text, "SETVAL");
    return counts_up || contains(text, "INTO") ? effect::anything : effect::reads;
  }
  constexpr std::array<std::string_view, 5> of_rows{"INSERT", "UPDATE", "DELETE", "REPLACE", "WITH"};
  return std::ranges::any_of(of_rows, [first](auto word) { return is(first, word); }) ? effect::rows : effect::anything;
}

}  // namespace HOLDFAST_NAMESPACE::sql::mysql
