#include "store/statements.hpp"

#include "sql/dialect.hpp"
#include "sql/table_prefix.hpp"
#include "store/merge_text.hpp"

#include <algorithm>
#include <set>

namespace HOLDFAST_NAMESPACE {

namespace {

using sql::dialect_id;
using sql::type;

/// Numbers the question marks where the database wants numbers.
std::string numbered(std::string_view text, dialect_id dialect) {
  if (dialect != dialect_id::postgresql) return std::string(text);
  std::string result;
  unsigned next = 0;
  for (const char c : text) {
    if (c == '?') result += "$" + std::to_string(++next);
    else result += c;
  }
  return result;
}

/// A time for a column, and a time from a column, where the column has no zone of its own.
struct time_words {
  std::string zone;
  dialect_id dialect = dialect_id::unknown;

  [[nodiscard]] std::string local(const std::string& moment) const {
    return zone.empty() ? moment : "(" + moment + " AT TIME ZONE " + zone + ")";
  }
  [[nodiscard]] std::string moment(const std::string& column) const {
    return zone.empty() ? moment_text(dialect, column) : column + " AT TIME ZONE " + zone;
  }
};

std::string upsert_text(dialect_id dialect, const std::string& table, type payload, const time_words& time) {
  const std::string into = "INSERT INTO " + table;
  if (dialect == dialect_id::postgresql) {
    const std::string payload_array = payload == type::bytes ? "bytea[]" : "text[]";
    return into + " AS held (" + std::string(entry_columns) + ") SELECT " +
           (time.zone.empty() ? "*" : "n, k, " + time.local("a") + ", " + time.local("e") + ", p, c") +
           " FROM unnest($1::text[], $2::text[], $3::timestamptz[], $4::timestamptz[], $5::" + payload_array + ", $6::text[])" +
           (time.zone.empty() ? "" : " AS given (n, k, a, e, p, c)") +
           " ON CONFLICT (FAILOVER_NAME, FAILOVER_KEY) DO UPDATE SET AS_OF = EXCLUDED.AS_OF, EXPIRE_ON = EXCLUDED.EXPIRE_ON, "
           "PAYLOAD = EXCLUDED.PAYLOAD, PAYLOAD_CLASS = EXCLUDED.PAYLOAD_CLASS WHERE EXCLUDED.AS_OF >= held.AS_OF OR held.AS_OF > " +
           time.local("$7");
  }
  if (dialect == dialect_id::sqlite) return into + " AS held (" + std::string(entry_columns) + ") VALUES ";
  return into + " (" + std::string(entry_columns) + ") VALUES ";
}

/// What follows the rows.
std::string upsert_tail(dialect_id dialect) {
  if (dialect == dialect_id::sqlite) {
    return " ON CONFLICT (FAILOVER_NAME, FAILOVER_KEY) DO UPDATE SET AS_OF = excluded.AS_OF, EXPIRE_ON = excluded.EXPIRE_ON, PAYLOAD = "
           "excluded.PAYLOAD, PAYLOAD_CLASS = excluded.PAYLOAD_CLASS WHERE excluded.AS_OF >= held.AS_OF OR held.AS_OF > ?";
  }
  // MySQL has no guard clause: each column decides by itself, and AS_OF, which they decide by, comes last.
  std::string tail = " ON DUPLICATE KEY UPDATE ";
  for (const std::string_view column : {"EXPIRE_ON", "PAYLOAD", "PAYLOAD_CLASS", "AS_OF"}) {
    if (column != "EXPIRE_ON") tail.append(", ");
    tail.append(column)
        .append(" = IF(VALUES(AS_OF) >= AS_OF OR AS_OF > ?, VALUES(")
        .append(column)
        .append("), ")
        .append(column)
        .append(")");
  }
  return tail;
}

std::string expire_text(dialect_id dialect, const std::string& table, const time_words& time) {
  switch (dialect) {
    case dialect_id::sqlite:
      return "DELETE FROM " + table + " WHERE rowid IN (SELECT rowid FROM " + table + " WHERE EXPIRE_ON < ? ORDER BY EXPIRE_ON LIMIT ?)";
    case dialect_id::postgresql:
      // Rows that somebody is writing now are left for the next time: a cleaner never waits, and never deletes what was just renewed.
      return "DELETE FROM " + table + " WHERE ctid = ANY(ARRAY(SELECT ctid FROM " + table + " WHERE EXPIRE_ON < " + time.local("?") +
             " ORDER BY EXPIRE_ON LIMIT ? FOR UPDATE SKIP LOCKED))";
    case dialect_id::mysql:
    case dialect_id::mariadb:
      return "DELETE FROM " + table + " WHERE EXPIRE_ON < ? ORDER BY EXPIRE_ON LIMIT ?";
    case dialect_id::h2:
      return "DELETE FROM " + table + " WHERE EXPIRE_ON < ? FETCH FIRST ? ROWS ONLY";
    case dialect_id::sqlserver:
      // Nobody waits for rows that somebody is writing. The moment comes first, as everywhere.
      return "WITH bound AS (SELECT CAST(? AS DATETIMEOFFSET(7)) AS MOMENT) DELETE TOP (?) FROM " + table +
             " WITH (ROWLOCK, READPAST) WHERE EXPIRE_ON < (SELECT MOMENT FROM bound)";
    case dialect_id::oracle:
      return "DELETE FROM " + table + " WHERE EXPIRE_ON < ? AND ROWNUM <= ?";
    case dialect_id::unknown:
      break;
  }
  return "DELETE FROM " + table + " WHERE FAILOVER_NAME = ? AND FAILOVER_KEY = ? AND EXPIRE_ON < ?";
}

std::string find_all_text(dialect_id dialect, const std::string& table, const time_words& time, bool after) {
  // Byte order, whatever the column's own collation is; where the column has it already, its index is used.
  const std::string key = dialect == dialect_id::postgresql ? "FAILOVER_KEY COLLATE \"C\"" : "FAILOVER_KEY";
  std::string text = "SELECT FAILOVER_KEY, " + time.moment("AS_OF") + ", " + time.moment("EXPIRE_ON") + ", PAYLOAD, PAYLOAD_CLASS FROM " +
                     table + " WHERE FAILOVER_NAME = ?";
  if (after) text += " AND " + key + " > ?";
  return text + " ORDER BY " + key + std::string(first_rows_text(dialect));
}

std::string first_row(dialect_id dialect) {
  if (dialect == dialect_id::sqlserver) return " OFFSET 0 ROWS FETCH NEXT 1 ROWS ONLY";
  if (dialect == dialect_id::unknown) return {};
  return dialect == dialect_id::oracle ? " FETCH FIRST 1 ROWS ONLY" : " LIMIT 1";
}

/// Some compare the names of tables without case; PostgreSQL cuts each part of a name off after 63 bytes, in silence.
std::string as_databases_see(std::string_view table) {
  constexpr std::size_t most = 63;
  std::string seen;
  std::size_t in_part = 0;
  for (const char c : table) {
    in_part = c == '.' ? 0 : in_part + 1;
    if (in_part <= most) seen += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return seen;
}

/// Those who write all rows into one statement.
void make_upsert(sql::batch_statement& upsert, dialect_id dialect, const std::string& table, type payload, const time_words& time,
                 const store_options& options) {
  upsert.text = options.replace_query ? options.replace_query(store_query::upsert, upsert_text(dialect, table, payload, time))
                                      : upsert_text(dialect, table, payload, time);
  upsert.columns = {type::text, type::text, type::time, type::time, payload, type::text};
  upsert.common.assign(is_mysql(dialect) ? 4 : 1, type::time);
  if (dialect != dialect_id::postgresql) {
    upsert.row = "(?, ?, ?, ?, ?, ?)";
    upsert.tail = upsert_tail(dialect);
  }
}

}  // namespace

std::map<std::string, std::string> prefixes_of_realms(const store_options& options) {
  sql::check_table_prefix(options.prefix);
  if (options.realms.empty()) return {{std::string(), options.prefix}};
  std::map<std::string, std::string> prefixes;
  std::set<std::string> folded;
  for (const auto& [realm, before] : options.realms) {
    const std::string& whole = prefixes[realm] = before + options.prefix;
    sql::check_table_prefix(whole);
    if (!folded.insert(as_databases_see(whole + "FAILOVER_STORE")).second)
      throw error(errc::invalid_argument, "two tenants would share the table " + whole + "FAILOVER_STORE", {.path = "realms"});
  }
  return prefixes;
}

store_statements make_statements(sql::dialect_id dialect, const std::string& prefix, const store_options& options,
                                 const std::string& zone) {
  const time_words time{zone, dialect};
  const std::string given = time.local("?");
  store_statements s{.table = prefix + "FAILOVER_STORE"};
  const std::string& table = s.table;
  const type payload = options.payload == payload_column::bytes ? type::bytes : type::text;
  const std::vector<type> row{type::text, type::text, type::time, type::time, payload, type::text};
  const auto with = [&](store_query which, std::string standard) {
    standard = numbered(standard, dialect);
    return options.replace_query ? options.replace_query(which, standard) : standard;
  };

  s.native = dialect != dialect_id::unknown;
  if (merges(dialect)) {
    s.upsert = merge_statement(dialect, table, payload);
    if (options.replace_query) s.upsert.text = options.replace_query(store_query::upsert, s.upsert.text);
  } else {
    make_upsert(s.upsert, dialect, table, payload, time, options);
  }
  s.insert.text = with(store_query::insert,
                       "INSERT INTO " + table + " (" + std::string(entry_columns) + ") VALUES (?, ?, " + given + ", " + given + ", ?, ?)");
  s.insert.parameters = row;
  s.update.text = with(store_query::update, "UPDATE " + table + " SET AS_OF = " + given + ", EXPIRE_ON = " + given +
                                                ", PAYLOAD = ?, PAYLOAD_CLASS = ? WHERE FAILOVER_NAME = ? AND "
                                                "FAILOVER_KEY = ? AND (AS_OF < " +
                                                given + " OR AS_OF > " + given + ")");
  s.update.parameters = {type::time, type::time, payload, type::text, type::text, type::text, type::time, type::time};

  s.find.text = with(store_query::find, "SELECT " + time.moment("AS_OF") + ", " + time.moment("EXPIRE_ON") +
                                            ", PAYLOAD, PAYLOAD_CLASS FROM " + table + " WHERE FAILOVER_NAME = ? AND FAILOVER_KEY = ?");
  s.find.parameters = {type::text, type::text};
  s.find.results = {type::time, type::time, payload, type::text};

  s.find_first.text = with(store_query::find_all, find_all_text(dialect, table, time, false));
  s.find_first.parameters = {type::text, type::integer};
  s.find_after.text = with(store_query::find_all, find_all_text(dialect, table, time, true));
  s.find_after.parameters = {type::text, type::text, type::integer};
  s.find_first.results = s.find_after.results = {type::text, type::time, type::time, payload, type::text};

  s.erase.text = with(store_query::erase, "DELETE FROM " + table + " WHERE FAILOVER_NAME = ? AND FAILOVER_KEY = ? AND AS_OF >= " + given +
                                              " AND AS_OF < " + given);
  s.erase.parameters = {type::text, type::text, type::time, type::time};

  s.expire.text = with(store_query::expire, expire_text(dialect, table, time));
  s.expire.parameters = {type::time, type::integer};
  if (dialect == dialect_id::unknown) {
    s.expire.parameters = {type::text, type::text, type::time};
    s.expired = {.text = "SELECT FAILOVER_NAME, FAILOVER_KEY FROM " + table + " WHERE EXPIRE_ON < ?",
                 .parameters = {type::time},
                 .results = {type::text, type::text}};
    s.find_first.parameters.pop_back();
    s.find_after.parameters.pop_back();
  }

  s.count.text = with(store_query::count, "SELECT COUNT(*) FROM " + table + " WHERE FAILOVER_NAME = ?");
  s.count.parameters = {type::text};
  s.count.results = {type::integer};

  // Whatever the column's own collation says, another payload is another payload.
  const std::string same = is_mysql(dialect)                  ? "CAST(PAYLOAD AS BINARY) = CAST(? AS BINARY)"
                           : dialect == dialect_id::oracle    ? "DBMS_LOB.COMPARE(PAYLOAD, ?) = 0"
                           : dialect == dialect_id::sqlserver ? "PAYLOAD = CAST(? AS NVARCHAR(MAX))"
                                                              : "PAYLOAD = ?";
  s.rewrite.text =
      with(store_query::rewrite, "UPDATE " + table + " SET PAYLOAD = ? WHERE FAILOVER_NAME = ? AND FAILOVER_KEY = ? AND AS_OF >= " + given +
                                     " AND AS_OF < " + given + " AND " + same);
  s.rewrite.parameters = {payload, type::text, type::text, type::time, type::time, payload};
  const std::string name = dialect == dialect_id::postgresql ? "FAILOVER_NAME COLLATE \"C\"" : "FAILOVER_NAME";
  s.name_after.text =
      with(store_query::name_after, "SELECT FAILOVER_NAME FROM " + table + " WHERE " + name + " > ? ORDER BY " + name + first_row(dialect));
  s.name_after.parameters = {type::text};
  s.name_after.results = {type::text};
  if (dialect == dialect_id::unknown) s.name_after.most_rows = 1;
  return s;
}

}  // namespace HOLDFAST_NAMESPACE
