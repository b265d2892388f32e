#include "sql/postgres_errors.hpp"

#include "sql/unfilled_column.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>
#include <system_error>

namespace HOLDFAST_NAMESPACE::sql::postgres {

namespace {

struct meaning {
  std::string_view state;  ///< an SQLSTATE, or its first two characters: a class
  errc code;
  bool transient;
  std::string_view words;  ///< what to do; or, from '=' on, all there is to say
};

// The first that fits counts, so a class stands after its members. A message of class 22 can quote the value that was refused, which
// may be a payload: there, the words are ours.
constexpr std::array meanings{
    meaning{"08", errc::unavailable, true, "the connection failed; try again"},
    meaning{"0A000", errc::grammar, false, ""},
    meaning{"21000", errc::duplicate, false, "two rows of one batch have the same key; send one of them"},
    meaning{"22001", errc::too_large, false, "use a longer column, or TEXT"},
    meaning{"22003", errc::out_of_range, false, "=a number is outside the range of its column"},
    meaning{"22008", errc::out_of_range, false, "=a time is outside the range of its column"},
    meaning{"22021", errc::invalid_argument, false,
            "=text is not well-formed UTF-8, or not in the encoding of the database; store it as bytes"},
    meaning{"22P05", errc::invalid_argument, false,
            "=text has a character that the encoding of the database lacks; use a database in UTF8"},
    meaning{"22", errc::invalid_argument, false, "=the server refused a value (what it said is left out, since it may repeat the value)"},
    // No value of an entry is at fault, but the table. (A tombstone leaves two of our own columns empty: the store sees to that.)
    meaning{"23502", errc::missing_object, false, unfilled_column},
    meaning{"23505", errc::duplicate, false, ""},
    meaning{"23", errc::invalid_argument, false, ""},
    meaning{"25006", errc::unavailable, true, "the server is read-only; connect to the primary (target_session_attrs=read-write)"},
    meaning{"25P02", errc::invalid_argument, false, "an earlier statement of the transaction failed; roll it back"},
    meaning{"25P03", errc::unavailable, true, "the transaction was idle for longer than the server allows; nothing was changed"},
    meaning{"26000", errc::unavailable, true, "the server forgot a prepared statement; try again"},
    meaning{"28", errc::permission, false, "check the user, the password and the server's pg_hba.conf"},
    meaning{"3D000", errc::missing_object, false, "create the database, or correct its name"},
    meaning{"3F000", errc::missing_object, false, "create the schema, or correct the prefix of the table"},
    meaning{"40", errc::unavailable, true, "try again"},
    meaning{"42501", errc::permission, false, "grant it to the user of the connection"},
    meaning{"42703", errc::missing_object, false,
            "the column is missing; see what is needed with: holdfast store schema --dialect postgresql"},
    meaning{"42P01", errc::missing_object, false,
            "the table is missing; create it with --create-schema (in C++: .create_schema), or see: holdfast store schema --dialect "
            "postgresql"},
    meaning{"42", errc::grammar, false, ""},
    meaning{"53100", errc::unavailable, true, "the server's disk is full; nothing was written"},
    meaning{"53300", errc::unavailable, true, "raise max_connections, or make the pool smaller"},
    meaning{"53", errc::unavailable, true, "the server lacks resources; try again later"},
    meaning{"54", errc::too_large, false, "the statement is above a limit of the server; send less at once"},
    meaning{"55006", errc::unavailable, true, "try again"},
    meaning{"55P03", errc::unavailable, true, "try again"},
    meaning{"55", errc::unavailable, false, ""},
    meaning{"57014", errc::timeout, true, "nothing was changed"},
    meaning{"57", errc::unavailable, true, "the server is stopping or starting; try again"},
    meaning{"58", errc::unavailable, true, "look at the server's log"},
};

/// One line, of a length that fits a log.
std::string tidy(std::string_view text) {
  constexpr std::size_t longest = 400;
  std::string result(text.substr(0, longest));
  if (text.size() > longest) {
    while (!result.empty() && (static_cast<unsigned char>(result.back()) & 0xC0U) == 0x80U) result.pop_back();
    if (!result.empty() && static_cast<unsigned char>(result.back()) >= 0xC0U) result.pop_back();
    result += "...";
  }
  std::replace_if(result.begin(), result.end(), [](unsigned char c) { return c < 0x20U || c == 0x7FU; }, ' ');
  return result;
}

/// What libpq and the server write contains no password, unless it was put in a wrong place or is an ordinary word. Such a text is not
/// shown at all: a gap in it would tell where the password was.
std::string_view without(std::string_view text, std::string_view secret, std::string_view otherwise) {
  return !secret.empty() && text.find(secret) != std::string_view::npos ? otherwise : text;
}

/// Five letters and digits, at least one of them a digit: the severity before it may have five letters, too.
bool is_state(std::string_view text) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  const auto is_fit = [&](char c) { return is_digit(c) || (c >= 'A' && c <= 'Z'); };
  return text.size() == 5 && std::all_of(text.begin(), text.end(), is_fit) && std::any_of(text.begin(), text.end(), is_digit);
}

/// The server's own part of a line: `...failed: FATAL:  28P01: password authentication failed for user "x"`. The words around it are
/// in the language of the process, the code is not.
std::optional<server_message> server_part(std::string_view line) {
  for (auto at = line.find(": "); at != std::string_view::npos; at = line.find(": ", at + 1)) {
    auto rest = line.substr(at + 2);
    rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
    if (rest.size() > 7 && rest.substr(5, 2) == ": " && is_state(rest.substr(0, 5)))
      return server_message{.sqlstate = rest.substr(0, 5), .text = rest.substr(7)};
  }
  return std::nullopt;
}

}  // namespace

