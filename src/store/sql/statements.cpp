#include "store/sql/statements.hpp"

#include "sql/dialect.hpp"
#include "sql/placeholders.hpp"
#include "sql/table_prefix.hpp"
#include "store/sql/dialect_expressions.hpp"
#include "store/sql/upsert.hpp"

#include <algorithm>
#include <set>

namespace HOLDFAST_NAMESPACE::detail::store {

namespace {

using sql::dialect_id;
using sql::type;

/// Builds the statements of one table, one function for each.
class statement_builder {
 public:
  statement_builder(dialect_id dialect, std::string table, const store_options& options,
                    std::string zone)
      : dialect_(dialect),
        table_(std::move(table)),
        options_(options),
        payload_(options.payload == payload_column::bytes ? type::bytes : type::text),
        time_{.dialect = dialect, .zone = std::move(zone)},
        time_parameter_(time_.to_column("?")) {}

  [[nodiscard]] sql::batch_statement upsert() const {
    if (dialect_ == dialect_id::unknown) return {};
    auto s = make_upsert(table_, payload_, time_);
    if (options_.replace_query) s.text = options_.replace_query(store_query::upsert, s.text);
    return s;
  }

  [[nodiscard]] sql::statement insert() const {
    return {
        .text = text(store_query::insert, "INSERT INTO " + table_ + " (" +
                                              std::string(entry_columns) + ") VALUES (?, ?, " +
                                              time_parameter_ + ", " + time_parameter_ + ", ?, ?)"),
        .parameters = {type::text, type::text, type::time, type::time, payload_, type::text}};
  }

  [[nodiscard]] sql::statement update() const {
    return {.text = text(store_query::update,
                         "UPDATE " + table_ + " SET AS_OF = " + time_parameter_ +
                             ", EXPIRE_ON = " + time_parameter_ +
                             ", PAYLOAD = ?, PAYLOAD_CLASS = ? WHERE FAILOVER_NAME = ? AND "
                             "FAILOVER_KEY = ? AND (AS_OF < " +
                             time_parameter_ + " OR AS_OF > " + time_parameter_ + ")"),
            .parameters = {type::time, type::time, payload_, type::text, type::text, type::text,
                           type::time, type::time}};
  }

  [[nodiscard]] sql::statement find() const {
    return {.text = text(store_query::find, find_text()),
            .parameters = {type::text, type::text},
            .results = {type::time, type::time, payload_, type::text}};
  }

  [[nodiscard]] std::map<std::size_t, sql::statement> find_many() const {
    std::map<std::size_t, sql::statement> statements;
    const bool find_is_replaced = text(store_query::find, find_text()) != numbered(find_text());
    for (const std::size_t keys : find_many_sizes) {
      std::string standard = "SELECT FAILOVER_KEY, " + time_.from_column("AS_OF") + ", " +
                             time_.from_column("EXPIRE_ON") + ", PAYLOAD, PAYLOAD_CLASS FROM " +
                             table_ + " WHERE FAILOVER_NAME = ? AND FAILOVER_KEY IN (?";
      for (std::size_t i = 1; i < keys; ++i) standard += ", ?";
      standard += ")" + read_again();
      sql::statement s{.text = text(store_query::find_many, standard),
                       .parameters = std::vector<type>(1 + keys, type::text),
                       .results = {type::text, type::time, type::time, payload_, type::text}};
      // The replaced statement may read another table.
      if (find_is_replaced && s.text == numbered(standard)) return {};
      statements.emplace(keys, std::move(s));
    }
    return statements;
  }

  /// The first page, or the page after a key.
  [[nodiscard]] sql::statement find_all(bool after_key) const {
    sql::statement s{.text = text(store_query::find_all, find_all_text(after_key)),
                     .parameters = {type::text},
                     .results = {type::text, type::time, type::time, payload_, type::text}};
    if (after_key) s.parameters.push_back(type::text);
    if (dialect_ != dialect_id::unknown) s.parameters.push_back(type::integer);
    return s;
  }

  [[nodiscard]] sql::statement erase() const {
    return {.text = text(store_query::erase,
                         "DELETE FROM " + table_ +
                             " WHERE FAILOVER_NAME = ? AND FAILOVER_KEY = ? AND AS_OF >= " +
                             time_parameter_ + " AND AS_OF < " + time_parameter_),
            .parameters = {type::text, type::text, type::time, type::time}};
  }

  [[nodiscard]] sql::statement expire() const {
    sql::statement s{.text = text(store_query::expire, expire_text()),
                     .parameters = {type::time, type::integer}};
    if (dialect_ == dialect_id::unknown) s.parameters = {type::text, type::text, type::time};
    return s;
  }

