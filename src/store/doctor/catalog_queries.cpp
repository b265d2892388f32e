#include "store/doctor/catalog_queries.hpp"

#include <sys/vfs.h>

#include <algorithm>
#include <array>
#include <utility>

namespace HOLDFAST_NAMESPACE::detail::store {

namespace {

using sql::dialect_id;
using sql::type;

/// The queries of one dialect. The result columns are the same in all dialects.
struct catalog_queries {
  /// -> name, value, source
  std::string_view server;
  /// table, qualifier -> the columns that read_column reads
  std::string_view columns;
  /// table, qualifier -> index name, sort (primary, constraint, unique, plain), column; in order
  std::string_view indexes;
  /// table, qualifier -> table_facts::storage; no row if the table does not exist
  std::string_view storage;
};

// to_regclass finds the table as a statement would: with folded case and along the search path.
// Partial and invalid indexes are ignored.
constexpr catalog_queries postgresql_queries{
    .server = R"sql(
SELECT name, setting, source FROM pg_settings WHERE name IN ('server_version', 'fsync',
  'full_page_writes', 'synchronous_commit', 'server_encoding', 'default_transaction_read_only')
UNION ALL SELECT 'user', quote_ident(current_user), ''
UNION ALL SELECT 'database', quote_ident(current_database()), ''
UNION ALL SELECT 'standby', CASE WHEN pg_is_in_recovery() THEN 'on' ELSE 'off' END, '')sql",
    .columns = R"sql(
SELECT upper(a.attname), format_type(a.atttypid, a.atttypmod),
  CASE WHEN t.typname IN ('text', 'varchar', 'bpchar') THEN 'text'
       WHEN t.typname = 'bytea' THEN 'bytes'
       WHEN t.typname = 'timestamptz' THEN 'time'
       WHEN t.typname = 'timestamp' THEN 'local_time' ELSE 'other' END,
  CASE WHEN t.typname IN ('varchar', 'bpchar') AND a.atttypmod > 4
       THEN a.atttypmod - 4 ELSE 0 END::bigint,
  CASE WHEN t.typname IN ('timestamp', 'timestamptz') AND a.atttypmod >= 0
       THEN a.atttypmod ELSE 6 END::bigint,
  coalesce(c.collname, '')::text,
  CASE WHEN t.typname = 'bpchar' OR NOT coalesce(c.collisdeterministic, true) THEN 0 ELSE 1 END,
  1, a.attnotnull::int,
  CASE WHEN a.attnotnull AND NOT a.atthasdef AND a.attidentity = '' THEN 1 ELSE 0 END
FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid
LEFT JOIN pg_collation c ON c.oid = a.attcollation
WHERE a.attrelid = to_regclass($1 || $2) AND a.attnum > 0 AND NOT a.attisdropped
ORDER BY a.attnum)sql",
    .indexes = R"sql(
SELECT CASE WHEN c.oid IS NULL THEN i.indexrelid::regclass::text ELSE quote_ident(c.conname) END,
  CASE WHEN i.indisprimary THEN 'primary' WHEN c.oid IS NOT NULL THEN 'constraint'
       WHEN i.indisunique THEN 'unique' ELSE 'plain' END,
  coalesce(upper(a.attname), '')
FROM pg_index i
LEFT JOIN pg_constraint c ON c.conindid = i.indexrelid AND c.contype IN ('p', 'u', 'x')
CROSS JOIN LATERAL unnest(i.indkey::int2[]) WITH ORDINALITY AS k(number, ordinal)
LEFT JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.number
WHERE i.indrelid = to_regclass($1 || $2) AND i.indisvalid AND i.indpred IS NULL
  AND k.ordinal <= i.indnkeyatts
ORDER BY i.indexrelid, k.ordinal)sql",
    .storage = R"sql(
SELECT CASE WHEN c.relkind NOT IN ('r', 'p') THEN 'no table'
  WHEN c.relpersistence = 'u' THEN 'unlogged' WHEN c.relpersistence = 't' THEN 'temporary'
  ELSE '' END
FROM pg_class c WHERE c.oid = to_regclass($1 || $2))sql",
};

