#include "sql/odbc_errors.hpp"

#include "sql/unfilled_column.hpp"

#include <algorithm>
#include <array>
#include <string_view>

namespace HOLDFAST_NAMESPACE::sql::odbc {

namespace {

struct kind {
  errc code;
  bool transient = false;
  std::string_view words{};  ///< what to do; or, from '=' on, all there is to say: the message may repeat a value
};
constexpr kind duplicate{errc::duplicate, false, "=the key is there already"};
constexpr kind there{errc::duplicate};  // a table; the server names it
constexpr kind busy{errc::unavailable, true, "try again"};
constexpr kind too_long{errc::too_large, false, "=a value is too long for its column; use a longer one"};
constexpr kind no_table{
    errc::missing_object, false,
    "the table or column is missing; create it with --create-schema (in C++: .create_schema), or see: holdfast store schema"};
constexpr kind refused{errc::permission, false, "grant it to the user of the connection"};
constexpr kind grammar{errc::grammar};
constexpr kind read_only{errc::unavailable, true, "the database is read-only; connect to the primary"};
constexpr kind full{errc::unavailable, true, "the server has no room left; nothing was written"};
constexpr kind not_this{errc::invalid_argument, false, "=the database refused a row: a rule of the table"};
constexpr kind not_filled{errc::missing_object, false, unfilled_column_alone};

struct by_number {
  dialect_id dialect;
  long native;
  kind means;
};
constexpr auto maria = dialect_id::mariadb;
constexpr auto server = dialect_id::sqlserver;
constexpr auto oracle = dialect_id::oracle;
constexpr auto lite = dialect_id::sqlite;
constexpr std::array numbers{
    by_number{maria, 1062, duplicate},  by_number{maria, 1586, duplicate},
    by_number{maria, 1205, busy},       by_number{maria, 1213, busy},
    by_number{maria, 1020, busy},       by_number{maria, 1406, too_long},
    by_number{maria, 1146, no_table},   by_number{maria, 1054, no_table},
    by_number{maria, 1049, no_table},   by_number{maria, 1142, refused},
    by_number{maria, 1064, grammar},    by_number{maria, 1290, read_only},
    by_number{maria, 1114, full},       by_number{maria, 1048, not_filled},
    by_number{server, 2627, duplicate}, by_number{server, 2601, duplicate},
    by_number{server, 1205, busy},      by_number{server, 1222, busy},
    by_number{server, 3960, busy},      by_number{server, 2628, too_long},
    by_number{server, 8152, too_long},  by_number{server, 208, no_table},
    by_number{server, 207, no_table},   by_number{server, 229, refused},
    by_number{server, 102, grammar},    by_number{server, 156, grammar},
    by_number{server, 10713, grammar},  by_number{server, 3906, read_only},
    by_number{server, 1105, full},      by_number{server, 9002, full},
    by_number{server, 515, not_filled}, by_number{oracle, 1, duplicate},
    by_number{oracle, 60, busy},        by_number{oracle, 54, busy},
    by_number{oracle, 8177, busy},      by_number{oracle, 12899, too_long},
    by_number{oracle, 1461, too_long},  by_number{oracle, 942, no_table},
    by_number{oracle, 904, no_table},   by_number{oracle, 1031, refused},
    by_number{oracle, 900, grammar},    by_number{oracle, 933, grammar},
    by_number{oracle, 907, grammar},    by_number{oracle, 16000, read_only},
    by_number{oracle, 1653, full},      by_number{oracle, 1400, not_filled},
    by_number{lite, 5, busy},           by_number{lite, 6, busy},
    by_number{lite, 8, read_only},      by_number{lite, 13, full},
    by_number{server, 2714, there},     by_number{maria, 1364, not_filled},
    by_number{oracle, 1691, full},      by_number{oracle, 1407, not_filled},
};

struct by_state {
  std::string_view state;  ///< or its beginning
  kind means;
};
constexpr std::array states{
    by_state{"08", {errc::unavailable, true, "the connection failed; try again"}},
    by_state{"22001", too_long},
    by_state{"22003", {errc::out_of_range, false, "=a number is outside the range of its column"}},
    by_state{"22",
             {errc::invalid_argument, false, "=the database refused a value (what it said is left out, since it may repeat the value)"}},
    by_state{"23505", duplicate},
    by_state{"23502", not_filled},
    by_state{"23503", not_this},
    by_state{"23514", not_this},
    by_state{"23", duplicate},  // most drivers know only this one
    by_state{"25006", read_only},
    by_state{"25P02", {errc::invalid_argument, false, "an earlier statement of the transaction failed; roll it back"}},
    by_state{"28", {errc::permission, false, "check the user and the password"}},
    by_state{"40", busy},
    by_state{"42501", refused},
    by_state{"42P01", no_table},
    by_state{"42703", no_table},
    by_state{"42S02", no_table},
    by_state{"42S22", no_table},
    by_state{"3F000", no_table},
    by_state{"42", grammar},
    by_state{"37", grammar},
    by_state{"53", full},
    by_state{"55P03", busy},
    by_state{"57014", {errc::timeout, true, "nothing was changed"}},
    by_state{"57", {errc::unavailable, true, "the server is stopping or starting; try again"}},
    by_state{"S0002", no_table},
    by_state{"S1000", {errc::unavailable, false}},
    by_state{"HY001", {errc::unavailable, true, "the driver has no memory left"}},
    by_state{"HY008", {errc::timeout, true, "nothing was changed"}},
};

/// SQLite's driver has one SQLSTATE, and one number for very different things.
const kind* by_words(std::string_view text) {
  static constexpr std::array<std::pair<std::string_view, kind>, 7> words{{{"UNIQUE constraint", duplicate},
                                                                           {"PRIMARY KEY", duplicate},
                                                                           {"NOT NULL constraint", not_filled},
                                                                           {"constraint failed", not_this},
                                                                           {"no such table", no_table},
                                                                           {"no such column", no_table},
                                                                           {"syntax error", grammar}}};
  const auto* const found =
      std::find_if(words.begin(), words.end(), [text](const auto& each) { return text.find(each.first) != std::string_view::npos; });
  return found == words.end() ? nullptr : &found->second;
}

const kind* kind_of(const diagnostic& said, dialect_id dialect) {
  if (dialect == dialect_id::mysql) dialect = dialect_id::mariadb;
  const auto* const numbered = std::find_if(numbers.begin(), numbers.end(),
                                            [&](const by_number& each) { return each.dialect == dialect && each.native == said.native; });
  if (numbered != numbers.end()) return &numbered->means;
  const auto* const named =
      std::find_if(states.begin(), states.end(), [&](const by_state& each) { return said.state.starts_with(each.state); });
  if (named != states.end()) return &named->means;
  return dialect == dialect_id::sqlite ? by_words(said.text) : nullptr;
}

/// One line, without the names of driver, manager and server in front of it.
std::string tidy(std::string_view text) {
  constexpr std::size_t longest = 300;
  while (text.starts_with('[')) {
    const auto end = text.find(']');
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  std::string result(text.substr(0, longest));
  if (text.size() > longest) {
    while (!result.empty() && static_cast<unsigned char>(result.back()) >= 0x80U) result.pop_back();
    result += "...";
  }
  std::replace_if(result.begin(), result.end(), [](unsigned char c) { return c < 0x20U || c == 0x7FU; }, ' ');
  return result;
}

const diagnostic& decisive(const std::vector<diagnostic>& said) {
  static const diagnostic nothing{.state = "HY000", .text = "the driver gave no reason"};
  if (said.empty()) return nothing;
  const auto found = std::find_if(said.begin(), said.end(), [](const diagnostic& each) { return !each.state.starts_with("01"); });
  return found == said.end() ? said.front() : *found;
}

}  // namespace

error to_error(const std::vector<diagnostic>& said, const circumstances& around) {
  const auto& one = decisive(said);
  error::details more{.backend_code = one.state + (one.native != 0 ? "/" + std::to_string(one.native) : "")};
  if (one.state == "HYT00" || one.state == "HYT01") {
    more.transient = true;
    more.in_doubt = around.in_doubt;
    return {errc::timeout, "the database did not answer in time", more};
  }
  if (around.lost || one.state.starts_with("08")) {
    more.transient = true;
    more.in_doubt = around.in_doubt;
    return {errc::unavailable,
            around.in_doubt ? "the connection to the database was lost before the answer came: the statement may have taken effect"
                            : "the connection to the database is lost; nothing was changed",
            more};
  }
  const bool secret = !around.secret.empty() && one.text.find(around.secret) != std::string::npos;
  auto message = secret ? std::string("the driver's words are not shown: they contain the password") : tidy(one.text);
  const auto* const means = kind_of(one, around.dialect);
  if (means == nullptr) return {errc::unavailable, "the database says: " + message, more};
  more.transient = means->transient;
  if (means->words.starts_with('=')) return {means->code, std::string(means->words.substr(1)), more};
  if (!means->words.empty()) message += "; " + std::string(means->words);
  return {means->code, message, more};
}

error could_not_connect(const std::vector<diagnostic>& said, const std::string& secret) {
  const auto& one = said.empty() ? decisive(said) : said.front();
  error::details more{.backend_code = one.state + (one.native != 0 ? "/" + std::to_string(one.native) : "")};
  const bool hidden = !secret.empty() && one.text.find(secret) != std::string::npos;
  const std::string text = hidden ? "the driver's words are not shown: they contain the password" : tidy(one.text);
  if (one.state == "IM002" || one.state == "01000" || one.state == "IM003") {
    return {errc::missing_object,
            "no such ODBC driver or data source: " + text + "; odbcinst -q -d lists the drivers, odbcinst -q -s the sources", more};
  }
  if (one.state.starts_with("28") || one.native == 18456 || one.native == 1045 || one.native == 1017 ||
      one.text.find("password authentication failed") != std::string::npos)
    return {errc::permission, "cannot connect through ODBC: " + text + "; check the user and the password", more};
  more.transient = true;
  return {errc::unavailable, "cannot connect through ODBC: " + text, more};
}

error out_of_time(std::chrono::milliseconds limit, bool in_doubt) {
  return {errc::timeout,
          "the ODBC driver did not return within " + std::to_string(limit.count()) +
              (in_doubt ? " ms: the statement may have taken effect" : " ms; nothing was changed"),
          {.transient = true, .in_doubt = in_doubt}};
}

}  // namespace HOLDFAST_NAMESPACE::sql::odbc
