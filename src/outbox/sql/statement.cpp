#include "outbox/sql/statement.hpp"

#include <holdfast/error.hpp>

#include "outbox/entry.hpp"
#include "sql/placeholders.hpp"

#include <algorithm>
#include <iterator>

namespace HOLDFAST_NAMESPACE::detail::outbox {

namespace {

bool is_name_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

/// The name at the begin of a text, which may be empty.
std::string_view leading_name(std::string_view text) {
  const auto end = std::ranges::find_if_not(text, is_name_character);
  return text.substr(0, static_cast<std::size_t>(end - text.begin()));
}

/// A parameter in the text of a statement: `:name`, or `:name/text`.
struct parameter_text {
  std::string name;
  sql::type type = sql::type::integer;
  std::size_t size = 0;  // in the text
};

/// Reads the parameter at the begin of a text. Throws errc::internal if it has no name or an
/// unknown type.
parameter_text read_parameter(std::string_view text) {
  const auto name = leading_name(text.substr(1));
  if (name.empty())
    throw error(errc::internal, "an SQL parameter has no name: " + std::string(text));
  parameter_text parameter{.name = std::string(name), .size = 1 + name.size()};
  const auto rest = text.substr(parameter.size);
  if (!rest.starts_with('/')) return parameter;
  const auto type = leading_name(rest.substr(1));
  if (type != "text")
    throw error(errc::internal, "the SQL parameter :" + parameter.name + " has the unknown type '" +
                                    std::string(type) + "'");
  parameter.type = sql::type::text;
  parameter.size += 1 + type.size();
  return parameter;
}

/// Forces MySQL and MariaDB to find the rows of a list by the index of the column. Without it they
/// would read a small table from end to end, and wait for every row in it that an open transaction
/// has added. Throws errc::internal if the column has no unique index of its own.
std::string force_index(std::string_view table, std::string_view column) {
  struct indexed_column {
    std::string_view table, column, index;
  };
  static constexpr indexed_column indexed_columns[]{{"{events}", "SEQ", "PRIMARY"},
                                                    {"{events}", "ID", "ID"},
                                                    {"{entries}", "ID", "PRIMARY"},
                                                    {"{counters}", "N", "PRIMARY"},
                                                    {"{stripes}", "N", "PRIMARY"}};
  for (const auto& each : indexed_columns) {
    if (each.table == table && each.column == column)
      return " FORCE INDEX (" + std::string(each.index) + ")";
  }
  throw error(errc::internal,
              "no index for " + std::string(column) + " of the table " + std::string(table));
}

/// The type of a column of JSON_TABLE, for MySQL and MariaDB.
std::string_view json_column_type(row_list::type type) {
  switch (type) {
    case row_list::type::name:
      return "{name}";
    case row_list::type::long_text:
      return "{long_text}";
    case row_list::type::integer:
      break;
  }
  return "{integer}";
}

/// The fragments that do not depend on the names of the tables. All dialects have the same ones;
/// some of them are empty.
fragment_map dialect_fragments(sql::dialect_id dialect) {
  fragment_map fragments{
      {"stored_event",
       "o.SEQ, o.ID, o.EVENT_KEY, o.QUEUE, o.DUE, o.PLACE, o.AT, o.TOKEN, o.RUN, o.DELIVERIES, "
       "o.ATTEMPTS, o.REPLAYS, o.BYTES, o.CREATED, o.NUMBER, o.LAST_ERROR"},
      {"event", "{stored_event}, {head}, {next}"},
      // Each of the two is one lookup in the index of keys. MariaDB and MySQL would choose an index
      // that begins with LANE, and read all rows of the lane for each event. For MIN(h.SEQ) they
      // would read all rows of the key.
      {"head",
       "(SELECT h.SEQ FROM {events} h {key_index} WHERE h.LANE = o.LANE AND h.QUEUE = o.QUEUE "
       "ORDER BY h.SEQ LIMIT 1)"},
      {"next",
       "(SELECT h.SEQ FROM {events} h {key_index} WHERE h.LANE = o.LANE AND h.QUEUE = o.QUEUE AND "
       "h.SEQ > o.SEQ ORDER BY h.SEQ LIMIT 1)"}};
  switch (dialect) {
    case sql::dialect_id::postgresql:
      fragments.insert(
          {{"now_us", "(extract(epoch FROM statement_timestamp()) * 1000000)::bigint"},
           {"now_ms", "floor(extract(epoch FROM statement_timestamp()) * 1000)::bigint"},
           {"for_update", "FOR UPDATE OF o"},
           {"skip_locked", "FOR UPDATE OF o SKIP LOCKED"},
           {"for_share", "FOR SHARE OF o"},
           {"insert_ignore", "INSERT INTO"},
           {"ignore_conflict", "ON CONFLICT DO NOTHING"}});
      break;
    case sql::dialect_id::sqlite:
      fragments.insert({{"now_us", "CAST(0 AS INTEGER)"},
                        {"now_ms", "CAST(0 AS INTEGER)"},
                        {"insert_ignore", "INSERT INTO"},
                        {"ignore_conflict", "ON CONFLICT DO NOTHING"},
                        {"where_true", "WHERE true"},
                        // SQLite stores values of any type in any column.
                        {"no_due", "(o.DUE IS NULL OR typeof(o.DUE) <> 'integer')"}});
      break;
    default:  // MySQL and MariaDB
      // UTC_TIMESTAMP does not depend on the time zone of the session.
      fragments.insert({{"now_us", "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))"},
                        {"now_ms", "({now_us} DIV 1000)"},
                        {"for_update", "FOR UPDATE"},
                        {"skip_locked", "FOR UPDATE SKIP LOCKED"},
                        {"for_share", "LOCK IN SHARE MODE"},
                        {"due_index", "FORCE INDEX (IDX_{events}_DUE)"},
                        {"key_index", "FORCE INDEX (IDX_{events}_KEY)"},
                        {"time_index", "FORCE INDEX (IDX_{events}_AT)"},
                        {"insert_ignore", "INSERT IGNORE INTO"}});
      break;
  }
  fragments.try_emplace("no_due", "o.DUE IS NULL");
  for (const char* name : {"for_update", "skip_locked", "for_share", "due_index", "key_index",
                           "time_index", "ignore_conflict", "where_true"})
    fragments.try_emplace(name);
  return fragments;
}

}  // namespace

named_statement::named_statement(sql::statement positional, std::vector<std::string> names)
    : positional_(std::move(positional)), names_(std::move(names)) {}

sql::rows named_statement::query(const lane_session& session,
                                 std::initializer_list<argument> arguments) const {
  return session.transaction.execute(positional_, bind(arguments, session.lane)).rows;
}

sql::rows named_statement::query(sql::connection& connection) const {
  return connection.execute(positional_, {}).rows;
}

std::uint64_t named_statement::execute(const lane_session& session,
                                       std::span<const argument> arguments) const {
  return session.transaction.execute(positional_, bind(arguments, session.lane)).affected;
}

std::vector<sql::parameter> named_statement::bind(std::span<const argument> arguments,
                                                  std::size_t lane) const {
  std::vector<sql::parameter> values;
  values.reserve(names_.size());
  for (const auto& name : names_) {
    const auto match = std::ranges::find(arguments, name, &argument::name);
    if (match != arguments.end()) values.push_back(match->value);
    else if (name == "lane") values.emplace_back(static_cast<std::int64_t>(lane));
    else throw error(errc::internal, "no value for :" + name + " of " + positional_.text);
  }
  return values;
}

statement_builder::statement_builder(sql::dialect_id dialect, table_names tables, lock_scope locks)
    : dialect_(dialect),
      tables_(std::move(tables)),
      locks_(locks),
      fragments_(schema_fragments(dialect_, tables_)) {
  fragments_.merge(dialect_fragments(dialect_));
}

named_statement statement_builder::statement(std::string_view text,
                                             std::vector<sql::type> results) const {
  const auto expanded = expand_fragments(text, fragments_);
  sql::statement positional{.text = {}, .results = std::move(results)};
  std::vector<std::string> names;
  for (std::size_t i = 0; i < expanded.size();) {
    const std::string_view rest = std::string_view(expanded).substr(i);
    if (rest[0] == ' ') {
      // Fragments may be empty: one space is enough.
      if (!positional.text.ends_with(' ')) positional.text += ' ';
      ++i;
    } else if (rest.starts_with("::")) {  // a cast of PostgreSQL
      positional.text += "::";
      i += 2;
    } else if (rest[0] == ':') {
      auto parameter = read_parameter(rest);
      i += parameter.size;
      positional.parameters.push_back(parameter.type);
      names.push_back(std::move(parameter.name));
      positional.text += sql::placeholder(dialect_, static_cast<unsigned>(names.size()));
    } else {
      positional.text += rest[0];
      ++i;
    }
  }
  if (positional.text.ends_with(' ')) positional.text.pop_back();
  return {std::move(positional), std::move(names)};
}

std::string statement_builder::rows(const row_list& list) const {
  const std::string source = ":" + list.parameter + "/text";
  const bool flat = list.columns.size() == 1;  // a list of values instead of a list of rows
  std::string columns;
  int position = 0;
  for (const auto& [name, type] : list.columns) {
    const std::string index = std::to_string(position++);
    const bool integer = type == row_list::type::integer;
    columns.append(", ");
    if (postgres()) {
      const std::string value = flat ? "t.e" : "t.e->>" + index;
      columns.append(integer ? "(" + value + ")::bigint" : value).append(" AS ").append(name);
    } else if (sqlite()) {
      columns.append(flat ? "value" : "json_extract(value, '$[" + index + "]')");
      columns.append(" AS ").append(name);
    } else {
      columns.append(name).append(" ").append(json_column_type(type));
      columns.append(flat ? " PATH '$'" : " PATH '$[" + index + "]'");
    }
  }
  if (postgres())
    return "(SELECT t.n" + columns + " FROM json_array_elements" + (flat ? "_text(" : "(") +
           source + "::json) WITH ORDINALITY AS t(e, n)) g";
  if (sqlite()) return "(SELECT key AS n" + columns + " FROM json_each(" + source + ")) g";
  return "JSON_TABLE(" + source + ", '$[*]' COLUMNS (n FOR ORDINALITY" + columns + ")) g";
}

std::string statement_builder::join(const std::string& table, const std::string& column,
                                    const row_list& list) const {
  const std::string condition = "o." + column + " = g." + list.columns.front().name;
  if (mysql())
    return "FROM " + rows(list) + " STRAIGHT_JOIN " + table + " o" + force_index(table, column) +
           " ON " + condition;
  return "FROM " + table + " o JOIN " + rows(list) + " ON " + condition;
}

std::string statement_builder::erase(const std::string& table, const std::string& column,
                                     const row_list& list) const {
  if (mysql()) return "DELETE o " + join(table, column, list);
  return "DELETE FROM " + table + " WHERE " + column + " IN (SELECT g." +
         list.columns.front().name + " FROM " + rows(list) + ")";
}

std::string statement_builder::update_events(
    const row_list& list,
    std::initializer_list<std::pair<std::string_view, std::string_view>> assignments,
    std::string_view condition) const {
  std::string match = "o.SEQ = g." + list.columns.front().name;
  if (!condition.empty()) match.append(" AND ").append(condition);
  std::string set;
  for (const auto& [column, expression] : assignments) {
    set += set.empty() ? " SET " : ", ";
    // MySQL needs the table of the column; the others refuse it.
    set.append(mysql() ? "o." : "").append(column).append(" = ").append(expression);
  }
  if (mysql())
    return "UPDATE " + rows(list) + " STRAIGHT_JOIN {events} o" + force_index("{events}", "SEQ") +
           " ON " + match + set;
  return std::string("UPDATE {events} ") + (postgres() ? "o" : "AS o") + set + " FROM " +
         rows(list) + " WHERE " + match;
}

std::string statement_builder::keep_existing(const std::string& column) const {
  if (!mysql()) return " ON CONFLICT DO NOTHING";
  return " ON DUPLICATE KEY UPDATE " + column + " = VALUES(" + column + ")";
}

std::string statement_builder::sum(const std::string& expression) const {
  // Damaged numbers count as 0: a sum that overflows would be an error.
  const std::string sum = "COALESCE(SUM(CASE WHEN " + expression +
                          " BETWEEN -1000000000000000 AND 1000000000000000 THEN " + expression +
                          " END), 0)";
  if (postgres()) return sum + "::bigint";
  return mysql() ? "CAST(" + sum + " AS SIGNED)" : sum;
}

void array_text::add(std::string_view text) {
  text_ += '"';
  for (std::size_t begin = 0; begin < text.size();) {
    const auto end = std::min(text.find_first_of("\"\\", begin), text.size());
    text_ += text.substr(begin, end - begin);
    if (end < text.size()) (text_ += '\\') += text[end];
    begin = end + 1;
  }
  text_ += "\",";
}

std::string array_text::text() const {
  return "{" + text_.substr(0, text_.empty() ? 0 : text_.size() - 1) + "}";
}

void json_rows::append(std::string_view text) {
  append_json_text(text_, text);
  text_ += ',';
}

template <class Value>
std::optional<Value> row_reader::read(std::string_view type) {
  const auto& column = rows_.at(row_, column_++);
  if (std::holds_alternative<std::monostate>(column)) return std::nullopt;
  if (const auto* value = std::get_if<Value>(&column)) return *value;
  throw error(errc::internal, "column " + std::to_string(column_) +
                                  " of a row of the outbox is not " + std::string(type));
}

std::optional<std::int64_t> row_reader::optional_integer() {
  return read<std::int64_t>("an integer");
}

std::optional<std::string> row_reader::optional_text() { return read<std::string>("a text"); }

std::vector<std::int64_t> integers(const sql::rows& rows) {
  std::vector<std::int64_t> values;
  values.reserve(rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) values.push_back(row_reader(rows, i).integer());
  return values;
}

std::optional<std::int64_t> first_integer(const sql::rows& rows) {
  return rows.empty() ? std::nullopt : row_reader(rows).optional_integer();
}

}  // namespace HOLDFAST_NAMESPACE::detail::outbox
