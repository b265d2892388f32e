#include "sql/odbc/errors.hpp"

#include "sql/error_class.hpp"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>

namespace HOLDFAST_NAMESPACE::detail::sql::odbc {

namespace {

constexpr std::size_t text_limit = 300;

constexpr error_class busy{errc::unavailable, transient, "try again"};
constexpr error_class constraint{
    errc::invalid_argument, permanent,
    "the database refused a row: it violates a constraint of the table", hidden};
constexpr error_class duplicate_key{errc::duplicate, permanent, "the key is there already", hidden};
constexpr error_class full{errc::unavailable, transient,
                           "the server has no space left; nothing was written"};
constexpr error_class grammar{errc::grammar};
constexpr error_class missing_table{
    errc::missing_object, permanent,
    "the table or column is missing; create it with --create-schema (in C++: .create_schema), or "
    "see: holdfast store schema"};
constexpr error_class no_privilege{errc::permission, permanent,
                                   "grant it to the user of the connection"};
constexpr error_class not_null_violation{.code = errc::missing_object,
                                         .advice = not_null_advice,
                                         .hides_server_text = true,
                                         .is_not_null_violation = true};
constexpr error_class read_only{errc::unavailable, transient,
                                "the database is read-only; connect to the primary"};
constexpr error_class table_exists{errc::duplicate};
constexpr error_class too_long{errc::too_large, permanent,
                               "a value is too long for its column; use a longer one", hidden};

struct number_class {
  dialect_id dialect;
  long native;
  error_class meaning;
};
constexpr auto mariadb = dialect_id::mariadb;  // and MySQL
constexpr auto sqlserver = dialect_id::sqlserver;
constexpr auto oracle = dialect_id::oracle;
constexpr auto sqlite = dialect_id::sqlite;
constexpr number_class numbers[]{
    {mariadb, 1020, busy},
    {mariadb, 1048, not_null_violation},
    {mariadb, 1049, missing_table},
    {mariadb, 1054, missing_table},
    {mariadb, 1062, duplicate_key},
    {mariadb, 1064, grammar},
    {mariadb, 1114, full},
    {mariadb, 1142, no_privilege},
    {mariadb, 1146, missing_table},
    {mariadb, 1205, busy},
    {mariadb, 1213, busy},
    {mariadb, 1290, read_only},
    {mariadb, 1364, not_null_violation},
    {mariadb, 1406, too_long},
    {mariadb, 1586, duplicate_key},
    {sqlserver, 102, grammar},
    {sqlserver, 156, grammar},
    {sqlserver, 207, missing_table},
    {sqlserver, 208, missing_table},
    {sqlserver, 229, no_privilege},
    {sqlserver, 515, not_null_violation},
    {sqlserver, 1105, full},
    {sqlserver, 1205, busy},
    {sqlserver, 1222, busy},
    {sqlserver, 2601, duplicate_key},
    {sqlserver, 2627, duplicate_key},
    {sqlserver, 2628, too_long},
    {sqlserver, 2714, table_exists},
    {sqlserver, 3906, read_only},
    {sqlserver, 3960, busy},
    {sqlserver, 8152, too_long},
    {sqlserver, 9002, full},
    {sqlserver, 10713, grammar},
    {oracle, 1, duplicate_key},
    {oracle, 54, busy},
    {oracle, 60, busy},
    {oracle, 900, grammar},
    {oracle, 904, missing_table},
    {oracle, 907, grammar},
    {oracle, 933, grammar},
    {oracle, 942, missing_table},
    {oracle, 1031, no_privilege},
    {oracle, 1400, not_null_violation},
    {oracle, 1407, not_null_violation},
    {oracle, 1461, too_long},
    {oracle, 1653, full},
    {oracle, 1691, full},
    {oracle, 8177, busy},
    {oracle, 12899, too_long},
    {oracle, 16000, read_only},
    {sqlite, 5, busy},
    {sqlite, 6, busy},
    {sqlite, 8, read_only},
    {sqlite, 13, full},
};

constexpr sqlstate_class states[]{
    {"08", {errc::unavailable, transient, "the connection failed; try again"}},
    {"22001", too_long},
    {"22003",
     {errc::out_of_range, permanent, "a number is outside the range of its column", hidden}},
    {"22",
     {errc::invalid_argument, permanent,
      "the database refused a value (its message is hidden, since it may repeat the value)",
      hidden}},
    {"23505", duplicate_key},
    {"23502", not_null_violation},
    {"23503", constraint},
    {"23514", constraint},
    {"23", duplicate_key},  // most drivers use only 23000
    {"25006", read_only},
    {"25P02",
     {errc::invalid_argument, permanent,
      "an earlier statement of the transaction failed; roll it back"}},
    {"28", {errc::permission, permanent, "check the user and the password"}},
    {"40", busy},
    {"42501", no_privilege},
    {"42P01", missing_table},
    {"42703", missing_table},
    {"42S02", missing_table},
    {"42S22", missing_table},
    {"3F000", missing_table},
    {"42", grammar},
    {"37", grammar},
    {"53", full},
    {"55P03", busy},
    {"57014", {errc::timeout, transient, "nothing was changed"}},
    {"57", {errc::unavailable, transient, "the server is stopping or starting; try again"}},
    {"S0002", missing_table},
    {"S1000", {errc::unavailable}},
    {"HY001", {errc::unavailable, transient, "the driver has no memory left"}},
    {"HY008", {errc::timeout, transient, "nothing was changed"}},
};

/// The driver of SQLite has a single SQLSTATE, and one number for several failures.
const error_class* find_sqlite_class(std::string_view text) {
  static constexpr std::pair<std::string_view, error_class> texts[]{
      {"UNIQUE constraint", duplicate_key},
      {"PRIMARY KEY", duplicate_key},
      {"NOT NULL constraint", not_null_violation},
      {"constraint failed", constraint},
      {"no such table", missing_table},
      {"no such column", missing_table},
      {"syntax error", grammar}};
  const auto* const row = std::ranges::find_if(
      texts, [text](const auto& each) { return text.find(each.first) != std::string_view::npos; });
  return row == std::end(texts) ? nullptr : &row->second;
}

const error_class* classify(const diagnostic& record, dialect_id dialect) {
  if (dialect == dialect_id::mysql) dialect = dialect_id::mariadb;
  const auto* const row = std::ranges::find_if(numbers, [&](const number_class& each) {
    return each.dialect == dialect && each.native == record.native;
  });
  if (row != std::end(numbers)) return &row->meaning;
  if (const auto* meaning = find_class(states, record.state)) return meaning;
  return dialect == dialect_id::sqlite ? find_sqlite_class(record.text) : nullptr;
}

/// The text of a record as a message may show it, without the names of the driver, the manager and
/// the server in front of it: `[unixODBC][Driver][Server]text`.
std::string shown_text(const diagnostic& record, std::string_view secret) {
  if (!secret.empty() && record.text.find(secret) != std::string::npos)
    return "the message of the driver is hidden, because it contains the password";
  std::string_view text = record.text;
  while (text.starts_with('[')) {
    const auto end = text.find(']');
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  return one_line_excerpt(text, text_limit);
}

/// SQLSTATE and number, for example `23000/2627`.
std::string backend_code(const diagnostic& record) {
  return record.state + (record.native != 0 ? "/" + std::to_string(record.native) : "");
}

const diagnostic& first_failure(const std::vector<diagnostic>& records) {
  static const diagnostic unknown{.state = "HY000", .text = "the driver gave no reason"};
  if (records.empty()) return unknown;
  const auto record = std::ranges::find_if(
      records, [](const diagnostic& each) { return !each.state.starts_with("01"); });
  return record == records.end() ? records.front() : *record;
}

}  // namespace

error to_error(const std::vector<diagnostic>& records, const failure_context& context) {
  const auto& record = first_failure(records);
  const bool in_doubt = context.on_loss == loss::in_doubt;
  const error::details unanswered{
      .backend_code = backend_code(record), .transient = true, .in_doubt = in_doubt};
  if (record.state == "HYT00" || record.state == "HYT01")
    return {errc::timeout, "the database did not answer in time", unanswered};
  if (context.lost || record.state.starts_with("08"))
    return {errc::unavailable,
            in_doubt ? "the connection to the database was lost before the answer came: the "
                       "statement may have taken effect"
                     : "the connection to the database is lost; nothing was changed",
            unanswered};
  const error::details details{.backend_code = backend_code(record)};
  auto text = shown_text(record, context.secret);
  const auto* const meaning = classify(record, context.dialect);
  if (meaning == nullptr) return {errc::unavailable, "the database says: " + text, details};
  return make_error(*meaning, std::move(text), details);
}

error could_not_connect(const std::vector<diagnostic>& records, const std::string& secret) {
  const auto& record = records.empty() ? first_failure(records) : records.front();
  error::details details{.backend_code = backend_code(record)};
  const std::string text = shown_text(record, secret);
  if (record.state == "IM002" || record.state == "01000" || record.state == "IM003") {
    return {errc::missing_object,
            "no such ODBC driver or data source: " + text +
                "; odbcinst -q -d lists the drivers, odbcinst -q -s the sources",
            details};
  }
  if (record.state.starts_with("28") || record.native == 18456 || record.native == 1045 ||
      record.native == 1017 ||
      record.text.find("password authentication failed") != std::string::npos)
    return {errc::permission,
            "cannot connect through ODBC: " + text + "; check the user and the password", details};
  details.transient = true;
  return {errc::unavailable, "cannot connect through ODBC: " + text, details};
}

error timed_out(std::chrono::milliseconds limit, loss on_loss) {
  const bool in_doubt = on_loss == loss::in_doubt;
  return {errc::timeout,
          "the ODBC driver did not return within " + std::to_string(limit.count()) +
              (in_doubt ? " ms: the statement may have taken effect" : " ms; nothing was changed"),
          {.transient = true, .in_doubt = in_doubt}};
}

}  // namespace HOLDFAST_NAMESPACE::detail::sql::odbc
