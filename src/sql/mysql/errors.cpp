#include "sql/mysql/errors.hpp"

#include "sql/error_class.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>
#include <iterator>

namespace HOLDFAST_NAMESPACE::detail::sql::mysql {

namespace {

/// Which part of the server's text a message shows. Text in quotes may be a value.
enum class shows : std::uint8_t {
  all,       ///< the quotes contain names only
  unquoted,  ///< everything outside of quotes
  index,     ///< only the name of the violated index
  nothing
};

/// A row of the table. Differs from error_class in the parts of the server's text that are shown.
struct failure_class {
  unsigned number;
  errc code;
  bool transient = permanent;
  shows text = shows::unquoted;
  std::string_view advice{};
  bool is_not_null_violation = false;
};

constexpr std::string_view locked = "the row or table is locked by another transaction; try again";
constexpr std::string_view lost = "the connection to the database was lost";
constexpr std::string_view read_only = "the server is read-only; write to the primary";
constexpr std::string_view disk_full = "the server has no space left; free some on its disk";
constexpr std::string_view crowded =
    "the server takes no more connections; raise its limits or make the pool smaller";
constexpr std::string_view stopping = "the server is shutting down";
constexpr std::string_view prepare_again =
    "the table changed under a prepared statement; try again";
constexpr std::string_view duplicate_key = "the key exists already";
constexpr std::string_view exists = "it exists already";
constexpr std::string_view too_long =
    "the value is too long for its column; make the column larger";
constexpr std::string_view too_big =
    "the statement is larger than the server takes; raise its max_allowed_packet";
constexpr std::string_view not_understood = "the server does not understand the statement";
constexpr std::string_view no_table =
    "the table is missing (names are case-sensitive); create it with --create-schema (in C++: "
    ".create_schema), or see: holdfast store schema --dialect mariadb, or mysql";
constexpr std::string_view no_column =
    "a column is missing; compare the table with: holdfast store schema --dialect mysql";
constexpr std::string_view no_database = "the database is missing; create it, or correct its name";
constexpr std::string_view no_privilege = "the user lacks a privilege; grant it";
constexpr std::string_view no_login = "the server refuses the login; check user, password and host";
constexpr std::string_view no_plugin =
    "the server asks for a login method that this client does not have";
constexpr std::string_view no_cleartext =
    "the server asks for a login method that may tell it the password, such as "
    "caching_sha2_password, and it was not verified; connect with verified TLS (tls=1, and tls_ca "
    "for a private authority), or add allow_cleartext_password=1 to the URL if the network is "
    "trusted";
constexpr std::string_view ended = "the server ended the statement at its own limit";
constexpr std::string_view killed = "the server killed the connection";
constexpr std::string_view only_statements =
    "the server's binary log takes statements only (binlog_format = STATEMENT), so it refuses to "
    "write; set it to ROW or MIXED";
constexpr std::string_view bad_text =
    "the text is not well-formed UTF-8, or has characters that the column cannot keep";
constexpr std::string_view refused_value = "a value does not fit its column";

/// Sorted by number. The numbers that are not here are classified by their SQLSTATE.
constexpr failure_class table[]{
    {3, errc::unavailable, permanent},
    {20, errc::unavailable, transient, shows::unquoted, disk_full},
    {1007, errc::duplicate, permanent, shows::all, exists},
    {1020, errc::unavailable, transient, shows::unquoted,
     "the row was changed by another transaction; try again"},
    {1021, errc::unavailable, transient, shows::unquoted, disk_full},
    {1022, errc::duplicate, permanent, shows::index, duplicate_key},
    {1026, errc::unavailable, permanent},
    {1030, errc::unavailable, permanent},
    {1037, errc::unavailable, transient, shows::unquoted, "the server is out of memory"},
    {1038, errc::unavailable, transient, shows::unquoted, "the server is out of memory"},
    {1040, errc::unavailable, transient, shows::unquoted, crowded},
    {1041, errc::unavailable, transient, shows::unquoted, "the server is out of memory"},
    {1044, errc::permission, permanent, shows::all, no_privilege},
    {1045, errc::permission, permanent, shows::all, no_login},
    {1046, errc::missing_object, permanent, shows::all, "no database is selected; name one"},
    {1047, errc::unavailable, transient, shows::unquoted, "the node is not ready"},
    {.number = 1048,
     .code = errc::missing_object,
     .text = shows::all,
     .advice = not_null_advice,
     .is_not_null_violation = true},
    {1049, errc::missing_object, permanent, shows::all, no_database},
    {1050, errc::duplicate, permanent, shows::all, exists},
    {1051, errc::missing_object, permanent, shows::all, no_table},
    {1053, errc::unavailable, transient, shows::unquoted, stopping},
    {1054, errc::missing_object, permanent, shows::all, no_column},
    {1060, errc::duplicate, permanent, shows::all, exists},
    {1061, errc::duplicate, permanent, shows::all, exists},
    {1062, errc::duplicate, permanent, shows::index, duplicate_key},
    {1064, errc::grammar, permanent, shows::all, not_understood},
    {1065, errc::grammar, permanent, shows::all, not_understood},
    {1071, errc::too_large, permanent, shows::all,
     "the key is too long for an index of this server"},
    {1072, errc::missing_object, permanent, shows::all, no_column},
    {1077, errc::unavailable, transient, shows::unquoted, stopping},
    {1079, errc::unavailable, transient, shows::unquoted, stopping},
    {1091, errc::missing_object, permanent, shows::all, "it is missing"},
    {1109, errc::missing_object, permanent, shows::all, no_table},
    {1114, errc::unavailable, transient, shows::all, disk_full},
    {1115, errc::grammar, permanent, shows::all, not_understood},
    {1118, errc::too_large, permanent, shows::all, "the row is too long for its table"},
    {1129, errc::unavailable, permanent, shows::all,
     "the server blocks this host; unblock it with FLUSH HOSTS"},
    {1130, errc::permission, permanent, shows::all, no_login},
    {1142, errc::permission, permanent, shows::all, no_privilege},
    {1143, errc::permission, permanent, shows::all, no_privilege},
    {1146, errc::missing_object, permanent, shows::all, no_table},
    {1149, errc::grammar, permanent, shows::all, not_understood},
    {1152, errc::unavailable, transient, shows::unquoted, lost},
    {1153, errc::too_large, permanent, shows::unquoted, too_big},
    {1158, errc::unavailable, transient, shows::unquoted, lost},
    {1159, errc::unavailable, transient, shows::unquoted, lost},
    {1160, errc::unavailable, transient, shows::unquoted, lost},
    {1161, errc::unavailable, transient, shows::unquoted, lost},
    {1162, errc::too_large, permanent, shows::unquoted, too_big},
    {1169, errc::duplicate, permanent, shows::index, duplicate_key},
    {1176, errc::missing_object, permanent, shows::all, "an index is missing"},
    {1180, errc::unavailable, transient, shows::all,
     "the commit failed; a node of Galera refuses it while it is not part of its cluster"},
    {1193, errc::grammar, permanent, shows::all, not_understood},
    {1203, errc::unavailable, transient, shows::all, crowded},
    {1205, errc::unavailable, transient, shows::unquoted, locked},
    {1213, errc::unavailable, transient, shows::unquoted,
     "the transaction was rolled back to end a deadlock; try again"},
    {1226, errc::unavailable, transient, shows::all, crowded},
    {1227, errc::permission, permanent, shows::all, no_privilege},
    {1235, errc::grammar, permanent, shows::all, not_understood},
    {1243, errc::unavailable, transient, shows::unquoted, prepare_again},
    {1251, errc::permission, permanent, shows::all, no_plugin},
    {1264, errc::out_of_range, permanent, shows::all, refused_value},
    {1273, errc::grammar, permanent, shows::all, not_understood},
    {1290, errc::unavailable, transient, shows::all, read_only},
    {1300, errc::ill_formed_text, permanent, shows::index, bad_text},
    {1301, errc::too_large, permanent, shows::unquoted, too_big},
    {1305, errc::grammar, permanent, shows::all, not_understood},
    {1317, errc::timeout, transient, shows::unquoted,
     "the statement was interrupted on the server"},
    {.number = 1364,
     .code = errc::missing_object,
     .text = shows::all,
     .advice = not_null_advice,
     .is_not_null_violation = true},
    {1366, errc::invalid_argument, permanent, shows::index, refused_value},
    {1390, errc::too_large, permanent, shows::unquoted,
     "the statement has more parameters than the server takes"},
    {1406, errc::too_large, permanent, shows::all, too_long},
    {1412, errc::unavailable, transient, shows::unquoted, prepare_again},
    {1524, errc::permission, permanent, shows::all, no_plugin},
    {1586, errc::duplicate, permanent, shows::index, duplicate_key},
    {1613, errc::unavailable, transient, shows::unquoted, locked},
    {1614, errc::unavailable, transient, shows::unquoted, locked},
    {1615, errc::unavailable, transient, shows::unquoted, prepare_again},
    {1665, errc::unavailable, permanent, shows::index, only_statements},
    {1698, errc::permission, permanent, shows::all, no_login},
    {1792, errc::unavailable, transient, shows::unquoted, read_only},
    {1820, errc::permission, permanent, shows::unquoted, "the password has expired; set a new one"},
    {1836, errc::unavailable, transient, shows::unquoted, read_only},
    {1859, errc::duplicate, permanent, shows::index, duplicate_key},
    {1862, errc::permission, permanent, shows::unquoted, "the password has expired; set a new one"},
    {1874, errc::unavailable, transient, shows::unquoted, read_only},
    {1878, errc::unavailable, transient, shows::unquoted, disk_full},
    {1927, errc::timeout, transient, shows::unquoted, killed},
    {1932, errc::missing_object, permanent, shows::all, no_table},
    {1969, errc::timeout, transient, shows::unquoted, ended},
    {2002, errc::unavailable, transient, shows::all, "the server does not answer"},
    {2003, errc::unavailable, transient, shows::all, "the server does not answer"},
    {2005, errc::unavailable, transient, shows::all, "the host is unknown"},
    {2006, errc::unavailable, transient, shows::unquoted, lost},
    {2012, errc::unavailable, transient, shows::unquoted, lost},
    {2013, errc::unavailable, transient, shows::unquoted, lost},
    {2014, errc::internal, permanent, shows::all, "commands were sent out of order"},
    {2020, errc::too_large, permanent, shows::unquoted, too_big},
    {2026, errc::unavailable, transient, shows::all, "the encrypted connection was lost"},
    {2027, errc::unavailable, transient, shows::unquoted, lost},
    {2055, errc::unavailable, transient, shows::unquoted, lost},
    {2058, errc::permission, permanent, shows::all, no_plugin},
    {2059, errc::permission, permanent, shows::all, no_plugin},
    {2061, errc::permission, permanent, shows::all, no_login},
    {3024, errc::timeout, transient, shows::unquoted, ended},
    {3100, errc::unavailable, transient, shows::unquoted,
     "the cluster refused the transaction; try again"},
    {3118, errc::permission, permanent, shows::all, "the account is locked"},
    {3170, errc::too_large, permanent, shows::unquoted,
     "the statement needs more memory than the server allows"},
    {3572, errc::unavailable, transient, shows::unquoted, locked},
    {3854, errc::ill_formed_text, permanent, shows::index, bad_text},
    {3988, errc::ill_formed_text, permanent, shows::index, bad_text},
    {4031, errc::unavailable, transient, shows::unquoted, "the server closed the idle connection"},
    {4151, errc::permission, permanent, shows::all, "the account is locked"},
    // The text of libmariadb 3.3 has the name of the method from a buffer that was used again.
    {5010, errc::permission, permanent, shows::nothing, no_cleartext},
};

static_assert(std::ranges::is_sorted(table, {}, &failure_class::number));

/// The class of a number that is not in the table, by the first two characters of its SQLSTATE.
failure_class classify_by_state(const server_message& message) {
  failure_class result{.number = message.number,
                       .code = errc::unavailable,
                       .advice = "the server refuses the statement"};
  const auto group = message.sqlstate.substr(0, 2);
  if (group == "08" || group == "40") {
    result.transient = true;
  } else if (group == "22" || group == "23") {
    result.code = errc::invalid_argument;
    result.advice = refused_value;
  } else if (group == "28") {
    result.code = errc::permission;
  } else if (group == "42") {
    result.code = errc::grammar;
    result.advice = not_understood;
  }
  return result;
}

/// The storage engine and the file layer repeat the error number of the operating system; 28 is
/// ENOSPC.
bool says_disk_full(std::string_view text) {
  return text.find(" 28 ") != std::string_view::npos || text.find(" 28)") != std::string_view::npos;
}

failure_class classify(const server_message& message) {
  const auto* const row =
      std::ranges::lower_bound(table, message.number, {}, &failure_class::number);
  if (row == std::end(table) || row->number != message.number) return classify_by_state(message);
  failure_class result = *row;
  // 1366 is used for ill-formed text and for every other value that the column cannot hold.
  if (message.number == 1366 && message.text.starts_with("Incorrect string value")) {
    result.code = errc::ill_formed_text;
    result.advice = bad_text;
  }
  const bool is_file_error =
      message.number == 3 || message.number == 1026 || message.number == 1030;
  if (is_file_error && says_disk_full(message.text)) {
    result.transient = true;
    result.advice = disk_full;
  }
  if (result.advice.empty()) result.advice = "the server cannot read or write its files";
  return result;
}

/// The name of the index in "Duplicate entry '...' for key 'PRIMARY'". The rest of the text
/// contains the value.
std::string index_in(std::string_view text) {
  constexpr std::string_view before = "for key '";
  const auto position = text.rfind(before);
  if (position == std::string_view::npos) return {};
  auto name = text.substr(position + before.size());
  if (!name.ends_with('\'')) return {};
  name.remove_suffix(1);
  const bool is_name = std::ranges::all_of(name, [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '_' || c == '.' || c == '$';
  });
  return is_name ? std::string(name) : std::string();
}

/// The name in "Column 'NAME' cannot be null" and "Field 'NAME' doesn't have a default value".
std::string_view first_quoted(std::string_view text) {
  const auto open = text.find('\'');
  if (open == std::string_view::npos) return {};
  const auto name = text.substr(open + 1);
  return name.substr(0, std::min(name.find('\''), name.size()));
}

/// Replaces the text in quotes by dots.
std::string without_quoted(std::string_view text) {
  std::string result;
  bool inside = false;
  for (const char c : text) {
    if (c == '\'') {
      result += inside ? "...'" : "'";
      inside = !inside;
    } else if (!inside) {
      result += c;
    }
  }
  if (inside) result += "...'";
  return result;
}

/// "what is wrong and what to do (1146: what the server says)"
std::string compose(const failure_class& failure, const server_message& message,
                    std::string_view secret) {
  std::string shown;
  switch (failure.text) {
    case shows::all:
      shown = message.text;
      break;
    case shows::unquoted:
      shown = without_quoted(message.text);
      break;
    case shows::index:
      shown = index_in(message.text);
      break;
    case shows::nothing:
      break;
  }
  if (!secret.empty() && shown.find(secret) != std::string::npos) shown.clear();
  std::string result(failure.advice);
  result += " (" + std::to_string(message.number);
  if (!shown.empty()) result += ": " + shown;
  return result + ")";
}

/// Whether a commit failed so late that other nodes of the cluster may have it.
bool leaves_commit_open(unsigned number) noexcept { return number == 1180; }

constexpr std::string_view doubt = "; it is not known whether the statement took effect";

}  // namespace

bool ends_connection(unsigned number) noexcept {
  constexpr std::array numbers{1053U, 1077U, 1079U, 1152U, 1153U, 1158U, 1159U, 1160U, 1161U, 1927U,
                               2006U, 2012U, 2013U, 2014U, 2020U, 2026U, 2027U, 2055U, 4031U};
  return std::ranges::find(numbers, number) != numbers.end();
}

bool ends_transaction(unsigned number) noexcept {
  constexpr std::array numbers{1020U, 1047U, 1180U, 1205U, 1213U, 1613U, 1614U, 3100U};
  return std::ranges::find(numbers, number) != numbers.end();
}

bool ends_statement(unsigned number) noexcept {
  return number == 1243 || number == 1412 || number == 1615;
}

error to_error(const server_message& message, loss on_loss, std::string_view secret) {
  const auto failure = classify(message);
  // These end the connection, but the server refused the statement before it ran.
  const bool refused = message.number == 1153 || message.number == 2020 || message.number == 4031;
  error::details details{
      .backend_code = std::to_string(message.number),
      .transient = failure.transient,
      .in_doubt = on_loss == loss::in_doubt && !refused &&
                  (ends_connection(message.number) || leaves_commit_open(message.number))};
  if (failure.is_not_null_violation) details.not_null_column = first_quoted(message.text);
  auto text = compose(failure, message, secret);
  if (details.in_doubt) text += doubt;
  return {failure.code, text, details};
}

error timed_out(std::chrono::milliseconds limit, loss on_loss) {
  const bool in_doubt = on_loss == loss::in_doubt;
  auto text = "the database did not answer within " + std::to_string(limit.count()) + " ms";
  if (in_doubt) text += doubt;
  return {errc::timeout, text, {.transient = true, .in_doubt = in_doubt}};
}

error answer_too_large(std::size_t limit, loss on_loss) {
  const bool in_doubt = on_loss == loss::in_doubt;
  auto text = "the answer of the server needs more than " + std::to_string(limit >> 20U) +
              " MiB of memory; ask for fewer or smaller rows at once";
  if (in_doubt) text += doubt;
  return {errc::too_large, text, {.in_doubt = in_doubt}};
}

error closed_while_idle() {
  return {errc::unavailable,
          "the server closed the connection while it was idle; nothing was sent",
          {.backend_code = "2006", .transient = true}};
}

error already_broken() {
  return {errc::unavailable,
          "the connection was broken by an earlier failure; use another one",
          {.backend_code = "2006", .transient = true}};
}

error could_not_connect(const std::string& address, const server_message& message,
                        std::string_view secret) {
  auto failure = classify(message);
  if (message.number == 2026) {
    failure.transient = false;
    failure.advice =
        "no encrypted connection; check tls_ca and the host name, and that the server has TLS";
  }
  return {failure.code,
          "cannot connect to " + address + ": " + compose(failure, message, secret),
          {.backend_code = std::to_string(message.number), .transient = failure.transient}};
}

error could_not_connect_in_time(const std::string& address, std::chrono::milliseconds limit) {
  return {errc::timeout,
          "cannot connect to " + address + ": no answer within " + std::to_string(limit.count()) +
              " ms",
          {.transient = true}};
}

error without_tls(const std::string& address) {
  return {errc::unavailable,
          "cannot connect to " + address +
              ": the server offers no TLS, and the connection must be encrypted; set up TLS on the "
              "server, or write tls=0 in the URL to connect without encryption (docs/tls.md)",
          {.backend_code = "2026"}};
}

error not_a_server(const std::string& address) {
  return {errc::unavailable,
          "cannot connect to " + address +
              ": its first packet is neither a greeting in version 10 of MySQL's protocol nor an "
              "error; check host and port, and that nothing between here and the server changes "
              "the traffic"};
}

}  // namespace HOLDFAST_NAMESPACE::detail::sql::mysql