  [[nodiscard]] sql::statement expired() const {
    if (dialect_ != dialect_id::unknown) return {};
    return {.text = "SELECT FAILOVER_NAME, FAILOVER_KEY FROM " + table_ + " WHERE EXPIRE_ON < ?",
            .parameters = {type::time},
            .results = {type::text, type::text}};
  }

  [[nodiscard]] sql::statement count() const {
    return {.text = text(store_query::count,
                         "SELECT COUNT(*) FROM " + table_ + " WHERE FAILOVER_NAME = ?"),
            .parameters = {type::text},
            .results = {type::integer}};
  }

  [[nodiscard]] sql::statement expiring() const {
    if (dialect_ == dialect_id::unknown) return {};
    std::string standard = "SELECT COUNT(*)";
    for (std::size_t i = 0; i < holdfast::store::max_expiry_times; ++i)
      standard += ", COUNT(CASE WHEN EXPIRE_ON < " + time_parameter_ + " THEN 1 END)";
    // The limit bounds the time; the order is that of the primary key.
    standard += " FROM (SELECT EXPIRE_ON FROM " + table_ + " WHERE FAILOVER_NAME = ?" +
                read_again() + " ORDER BY FAILOVER_KEY" + row_limit(dialect_, "?") +
                ") counted_rows";
    sql::statement s{
        .text = text(store_query::expiring, standard),
        .parameters = std::vector<type>(holdfast::store::max_expiry_times, type::time),
        .results = std::vector<type>(1 + holdfast::store::max_expiry_times, type::integer)};
    s.parameters.push_back(type::text);
    s.parameters.push_back(type::integer);
    // The replaced statement may read another table.
    const std::string first_page = find_all_text(false);
    const bool find_all_is_replaced =
        text(store_query::find_all, first_page) != numbered(first_page);
    if (find_all_is_replaced && s.text == numbered(standard)) return {};
    return s;
  }

  [[nodiscard]] sql::statement rewrite() const {
    return {.text = text(store_query::rewrite,
                         "UPDATE " + table_ +
                             " SET PAYLOAD = ? WHERE FAILOVER_NAME = ? AND FAILOVER_KEY = ? AND "
                             "AS_OF >= " +
                             time_parameter_ + " AND AS_OF < " + time_parameter_ + " AND " +
                             payload_equals_parameter()),
            .parameters = {payload_, type::text, type::text, type::time, type::time, payload_}};
  }

  [[nodiscard]] sql::statement name_after() const {
    const std::string name = in_byte_order("FAILOVER_NAME");
    return {.text = text(store_query::name_after, "SELECT FAILOVER_NAME FROM " + table_ +
                                                      " WHERE " + name + " > ? ORDER BY " + name +
                                                      row_limit(dialect_, "1")),
            .parameters = {type::text},
            .results = {type::text},
            .most_rows = dialect_ == dialect_id::unknown ? 1U : 0U};
  }

 private:
  [[nodiscard]] std::string text(store_query query, const std::string& standard) const {
    auto result = numbered(standard);
    return options_.replace_query ? options_.replace_query(query, result) : result;
  }
  [[nodiscard]] std::string numbered(const std::string& standard) const {
    return dialect_ == dialect_id::postgresql ? sql::number_placeholders(standard) : standard;
  }

  [[nodiscard]] std::string find_text() const {
    return "SELECT " + time_.from_column("AS_OF") + ", " + time_.from_column("EXPIRE_ON") +
           ", PAYLOAD, PAYLOAD_CLASS FROM " + table_ +
           " WHERE FAILOVER_NAME = ? AND FAILOVER_KEY = ?" + read_again();
  }

  [[nodiscard]] std::string find_all_text(bool after_key) const {
    const std::string key = in_byte_order("FAILOVER_KEY");
    return "SELECT FAILOVER_KEY, " + time_.from_column("AS_OF") + ", " +
           time_.from_column("EXPIRE_ON") + ", PAYLOAD, PAYLOAD_CLASS FROM " + table_ +
           " WHERE FAILOVER_NAME = ?" + (after_key ? " AND " + key + " > ?" : "") + " ORDER BY " +
           key + row_limit(dialect_, "?");
  }

  /// H2 gives the last result of a query again if no statement has changed the table since. It does
  /// not notice the commit of an earlier change. It executes a query again that is not
  /// deterministic.
  [[nodiscard]] std::string read_again() const {
    return dialect_ == dialect_id::h2 ? " AND RAND() >= 0" : "";
  }

  /// Orders by bytes even if the column has another collation. The index is used if the column has
  /// this collation.
  [[nodiscard]] std::string in_byte_order(const std::string& column) const {
    return dialect_ == dialect_id::postgresql ? column + " COLLATE \"C\"" : column;
  }