error from_server(const server_message& from) {
  error::details more{.backend_code = std::string(from.sqlstate)};
  // The table was altered after the statement was prepared. By name of the function, since the text may be in any language.
  if (from.sqlstate == "0A000" && from.function == "RevalidateCachedQuery") {
    more.transient = true;
    return {errc::unavailable, "the table has changed since the statement was prepared; try again", more};
  }
  // PgBouncer's own words, in the one code that it has for everything: this one does not pass by itself, and is nobody's argument.
  if (from.sqlstate == "08P01" && from.text.starts_with("unsupported startup parameter")) {
    return {errc::permission, tidy(from.text) + "; if this is PgBouncer, set ignore_startup_parameters = options in its configuration",
            more};
  }
  more.in_doubt = from.sqlstate == "08007" || from.sqlstate == "40003";
  const auto found = std::find_if(meanings.begin(), meanings.end(), [&](const meaning& m) { return from.sqlstate.starts_with(m.state); });
  if (found == meanings.end()) return {errc::unavailable, "PostgreSQL says: " + tidy(from.text), more};
  more.transient = found->transient;
  if (found->words.starts_with('=')) return {found->code, std::string(found->words.substr(1)), more};
  auto message = tidy(from.text);
  if (!found->words.empty()) message += "; " + std::string(found->words);
  return {found->code, message, more};
}

error connection_lost(bool in_doubt, std::string_view sqlstate, std::string_view server) {
  return {errc::unavailable,
          "the connection to " + std::string(server) +
              (in_doubt ? " was lost before the answer came: the statement may have taken effect" : " is lost; nothing was changed"),
          {.backend_code = std::string(sqlstate), .transient = true, .in_doubt = in_doubt}};
}

error out_of_time(std::chrono::milliseconds limit, bool in_doubt, std::string_view server) {
  return {errc::timeout,
          std::string(server) + " did not answer within " + std::to_string(limit.count()) +
              (in_doubt ? " ms: the statement may have taken effect" : " ms; nothing was changed"),
          {.transient = true, .in_doubt = in_doubt}};
}

error answer_too_large(std::size_t most, bool in_doubt, std::string_view server) {
  return {errc::too_large,
          "the answer of " + std::string(server) + " needs more than " + std::to_string(most >> 20U) +
              " MiB of memory; ask for fewer or smaller rows at once" + (in_doubt ? "; the statement may have taken effect" : ""),
          {.in_doubt = in_doubt}};
}

error could_not_connect(const std::string& where, std::string_view account, std::string_view secret, std::string_view server) {
  // With several addresses the last one's answer counts, and an answer counts more than silence; so does any reason more than nobody there:
  // `localhost` is tried as ::1, too, where a server often does not listen.
  const std::string nobody = std::system_category().message(ECONNREFUSED);
  std::string_view told;
  std::optional<server_message> answer;
  while (!account.empty()) {
    const auto end = account.find('\n');
    const auto line = account.substr(0, end);
    if (told.empty() || (line.find(" failed: ") != std::string_view::npos && !line.ends_with(nobody))) told = line;
    if (const auto part = server_part(line)) answer = part;
    account.remove_prefix(end == std::string_view::npos ? account.size() : end + 1);
  }
  const std::string start = "cannot connect to " + std::string(server) + " at " + where + ": ";
  if (!answer) {
    // Where it happened was said already; in another language it is said twice.
    if (const auto reason = told.find(" failed: "); reason != std::string_view::npos) told.remove_prefix(reason + 9);
    return {errc::unavailable, start + tidy(without(told, secret, "no answer")), {.transient = true}};
  }
  answer->text = without(answer->text, secret, "refused");
  const auto known = from_server(*answer);
  return {known.code(), start + known.message(), {.backend_code = known.backend_code(), .transient = known.transient()}};
}

}  // namespace HOLDFAST_NAMESPACE::sql::postgres