// The server compares table names, since case sensitivity depends on its file system.
constexpr catalog_queries mysql_queries{
    .server = R"sql(
SELECT 'version', VERSION(), '' UNION ALL
SELECT 'user', CONCAT(
  QUOTE(LEFT(CURRENT_USER(), CHAR_LENGTH(CURRENT_USER())
    - CHAR_LENGTH(SUBSTRING_INDEX(CURRENT_USER(), '@', -1)) - 1)),
  '@', QUOTE(SUBSTRING_INDEX(CURRENT_USER(), '@', -1))), '' UNION ALL
SELECT 'database', DATABASE(), '' UNION ALL
SELECT 'innodb_flush_log_at_trx_commit',
  CAST(@@GLOBAL.innodb_flush_log_at_trx_commit AS CHAR), '' UNION ALL
SELECT 'innodb_doublewrite', CAST(@@GLOBAL.innodb_doublewrite AS CHAR), '' UNION ALL
SELECT 'log_bin', CAST(@@GLOBAL.log_bin AS CHAR), '' UNION ALL
SELECT 'sync_binlog', CAST(@@GLOBAL.sync_binlog AS CHAR), '' UNION ALL
SELECT 'max_allowed_packet', CAST(@@GLOBAL.max_allowed_packet AS CHAR), '' UNION ALL
SELECT 'read_only', CAST(@@GLOBAL.read_only AS CHAR), '')sql",
    .columns = R"sql(
SELECT UPPER(COLUMN_NAME), COLUMN_TYPE,
  CASE WHEN DATA_TYPE IN ('char', 'varchar', 'tinytext', 'text', 'mediumtext', 'longtext')
       THEN 'text'
       WHEN DATA_TYPE IN ('binary', 'varbinary', 'tinyblob', 'blob', 'mediumblob', 'longblob')
       THEN 'bytes'
       WHEN DATA_TYPE IN ('datetime', 'timestamp') THEN 'time' ELSE 'other' END,
  CASE WHEN DATA_TYPE IN ('longtext', 'longblob') THEN 0
       ELSE CAST(COALESCE(CHARACTER_MAXIMUM_LENGTH, 0) AS SIGNED) END,
  CAST(COALESCE(DATETIME_PRECISION, 6) AS SIGNED), COALESCE(COLLATION_NAME, ''),
  CASE WHEN DATA_TYPE IN ('char', 'binary') THEN 0
       WHEN COLLATION_NAME IS NULL OR COLLATION_NAME LIKE '%\_nopad\_bin'
         OR COLLATION_NAME LIKE '%\_0900\_bin' THEN 1 ELSE 0 END,
  CASE WHEN COALESCE(CHARACTER_SET_NAME, 'utf8mb4') = 'utf8mb4' THEN 1 ELSE 0 END,
  CASE WHEN IS_NULLABLE = 'NO' THEN 1 ELSE 0 END,
  CASE WHEN IS_NULLABLE = 'NO' AND COLUMN_DEFAULT IS NULL AND EXTRA NOT LIKE '%auto_increment%'
    AND EXTRA NOT LIKE '%GENERATED%' THEN 1 ELSE 0 END
FROM information_schema.COLUMNS
WHERE TABLE_NAME = ? AND TABLE_SCHEMA = COALESCE(NULLIF(?, ''), DATABASE())
ORDER BY ORDINAL_POSITION)sql",
    .indexes = R"sql(
SELECT INDEX_NAME,
  CASE WHEN INDEX_NAME = 'PRIMARY' THEN 'primary' WHEN NON_UNIQUE = 0 THEN 'unique'
       ELSE 'plain' END,
  CONCAT(UPPER(COALESCE(COLUMN_NAME, '')),
    CASE WHEN SUB_PART IS NULL THEN '' ELSE CONCAT('(', SUB_PART, ')') END)
FROM information_schema.STATISTICS
WHERE TABLE_NAME = ? AND TABLE_SCHEMA = COALESCE(NULLIF(?, ''), DATABASE())
ORDER BY INDEX_NAME, SEQ_IN_INDEX)sql",
    .storage = R"sql(
SELECT CASE WHEN TABLE_TYPE IN ('BASE TABLE', 'SYSTEM VERSIONED') THEN COALESCE(ENGINE, '')
  ELSE 'no table' END
FROM information_schema.TABLES
WHERE TABLE_NAME = ? AND TABLE_SCHEMA = COALESCE(NULLIF(?, ''), DATABASE()))sql",
};