  /// Compares payloads byte by byte even if the column has another collation.
  [[nodiscard]] std::string payload_equals_parameter() const {
    if (sql::is_mysql(dialect_)) return "CAST(PAYLOAD AS BINARY) = CAST(? AS BINARY)";
    if (dialect_ == dialect_id::oracle) return "DBMS_LOB.COMPARE(PAYLOAD, ?) = 0";
    if (dialect_ == dialect_id::sqlserver) return "PAYLOAD = CAST(? AS NVARCHAR(MAX))";
    return "PAYLOAD = ?";
  }

  [[nodiscard]] std::string expire_text() const {
    const std::string delete_from = "DELETE FROM " + table_ + " WHERE ";
    switch (dialect_) {
      case dialect_id::sqlite:
        return delete_from + "rowid IN (SELECT rowid FROM " + table_ +
               " WHERE EXPIRE_ON < ? ORDER BY EXPIRE_ON LIMIT ?)";
      case dialect_id::postgresql:
        // Skips rows that other transactions are writing: a cleanup never waits and never deletes
        // an entry that was just renewed.
        return delete_from + "ctid = ANY(ARRAY(SELECT ctid FROM " + table_ + " WHERE EXPIRE_ON < " +
               time_parameter_ + " ORDER BY EXPIRE_ON LIMIT ? FOR UPDATE SKIP LOCKED))";
      case dialect_id::mysql:
      case dialect_id::mariadb:
        return delete_from + "EXPIRE_ON < ? ORDER BY EXPIRE_ON LIMIT ?";
      case dialect_id::h2:
        return delete_from + "EXPIRE_ON < ? FETCH FIRST ? ROWS ONLY";
      case dialect_id::sqlserver:
        // READPAST skips locked rows. The subquery keeps the order of parameters: time, then limit.
        return "WITH bound AS (SELECT CAST(? AS DATETIMEOFFSET(7)) AS MOMENT) DELETE TOP (?) "
               "FROM " +
               table_ + " WITH (ROWLOCK, READPAST) WHERE EXPIRE_ON < (SELECT MOMENT FROM bound)";
      case dialect_id::oracle:
        return delete_from + "EXPIRE_ON < ? AND ROWNUM <= ?";
      case dialect_id::unknown:
        break;
    }
    return delete_from + "FAILOVER_NAME = ? AND FAILOVER_KEY = ? AND EXPIRE_ON < ?";
  }

  dialect_id dialect_;
  std::string table_;
  const store_options& options_;
  type payload_;
  time_expressions time_;
  std::string time_parameter_;
};

/// Returns a table name as the least precise database sees it: some ignore case, and PostgreSQL
/// truncates each part of a name to 63 bytes.
std::string folded_table_name(std::string_view table) {
  constexpr std::size_t max_length = 63;
  std::string folded;
  std::size_t length = 0;  // of the current part
  for (const char c : table) {
    length = c == '.' ? 0 : length + 1;
    if (length <= max_length) folded += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return folded;
}

}  // namespace

std::map<std::string, std::string> prefixes_of_realms(const store_options& options) {
  detail::sql::check_table_prefix(options.prefix);
  if (options.realms.empty()) return {{std::string(), options.prefix}};
  std::map<std::string, std::string> prefixes;
  std::set<std::string> tables;
  for (const auto& [realm, realm_prefix] : options.realms) {
    const std::string& prefix = prefixes[realm] = realm_prefix + options.prefix;
    detail::sql::check_table_prefix(prefix);
    if (!tables.insert(folded_table_name(prefix + "FAILOVER_STORE")).second)
      throw error(errc::invalid_argument,
                  "two tenants would share the table " + prefix + "FAILOVER_STORE",
                  {.path = "realms"});
  }
  return prefixes;
}

store_statements make_statements(dialect_id dialect, const std::string& prefix,
                                 const store_options& options, const std::string& zone) {
  const std::string table = prefix + "FAILOVER_STORE";
  const statement_builder build(dialect, table, options, zone);
  return {.table = table,
          .upsert = build.upsert(),
          .insert = build.insert(),
          .update = build.update(),
          .find = build.find(),
          .find_many = build.find_many(),
          .find_first = build.find_all(false),
          .find_after = build.find_all(true),
          .erase = build.erase(),
          .expire = build.expire(),
          .expired = build.expired(),
          .count = build.count(),
          .expiring = build.expiring(),
          .rewrite = build.rewrite(),
          .name_after = build.name_after(),
          .native = dialect != dialect_id::unknown};
}

}  // namespace HOLDFAST_NAMESPACE::detail::store
