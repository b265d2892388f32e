#include "sql/table_access.hpp"

#include <holdfast/error.hpp>

#include "sql/dialect.hpp"

#include <cstddef>
#include <initializer_list>
#include <string_view>
#include <utility>

namespace HOLDFAST_NAMESPACE::detail::sql {

namespace {

enum class access : std::uint8_t { possible, missing, refused };

/// Runs a statement on a table, and classifies its failure.
class table_trial {
 public:
  table_trial(connection& connection, table_lack& lack) : connection_(connection), lack_(lack) {}

  access run(std::string text, std::vector<type> results = {}) {
    try {
      (void)connection_.execute({.text = std::move(text), .results = std::move(results)}, {});
      return access::possible;
    } catch (const error& e) {
      if (connection_.broken()) throw;
      if (e.code() == errc::missing_object || e.code() == errc::grammar) return access::missing;
      if (e.code() != errc::permission) throw;
      if (lack_.refusal.empty()) lack_.refusal = e.message();
      return access::refused;
    }
  }

 private:
  connection& connection_;
  table_lack& lack_;
};

std::string concatenated(std::initializer_list<std::string_view> parts) {
  std::string text;
  for (const auto part : parts) text += part;
  return text;
}

std::string user_query(dialect_id dialect) {
  if (dialect == dialect_id::postgresql) return "SELECT quote_ident(current_user)";
  if (sql::is_mysql(dialect))
    return "SELECT CONCAT(QUOTE(LEFT(CURRENT_USER(), CHAR_LENGTH(CURRENT_USER()) - "
           "CHAR_LENGTH(SUBSTRING_INDEX(CURRENT_USER(), '@', -1)) - 1)), '@', "
           "QUOTE(SUBSTRING_INDEX(CURRENT_USER(), '@', -1)))";
  return {};
}

}  // namespace

table_lack examine_table(connection& connection, const table_need& need) {
  table_lack lack;
  table_trial trial(connection, lack);
  const std::string none = " WHERE 1 = 0";
  switch (trial.run("SELECT 1 FROM " + need.table + none, {type::integer})) {
    case access::missing:
      lack.exists = false;
      return lack;
    case access::refused:
      lack.privileges = {"SELECT"};
      break;
    case access::possible:
      for (const auto& column : need.columns)
        if (trial.run(concatenated({"SELECT COUNT(*) FROM (SELECT ", column, " FROM ", need.table,
                                    none, ") a"}),
                      {type::integer}) == access::missing)
          lack.columns.push_back(column);
  }
  if (!lack.columns.empty()) return lack;
  const std::string& column = need.columns.front();
  for (const auto& privilege : need.privileges) {
    std::string text;
    if (privilege == "INSERT")
      text = concatenated({"INSERT INTO ", need.table, " (", column, ") SELECT ", column, " FROM ",
                           need.table, none});
    else if (privilege == "UPDATE")
      text = concatenated({"UPDATE ", need.table, " SET ", column, " = ", column, none});
    else text = concatenated({"DELETE FROM ", need.table, none});
    if (trial.run(std::move(text)) == access::refused) lack.privileges.push_back(privilege);
  }
  return lack;
}

std::string grant_statement(connection& connection, dialect_id dialect, const table_need& need) {
  const auto query = user_query(dialect);
  if (query.empty()) return {};
  const auto rows = connection.execute({.text = query, .results = {type::text}}, {}).rows;
  const auto* user = rows.empty() ? nullptr : std::get_if<std::string>(&rows.at(0, 0));
  if (user == nullptr) return {};
  std::string privileges = "SELECT";
  for (const auto& privilege : need.privileges) privileges.append(", ").append(privilege);
  return "GRANT " + privileges + " ON " + need.table + " TO " + *user;
}

std::string enumerated(const std::vector<std::string>& texts) {
  std::string list;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    if (i != 0) list += i + 1 == texts.size() ? " and " : ", ";
    list += texts[i];
  }
  return list;
}

}  // namespace HOLDFAST_NAMESPACE::detail::sql