// SQLite derives the affinity of a column from keywords in its type. The affinity decides which
// values are converted when they are stored.
constexpr catalog_queries sqlite_queries{
    .server = R"sql(
SELECT 'version', sqlite_version(), '' UNION ALL
SELECT 'database', file, '' FROM pragma_database_list WHERE name = 'main' UNION ALL
SELECT 'journal_mode', journal_mode, '' FROM pragma_journal_mode UNION ALL
SELECT 'synchronous', CAST(synchronous AS TEXT), '' FROM pragma_synchronous)sql",
    .columns = R"sql(
SELECT upper(c.name), c.type,
  CASE WHEN upper(c.type) LIKE '%INT%' THEN 'time'
       WHEN upper(c.type) LIKE '%CHAR%' OR upper(c.type) LIKE '%CLOB%'
         OR upper(c.type) LIKE '%TEXT%' THEN 'text'
       WHEN upper(c.type) LIKE '%BLOB%' OR c.type = '' THEN 'anything'
       WHEN upper(c.type) LIKE '%REAL%' OR upper(c.type) LIKE '%FLOA%'
         OR upper(c.type) LIKE '%DOUB%' THEN 'other'
       ELSE 'time' END,
  0, 6, coalesce(k.coll, 'BINARY'),
  CASE WHEN coalesce(k.coll, 'BINARY') = 'BINARY' THEN 1 ELSE 0 END, 1, c."notnull",
  CASE WHEN c."notnull" = 1 AND c.dflt_value IS NULL THEN 1 ELSE 0 END
FROM pragma_table_info(?1, coalesce(nullif(?2, ''), 'main')) c
LEFT JOIN (SELECT x.name AS name, max(x.coll) AS coll
  FROM pragma_index_list(?1, coalesce(nullif(?2, ''), 'main')) l,
    pragma_index_xinfo(l.name, coalesce(nullif(?2, ''), 'main')) x
  WHERE x.key = 1 AND l."unique" = 1 GROUP BY x.name) k ON k.name = c.name
ORDER BY c.cid)sql",
    .indexes = R"sql(
SELECT l.name,
  CASE WHEN l.origin = 'pk' THEN 'primary' WHEN l."unique" THEN 'unique' ELSE 'plain' END,
  coalesce(upper(x.name), '')
FROM pragma_index_list(?1, coalesce(nullif(?2, ''), 'main')) l,
  pragma_index_xinfo(l.name, coalesce(nullif(?2, ''), 'main')) x
WHERE x.key = 1 AND l.partial = 0 ORDER BY l.name, x.seqno)sql",
    .storage = R"sql(
SELECT CASE WHEN type = 'table' THEN '' ELSE 'no table' END FROM pragma_table_list
WHERE name = ?1 COLLATE NOCASE AND schema = coalesce(nullif(?2, ''), 'main') COLLATE NOCASE)sql",
};

const catalog_queries* find_queries(dialect_id dialect) noexcept {
  switch (dialect) {
    case dialect_id::postgresql:
      return &postgresql_queries;
    case dialect_id::mysql:
    case dialect_id::mariadb:
      return &mysql_queries;
    case dialect_id::sqlite:
      return &sqlite_queries;
    default:
      return nullptr;
  }
}

const catalog_queries& queries_for(dialect_id dialect) {
  const auto* const queries = find_queries(dialect);
  if (queries == nullptr)
    throw error(errc::unsupported_type, "a database of this dialect cannot be probed");
  return *queries;
}

std::string text_at(const sql::rows& rows, std::size_t row, std::size_t column) {
  const auto* text = std::get_if<std::string>(&rows.at(row, column));
  return text != nullptr ? *text : std::string();
}

std::int64_t number_at(const sql::rows& rows, std::size_t row, std::size_t column) {
  const auto* number = std::get_if<std::int64_t>(&rows.at(row, column));
  return number != nullptr ? *number : 0;
}

/// Reads a kind as the queries name it.
column_kind kind_of(std::string_view name) {
  if (name == "text") return column_kind::text;
  if (name == "bytes") return column_kind::bytes;
  if (name == "time") return column_kind::time;
  if (name == "local_time") return column_kind::local_time;
  if (name == "anything") return column_kind::anything;
  return column_kind::other;
}

