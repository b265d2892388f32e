#include "sql/mysql_errors.hpp"

#include "sql/unfilled_column.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>
#include <optional>

namespace HOLDFAST_NAMESPACE::sql::mysql {

namespace {

/// What happens to the text of the server.
enum class text : std::uint8_t {
  shown,    ///< it has names in it, no values
  blanked,  ///< what stands in quotes may be a value
  dropped   ///< it repeats values
};

struct known {
  unsigned number;
  errc code;
  bool transient = false;
  text show = text::blanked;
  std::string_view advice{};
};

constexpr bool again = true;
constexpr bool never = false;

constexpr std::string_view locked = "the row or table is locked by another transaction; try again";
constexpr std::string_view lost = "the connection to the database was lost";
constexpr std::string_view read_only = "the server is read-only; write to the primary";
constexpr std::string_view disk_full = "the server has no space left; free some on its disk";
constexpr std::string_view crowded = "the server takes no more connections; raise its limits or make the pool smaller";
constexpr std::string_view stopping = "the server is shutting down";
constexpr std::string_view prepare_again = "the table changed under a prepared statement; try again";
constexpr std::string_view taken = "the key exists already";
constexpr std::string_view exists = "it exists already";
constexpr std::string_view too_long = "the value is too long for its column; make the column larger";
constexpr std::string_view too_big = "the statement is larger than the server takes; raise its max_allowed_packet";
constexpr std::string_view not_understood = "the server does not understand the statement";
constexpr std::string_view no_table =
    "the table is missing (names are case-sensitive); create it with --create-schema (in C++: .create_schema), or see: holdfast store "
    "schema "
    "--dialect mariadb, or mysql";
constexpr std::string_view no_column = "a column is missing; compare the table with: holdfast store schema --dialect mysql";
constexpr std::string_view no_database = "the database is missing; create it, or correct its name";
constexpr std::string_view no_privilege = "the user lacks a privilege; grant it";
constexpr std::string_view no_login = "the server refuses the login; check user, password and host";
constexpr std::string_view no_plugin = "the server asks for a login method that this client does not have";
constexpr std::string_view no_cleartext =
    "the server asks for a login method that may tell it the password, such as caching_sha2_password, and it was not verified; connect "
    "with "
    "verified TLS (tls=1, and tls_ca for a private authority), or add allow_cleartext_password=1 to the URL if the network is trusted";
constexpr std::string_view ended = "the server ended the statement at its own limit";
constexpr std::string_view killed = "the server killed the connection";
constexpr std::string_view only_statements =
    "the server's binary log takes statements only (binlog_format = STATEMENT), so it refuses to write; set it to ROW or MIXED";
constexpr std::string_view bad_text = "the text is not well-formed UTF-8, or has characters that the column cannot keep";
constexpr std::string_view refused_value = "a value does not fit its column";

/// Sorted by number. What stands here has been seen to matter; the rest is judged by its SQLSTATE.
constexpr std::array table{
    known{3, errc::unavailable, never},
    known{20, errc::unavailable, again, text::blanked, disk_full},
    known{1007, errc::duplicate, never, text::shown, exists},
    known{1020, errc::unavailable, again, text::blanked, "the row was changed by another transaction; try again"},
    known{1021, errc::unavailable, again, text::blanked, disk_full},
    known{1022, errc::duplicate, never, text::dropped, taken},
    known{1026, errc::unavailable, never},
    known{1030, errc::unavailable, never},
    known{1037, errc::unavailable, again, text::blanked, "the server is out of memory"},
    known{1038, errc::unavailable, again, text::blanked, "the server is out of memory"},
    known{1040, errc::unavailable, again, text::blanked, crowded},
    known{1041, errc::unavailable, again, text::blanked, "the server is out of memory"},
    known{1044, errc::permission, never, text::shown, no_privilege},
    known{1045, errc::permission, never, text::shown, no_login},
    known{1046, errc::missing_object, never, text::shown, "no database is selected; name one"},
    known{1047, errc::unavailable, again, text::blanked, "the node is not ready"},
    known{1048, errc::missing_object, never, text::shown, unfilled_column},
    known{1049, errc::missing_object, never, text::shown, no_database},
    known{1050, errc::duplicate, never, text::shown, exists},
    known{1051, errc::missing_object, never, text::shown, no_table},
    known{1053, errc::unavailable, again, text::blanked, stopping},
    known{1054, errc::missing_object, never, text::shown, no_column},
    known{1060, errc::duplicate, never, text::shown, exists},
    known{1061, errc::duplicate, never, text::shown, exists},
    known{1062, errc::duplicate, never, text::dropped, taken},
    known{1064, errc::grammar, never, text::shown, not_understood},
    known{1065, errc::grammar, never, text::shown, not_understood},
    known{1071, errc::too_large, never, text::shown, "the key is too long for an index of this server"},
    known{1072, errc::missing_object, never, text::shown, no_column},
    known{1077, errc::unavailable, again, text::blanked, stopping},
    known{1079, errc::unavailable, again, text::blanked, stopping},
    known{1091, errc::missing_object, never, text::shown, "it is missing"},
    known{1109, errc::missing_object, never, text::shown, no_table},
    known{1114, errc::unavailable, again, text::shown, disk_full},
    known{1115, errc::grammar, never, text::shown, not_understood},
    known{1118, errc::too_large, never, text::shown, "the row is too long for its table"},
    known{1129, errc::unavailable, never, text::shown, "the server blocks this host; unblock it with FLUSH HOSTS"},
    known{1130, errc::permission, never, text::shown, no_login},
    known{1142, errc::permission, never, text::shown, no_privilege},
    known{1143, errc::permission, never, text::shown, no_privilege},
    known{1146, errc::missing_object, never, text::shown, no_table},
    known{1149, errc::grammar, never, text::shown, not_understood},
    known{1152, errc::unavailable, again, text::blanked, lost},
    known{1153, errc::too_large, never, text::blanked, too_big},
    known{1158, errc::unavailable, again, text::blanked, lost},
    known{1159, errc::unavailable, again, text::blanked, lost},
    known{1160, errc::unavailable, again, text::blanked, lost},
    known{1161, errc::unavailable, again, text::blanked, lost},
    known{1162, errc::too_large, never, text::blanked, too_big},
    known{1169, errc::duplicate, never, text::dropped, taken},
    known{1176, errc::missing_object, never, text::shown, "an index is missing"},
    known{1193, errc::grammar, never, text::shown, not_understood},
    known{1203, errc::unavailable, again, text::shown, crowded},
    known{1205, errc::unavailable, again, text::blanked, locked},
    known{1213, errc::unavailable, again, text::blanked, "the transaction was rolled back to end a deadlock; try again"},
    known{1226, errc::unavailable, again, text::shown, crowded},
    known{1227, errc::permission, never, text::shown, no_privilege},
    known{1235, errc::grammar, never, text::shown, not_understood},
    known{1243, errc::unavailable, again, text::blanked, prepare_again},
    known{1251, errc::permission, never, text::shown, no_plugin},
    known{1264, errc::out_of_range, never, text::shown, refused_value},
    known{1273, errc::grammar, never, text::shown, not_understood},
    known{1290, errc::unavailable, again, text::shown, read_only},
    known{1300, errc::ill_formed_text, never, text::dropped, bad_text},
    known{1301, errc::too_large, never, text::blanked, too_big},
    known{1305, errc::grammar, never, text::shown, not_understood},
    known{1317, errc::timeout, again, text::blanked, "the statement was interrupted on the server"},
    known{1364, errc::missing_object, never, text::shown, unfilled_column},
    known{1366, errc::invalid_argument, never, text::dropped, refused_value},
    known{1390, errc::too_large, never, text::blanked, "the statement has more parameters than the server takes"},
    known{1406, errc::too_large, never, text::shown, too_long},
    known{1412, errc::unavailable, again, text::blanked, prepare_again},
    known{1524, errc::permission, never, text::shown, no_plugin},
    known{1586, errc::duplicate, never, text::dropped, taken},
    known{1613, errc::unavailable, again, text::blanked, locked},
    known{1614, errc::unavailable, again, text::blanked, locked},
    known{1615, errc::unavailable, again, text::blanked, prepare_again},
    known{1665, errc::unavailable, never, text::dropped, only_statements},
    known{1698, errc::permission, never, text::shown, no_login},
    known{1792, errc::unavailable, again, text::blanked, read_only},
    known{1820, errc::permission, never, text::blanked, "the password has expired; set a new one"},
    known{1836, errc::unavailable, again, text::blanked, read_only},
    known{1859, errc::duplicate, never, text::dropped, taken},
    known{1862, errc::permission, never, text::blanked, "the password has expired; set a new one"},
    known{1874, errc::unavailable, again, text::blanked, read_only},
    known{1878, errc::unavailable, again, text::blanked, disk_full},
    known{1927, errc::timeout, again, text::blanked, killed},
    known{1932, errc::missing_object, never, text::shown, no_table},
    known{1969, errc::timeout, again, text::blanked, ended},
    known{2002, errc::unavailable, again, text::shown, "nobody answers there"},
    known{2003, errc::unavailable, again, text::shown, "nobody answers there"},
    known{2005, errc::unavailable, again, text::shown, "the host is not known"},
    known{2006, errc::unavailable, again, text::blanked, lost},
    known{2012, errc::unavailable, again, text::blanked, lost},
    known{2013, errc::unavailable, again, text::blanked, lost},
    known{2014, errc::internal, never, text::shown, "statements were mixed up"},
    known{2020, errc::too_large, never, text::blanked, too_big},
    known{2026, errc::unavailable, again, text::shown, "the encrypted connection was lost"},
    known{2027, errc::unavailable, again, text::blanked, lost},
    known{2055, errc::unavailable, again, text::blanked, lost},
    known{2058, errc::permission, never, text::shown, no_plugin},
    known{2059, errc::permission, never, text::shown, no_plugin},
    known{2061, errc::permission, never, text::shown, no_login},
    known{3024, errc::timeout, again, text::blanked, ended},
    known{3100, errc::unavailable, again, text::blanked, "the cluster refused the transaction; try again"},
    known{3118, errc::permission, never, text::shown, "the account is locked"},
    known{3170, errc::too_large, never, text::blanked, "the statement needs more memory than the server allows"},
    known{3572, errc::unavailable, again, text::blanked, locked},
    known{3854, errc::ill_formed_text, never, text::dropped, bad_text},
    known{3988, errc::ill_formed_text, never, text::dropped, bad_text},
    known{4031, errc::unavailable, again, text::blanked, "the server closed the idle connection"},
    known{4151, errc::permission, never, text::shown, "the account is locked"},
    known{5010, errc::permission, never, text::dropped, no_cleartext},  // libmariadb 3.3 reads the name from a buffer that it used again
};

static_assert(std::ranges::is_sorted(table, {}, &known::number));

/// The first two characters of an SQLSTATE say which kind of trouble it is; the numbers are too many for a table.
known judge_by_state(const server_message& from) {
  known made{.number = from.number, .code = errc::unavailable};
  const auto kind = from.sqlstate.substr(0, 2);
  if (kind == "08" || kind == "40") made.transient = true;
  if (kind == "22" || kind == "23") made.code = errc::invalid_argument;
  if (kind == "28") made.code = errc::permission;
  if (kind == "42") made.code = errc::grammar;
  if (made.code == errc::invalid_argument) made.advice = refused_value;
  if (made.code == errc::grammar) made.advice = not_understood;
  if (made.advice.empty()) made.advice = "the server refuses the statement";
  return made;
}

bool says_disk_full(std::string_view said) {
  return said.find(" 28 ") != std::string_view::npos || said.find(" 28)") != std::string_view::npos;
}

known judge(const server_message& from) {
  const auto* const found = std::ranges::lower_bound(table, from.number, {}, &known::number);
  if (found == table.end() || found->number != from.number) return judge_by_state(from);
  known made = *found;
  // One number, two meanings: text that is no text, and anything else that is not what the column holds.
  if (from.number == 1366 && from.text.starts_with("Incorrect string value")) {
    made.code = errc::ill_formed_text;
    made.advice = bad_text;
  }
  // The storage engine and the file layer report what the operating system told them; 28 is "no space left on device".
  if ((from.number == 3 || from.number == 1026 || from.number == 1030) && says_disk_full(from.text)) {
    made.transient = true;
    made.advice = disk_full;
  }
  if (made.advice.empty()) made.advice = "the server cannot read or write its files";
  return made;
}

/// The name of the index at the end of "Duplicate entry '...' for key 'PRIMARY'": the only part that is no value.
std::string index_of(std::string_view duplicate) {
  constexpr std::string_view before = "for key '";
  const auto at = duplicate.rfind(before);
  if (at == std::string_view::npos) return {};
  auto name = duplicate.substr(at + before.size());
  if (!name.ends_with('\'')) return {};
  name.remove_suffix(1);
  const bool plain = std::ranges::all_of(name, [](unsigned char c) { return std::isalnum(c) != 0 || c == '_' || c == '.' || c == '$'; });
  return plain ? std::string(name) : std::string();
}

/// Keeps the words and drops what is quoted: it may be a value.
std::string without_quoted(std::string_view from) {
  std::string made;
  bool inside = false;
  for (const char c : from) {
    if (c == '\'') {
      made += inside ? "...'" : "'";
      inside = !inside;
    } else if (!inside) {
      made += c;
    }
  }
  if (inside) made += "...'";
  return made;
}

/// "what it means and what to do (1146: what the server said)"
std::string compose(const known& judged, const server_message& from, std::string_view secret) {
  std::string message(judged.advice);
  std::string said;
  switch (judged.show) {
    case text::shown:
      said = from.text;
      break;
    case text::blanked:
      said = without_quoted(from.text);
      break;
    case text::dropped:
      said = index_of(from.text);
      break;
  }
  if (!secret.empty() && said.find(secret) != std::string::npos) said.clear();
  message += " (" + std::to_string(from.number);
  if (!said.empty()) message += ": " + said;
  message += ")";
  return message;
}

constexpr std::string_view doubt = "; it is not known whether the statement took effect";

}  // namespace

bool ends_connection(unsigned number) noexcept {
  constexpr std::array numbers{1053U, 1077U, 1079U, 1152U, 1153U, 1158U, 1159U, 1160U, 1161U, 1927U,
                               2006U, 2012U, 2013U, 2014U, 2020U, 2026U, 2027U, 2055U, 4031U};
  return std::ranges::find(numbers, number) != numbers.end();
}

bool ends_transaction(unsigned number) noexcept {
  constexpr std::array numbers{1020U, 1047U, 1205U, 1213U, 1613U, 1614U, 3100U};
  return std::ranges::find(numbers, number) != numbers.end();
}

bool ends_statement(unsigned number) noexcept { return number == 1243 || number == 1412 || number == 1615; }

error from_server(const server_message& from, bool sent_change, std::string_view secret) {
  const auto judged = judge(from);
  // These end the connection, but as answers: the statement was refused before it ran.
  const bool refused = from.number == 1153 || from.number == 2020 || from.number == 4031;
  const bool in_doubt = sent_change && ends_connection(from.number) && !refused;
  auto message = compose(judged, from, secret);
  if (in_doubt) message += doubt;
  return {
      judged.code, message, {.path = {}, .backend_code = std::to_string(from.number), .transient = judged.transient, .in_doubt = in_doubt}};
}

error out_of_time(std::chrono::milliseconds limit, bool sent_change) {
  auto message = "the database did not answer within " + std::to_string(limit.count()) + " ms";
  if (sent_change) message += doubt;
  return {errc::timeout, message, {.path = {}, .backend_code = {}, .transient = true, .in_doubt = sent_change}};
}

error answer_too_large(std::size_t most, bool sent_change) {
  auto message =
      "the answer of the server needs more than " + std::to_string(most >> 20U) + " MiB of memory; ask for fewer or smaller rows at once";
  if (sent_change) message += doubt;
  return {errc::too_large, message, {.path = {}, .backend_code = {}, .transient = false, .in_doubt = sent_change}};
}

error hung_up() {
  return {errc::unavailable,
          "the server closed the connection while it was idle; nothing was sent",
          {.path = {}, .backend_code = "2006", .transient = true, .in_doubt = false}};
}

error already_broken() {
  return {errc::unavailable,
          "the connection is broken by an earlier failure; use another one",
          {.path = {}, .backend_code = "2006", .transient = true, .in_doubt = false}};
}

error could_not_connect(const std::string& where, const server_message& from, std::string_view secret) {
  auto judged = judge(from);
  if (from.number == 2026) {
    judged.transient = false;
    judged.advice = "no encrypted connection; check tls_ca and the host name, and that the server has TLS";
  }
  return {judged.code,
          "cannot connect to " + where + ": " + compose(judged, from, secret),
          {.path = {}, .backend_code = std::to_string(from.number), .transient = judged.transient, .in_doubt = false}};
}

error without_tls(const std::string& where) {
  return {errc::unavailable,
          "cannot connect to " + where +
              ": the server offers no TLS, and the connection must be encrypted; set up TLS on the server, or write tls=0 in the URL to "
              "connect without encryption (docs/tls.md)",
          {.path = {}, .backend_code = "2026", .transient = false, .in_doubt = false}};
}

error not_a_server(const std::string& where) {
  return {errc::unavailable,
          "cannot connect to " + where +
              ": what it sends first is neither a greeting in version 10 of MySQL's protocol nor an error; check host and port, and that "
              "nothing between here and the server changes what they say",
          {.path = {}, .backend_code = {}, .transient = false, .in_doubt = false}};
}

error could_not_connect_in_time(const std::string& where, std::chrono::milliseconds limit) {
  return {errc::timeout,
          "cannot connect to " + where + ": nobody answered within " + std::to_string(limit.count()) + " ms",
          {.path = {}, .backend_code = {}, .transient = true, .in_doubt = false}};
}

}  // namespace HOLDFAST_NAMESPACE::sql::mysql