column_facts read_column(const sql::rows& rows, std::size_t row) {
  return {.name = text_at(rows, row, 0),
          .type = text_at(rows, row, 1),
          .kind = kind_of(text_at(rows, row, 2)),
          .length = number_at(rows, row, 3),
          .digits = number_at(rows, row, 4),
          .collation = text_at(rows, row, 5),
          .exact = number_at(rows, row, 6) != 0,
          .whole_unicode = number_at(rows, row, 7) != 0,
          .not_null = number_at(rows, row, 8) != 0,
          .needs_value = number_at(rows, row, 9) != 0};
}

/// Groups the rows, one for each column of an index, by index.
std::vector<index_facts> read_indexes(const sql::rows& rows) {
  std::vector<index_facts> indexes;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    auto name = text_at(rows, i, 0);
    const auto sort = text_at(rows, i, 1);
    if (indexes.empty() || indexes.back().name != name) {
      indexes.push_back({.name = std::move(name),
                         .primary = sort == "primary",
                         .constraint = sort == "primary" || sort == "constraint",
                         .unique = sort != "plain"});
    }
    indexes.back().columns.push_back(text_at(rows, i, 2));
  }
  return indexes;
}

/// Returns the type of the file system of a file if a database on it is at risk (tmpfs, nfs, ...),
/// otherwise an empty string.
std::string risky_file_system(const std::string& file) {
  // The magic numbers of the Linux kernel; see statfs(2).
  static constexpr std::pair<std::int64_t, std::string_view> names[]{
      {0x01021994, "tmpfs"}, {0x858458f6, "ramfs"}, {0x6969, "nfs"},    {0xff534d42, "cifs"},
      {0xfe534d42, "smb"},   {0x00c36400, "ceph"},  {0x01021997, "9p"}, {0x65735546, "fuse"}};
  struct statfs status{};
  if (file.empty() || statfs(file.c_str(), &status) != 0) return {};
  const auto type = static_cast<std::int64_t>(status.f_type) & 0xffffffff;
  for (const auto& [magic, name] : names) {
    if (magic == type) return std::string(name);
  }
  return {};
}

}  // namespace

bool has_catalog_queries(dialect_id dialect) noexcept { return find_queries(dialect) != nullptr; }

server_facts query_server(sql::connection& connection, dialect_id dialect) {
  server_facts result{.dialect = dialect};
  const auto rows = connection
                        .execute({.text = std::string(queries_for(dialect).server),
                                  .results = {type::text, type::text, type::text}},
                                 {})
                        .rows;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    auto name = text_at(rows, i, 0);
    auto value = text_at(rows, i, 1);
    if (name == "version" || name == "server_version") result.version = std::move(value);
    else if (name == "user") result.user = std::move(value);
    else if (name == "database") result.database = std::move(value);
    else
      result.settings.push_back(
          {.name = std::move(name), .value = std::move(value), .source = text_at(rows, i, 2)});
  }
  if (dialect == dialect_id::sqlite)
    result.settings.push_back({.name = "file_system", .value = risky_file_system(result.database)});
  return result;
}

table_facts query_table(sql::connection& connection, dialect_id dialect, const std::string& name) {
  table_facts result{.name = name};
  const auto& queries = queries_for(dialect);
  // PostgreSQL takes the qualified name, the others take table and qualifier.
  const auto dot = dialect == dialect_id::postgresql ? std::string::npos : name.rfind('.');
  const std::string table = name.substr(dot + 1);
  const std::string qualifier = dot == std::string::npos ? std::string() : name.substr(0, dot);
  const std::array<sql::parameter, 2> parameters{std::string_view(table),
                                                 std::string_view(qualifier)};
  const auto query = [&](std::string_view text, std::vector<type> results) {
    return connection
        .execute({.text = std::string(text),
                  .parameters = {type::text, type::text},
                  .results = std::move(results)},
                 parameters)
        .rows;
  };

  const auto storage = query(queries.storage, {type::text});
  result.exists = !storage.empty();
  if (!result.exists) return result;
  result.storage = text_at(storage, 0, 0);

  const auto columns = query(
      queries.columns, {type::text, type::text, type::text, type::integer, type::integer,
                        type::text, type::integer, type::integer, type::integer, type::integer});
  for (std::size_t i = 0; i < columns.size(); ++i)
    result.columns.push_back(read_column(columns, i));
  result.indexes = read_indexes(query(queries.indexes, {type::text, type::text, type::text}));
  return result;
}

}  // namespace HOLDFAST_NAMESPACE::detail::store
