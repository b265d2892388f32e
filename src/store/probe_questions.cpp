#include "store/probe_facts.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace HOLDFAST_NAMESPACE::probing {

namespace {

using sql::dialect_id;
using sql::type;

/// What is asked of a database, in its words. Whatever the words, the answers have the same columns.
struct questions {
  std::string_view server;   ///< -> name, value, who set it
  std::string_view columns;  ///< table, qualifier -> those of read_column
  std::string_view indexes;  ///< table, qualifier -> name, sort (primary, constraint, unique, plain), column; in order
  std::string_view storage;  ///< table, qualifier -> what keeps it; no row when there is no such table
};

// PostgreSQL finds the table as it finds it in a statement, by to_regclass: folded, and along the search path. An index that is partial,
// or not built yet, does not count.
constexpr questions postgresql{
    .server = R"sql(
SELECT name, setting, source FROM pg_settings WHERE name IN ('server_version', 'fsync', 'full_page_writes', 'synchronous_commit',
  'server_encoding', 'default_transaction_read_only')
UNION ALL SELECT 'user', quote_ident(current_user), ''
UNION ALL SELECT 'database', quote_ident(current_database()), ''
UNION ALL SELECT 'standby', CASE WHEN pg_is_in_recovery() THEN 'on' ELSE 'off' END, '')sql",
    .columns = R"sql(
SELECT upper(a.attname), format_type(a.atttypid, a.atttypmod),
  CASE WHEN t.typname IN ('text', 'varchar', 'bpchar') THEN 'text' WHEN t.typname = 'bytea' THEN 'bytes'
       WHEN t.typname = 'timestamptz' THEN 'moment' WHEN t.typname = 'timestamp' THEN 'local' ELSE 'other' END,
  CASE WHEN t.typname IN ('varchar', 'bpchar') AND a.atttypmod > 4 THEN a.atttypmod - 4 ELSE 0 END::bigint,
  CASE WHEN t.typname IN ('timestamp', 'timestamptz') AND a.atttypmod >= 0 THEN a.atttypmod ELSE 6 END::bigint,
  coalesce(c.collname, '')::text,
  CASE WHEN t.typname = 'bpchar' OR NOT coalesce(c.collisdeterministic, true) THEN 0 ELSE 1 END,
  1, a.attnotnull::int,
  CASE WHEN a.attnotnull AND NOT a.atthasdef AND a.attidentity = '' THEN 1 ELSE 0 END
FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid LEFT JOIN pg_collation c ON c.oid = a.attcollation
WHERE a.attrelid = to_regclass($1 || $2) AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum)sql",
    .indexes = R"sql(
SELECT CASE WHEN c.oid IS NULL THEN i.indexrelid::regclass::text ELSE quote_ident(c.conname) END,
  CASE WHEN i.indisprimary THEN 'primary' WHEN c.oid IS NOT NULL THEN 'constraint' WHEN i.indisunique THEN 'unique' ELSE 'plain' END,
  coalesce(upper(a.attname), '')
FROM pg_index i LEFT JOIN pg_constraint c ON c.conindid = i.indexrelid AND c.contype IN ('p', 'u', 'x')
CROSS JOIN LATERAL unnest(i.indkey::int2[]) WITH ORDINALITY AS k(number, place)
LEFT JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.number
WHERE i.indrelid = to_regclass($1 || $2) AND i.indisvalid AND i.indpred IS NULL AND k.place <= i.indnkeyatts
ORDER BY i.indexrelid, k.place)sql",
    .storage = R"sql(
SELECT CASE WHEN c.relkind NOT IN ('r', 'p') THEN 'no table' WHEN c.relpersistence = 'u' THEN 'unlogged'
  WHEN c.relpersistence = 't' THEN 'temporary' ELSE '' END FROM pg_class c WHERE c.oid = to_regclass($1 || $2))sql",
};

// Names of tables are compared as the server compares them, which depends on the file system below it.
constexpr questions mysql{
    .server = R"sql(
SELECT 'version', VERSION(), '' UNION ALL
SELECT 'user', CONCAT(QUOTE(LEFT(CURRENT_USER(), CHAR_LENGTH(CURRENT_USER()) - CHAR_LENGTH(SUBSTRING_INDEX(CURRENT_USER(), '@', -1)) - 1)),
  '@', QUOTE(SUBSTRING_INDEX(CURRENT_USER(), '@', -1))), '' UNION ALL
SELECT 'database', DATABASE(), '' UNION ALL
SELECT 'innodb_flush_log_at_trx_commit', CAST(@@GLOBAL.innodb_flush_log_at_trx_commit AS CHAR), '' UNION ALL
SELECT 'innodb_doublewrite', CAST(@@GLOBAL.innodb_doublewrite AS CHAR), '' UNION ALL
SELECT 'log_bin', CAST(@@GLOBAL.log_bin AS CHAR), '' UNION ALL
SELECT 'sync_binlog', CAST(@@GLOBAL.sync_binlog AS CHAR), '' UNION ALL
SELECT 'max_allowed_packet', CAST(@@GLOBAL.max_allowed_packet AS CHAR), '' UNION ALL
SELECT 'read_only', CAST(@@GLOBAL.read_only AS CHAR), '')sql",
    .columns = R"sql(
SELECT UPPER(COLUMN_NAME), COLUMN_TYPE,
  CASE WHEN DATA_TYPE IN ('char', 'varchar', 'tinytext', 'text', 'mediumtext', 'longtext') THEN 'text'
       WHEN DATA_TYPE IN ('binary', 'varbinary', 'tinyblob', 'blob', 'mediumblob', 'longblob') THEN 'bytes'
       WHEN DATA_TYPE IN ('datetime', 'timestamp') THEN 'moment' ELSE 'other' END,
  CASE WHEN DATA_TYPE IN ('longtext', 'longblob') THEN 0 ELSE CAST(COALESCE(CHARACTER_MAXIMUM_LENGTH, 0) AS SIGNED) END,
  CAST(COALESCE(DATETIME_PRECISION, 6) AS SIGNED), COALESCE(COLLATION_NAME, ''),
  CASE WHEN DATA_TYPE IN ('char', 'binary') THEN 0
       WHEN COLLATION_NAME IS NULL OR COLLATION_NAME LIKE '%\_nopad\_bin' OR COLLATION_NAME LIKE '%\_0900\_bin' THEN 1 ELSE 0 END,
  CASE WHEN COALESCE(CHARACTER_SET_NAME, 'utf8mb4') = 'utf8mb4' THEN 1 ELSE 0 END,
  CASE WHEN IS_NULLABLE = 'NO' THEN 1 ELSE 0 END,
  CASE WHEN IS_NULLABLE = 'NO' AND COLUMN_DEFAULT IS NULL AND EXTRA NOT LIKE '%auto_increment%' AND EXTRA NOT LIKE '%GENERATED%' THEN 1 ELSE 0 END
FROM information_schema.COLUMNS WHERE TABLE_NAME = ? AND TABLE_SCHEMA = COALESCE(NULLIF(?, ''), DATABASE()) ORDER BY ORDINAL_POSITION)sql",
    .indexes = R"sql(
SELECT INDEX_NAME, CASE WHEN INDEX_NAME = 'PRIMARY' THEN 'primary' WHEN NON_UNIQUE = 0 THEN 'unique' ELSE 'plain' END,
  CONCAT(UPPER(COALESCE(COLUMN_NAME, '')), CASE WHEN SUB_PART IS NULL THEN '' ELSE CONCAT('(', SUB_PART, ')') END)
FROM information_schema.STATISTICS WHERE TABLE_NAME = ? AND TABLE_SCHEMA = COALESCE(NULLIF(?, ''), DATABASE())
ORDER BY INDEX_NAME, SEQ_IN_INDEX)sql",
    .storage = R"sql(
SELECT CASE WHEN TABLE_TYPE IN ('BASE TABLE', 'SYSTEM VERSIONED') THEN COALESCE(ENGINE, '') ELSE 'no table' END
FROM information_schema.TABLES WHERE TABLE_NAME = ? AND TABLE_SCHEMA = COALESCE(NULLIF(?, ''), DATABASE()))sql",
};

// Which values a column changes when it keeps them follows from the words in its type, by rules of SQLite's own ("affinity").
constexpr questions sqlite{
    .server = R"sql(
SELECT 'version', sqlite_version(), '' UNION ALL
SELECT 'database', file, '' FROM pragma_database_list WHERE name = 'main' UNION ALL
SELECT 'journal_mode', journal_mode, '' FROM pragma_journal_mode UNION ALL
SELECT 'synchronous', CAST(synchronous AS TEXT), '' FROM pragma_synchronous)sql",
    .columns = R"sql(
SELECT upper(c.name), c.type,
  CASE WHEN upper(c.type) LIKE '%INT%' THEN 'moment'
       WHEN upper(c.type) LIKE '%CHAR%' OR upper(c.type) LIKE '%CLOB%' OR upper(c.type) LIKE '%TEXT%' THEN 'text'
       WHEN upper(c.type) LIKE '%BLOB%' OR c.type = '' THEN 'anything'
       WHEN upper(c.type) LIKE '%REAL%' OR upper(c.type) LIKE '%FLOA%' OR upper(c.type) LIKE '%DOUB%' THEN 'other'
       ELSE 'moment' END,
  0, 6, coalesce(k.coll, 'BINARY'), CASE WHEN coalesce(k.coll, 'BINARY') = 'BINARY' THEN 1 ELSE 0 END, 1, c."notnull",
  CASE WHEN c."notnull" = 1 AND c.dflt_value IS NULL THEN 1 ELSE 0 END
FROM pragma_table_info(?1, coalesce(nullif(?2, ''), 'main')) c
LEFT JOIN (SELECT x.name AS name, max(x.coll) AS coll FROM pragma_index_list(?1, coalesce(nullif(?2, ''), 'main')) l,
  pragma_index_xinfo(l.name, coalesce(nullif(?2, ''), 'main')) x WHERE x.key = 1 AND l."unique" = 1 GROUP BY x.name) k ON k.name = c.name
ORDER BY c.cid)sql",
    .indexes = R"sql(
SELECT l.name, CASE WHEN l.origin = 'pk' THEN 'primary' WHEN l."unique" THEN 'unique' ELSE 'plain' END, coalesce(upper(x.name), '')
FROM pragma_index_list(?1, coalesce(nullif(?2, ''), 'main')) l, pragma_index_xinfo(l.name, coalesce(nullif(?2, ''), 'main')) x
WHERE x.key = 1 AND l.partial = 0 ORDER BY l.name, x.seqno)sql",
    .storage = R"sql(
SELECT CASE WHEN type = 'table' THEN '' ELSE 'no table' END FROM pragma_table_list
WHERE name = ?1 COLLATE NOCASE AND schema = coalesce(nullif(?2, ''), 'main') COLLATE NOCASE)sql",
};

const questions* find_questions(dialect_id dialect) noexcept {
  switch (dialect) {
    case dialect_id::postgresql:
      return &postgresql;
    case dialect_id::mysql:
    case dialect_id::mariadb:
      return &mysql;
    case dialect_id::sqlite:
      return &sqlite;
    default:
      return nullptr;
  }
}

const questions& questions_for(dialect_id dialect) {
  const auto* const found = find_questions(dialect);
  if (found == nullptr) throw error(errc::unsupported_type, "a database of this dialect cannot be probed");
  return *found;
}

std::string text_at(const sql::rows& from, std::size_t row, std::size_t at) {
  const auto* found = std::get_if<std::string>(&from.at(row, at));
  return found != nullptr ? *found : std::string();
}

std::int64_t number_at(const sql::rows& from, std::size_t row, std::size_t at) {
  const auto* found = std::get_if<std::int64_t>(&from.at(row, at));
  return found != nullptr ? *found : 0;
}

kind kind_of(std::string_view word) {
  static constexpr std::array<std::pair<std::string_view, kind>, 5> words{{{"text", kind::text},
                                                                           {"bytes", kind::bytes},
                                                                           {"moment", kind::moment},
                                                                           {"local", kind::local_moment},
                                                                           {"anything", kind::anything}}};
  const auto* const found = std::find_if(words.begin(), words.end(), [word](const auto& each) { return each.first == word; });
  return found == words.end() ? kind::other : found->second;
}

column read_column(const sql::rows& from, std::size_t row) {
  return {.name = text_at(from, row, 0),
          .type = text_at(from, row, 1),
          .kind = kind_of(text_at(from, row, 2)),
          .length = number_at(from, row, 3),
          .digits = number_at(from, row, 4),
          .collation = text_at(from, row, 5),
          .exact = number_at(from, row, 6) != 0,
          .whole_unicode = number_at(from, row, 7) != 0,
          .not_null = number_at(from, row, 8) != 0,
          .needs_value = number_at(from, row, 9) != 0};
}

}  // namespace

bool can_ask(sql::dialect_id dialect) noexcept { return find_questions(dialect) != nullptr; }

const setting* server::find(std::string_view name) const noexcept {
  const auto found = std::find_if(settings.begin(), settings.end(), [name](const setting& each) { return each.name == name; });
  return found == settings.end() ? nullptr : &*found;
}

server ask_server(sql::connection& from, sql::dialect_id dialect) {
  server result{.dialect = dialect};
  const auto told =
      from.execute({.text = std::string(questions_for(dialect).server), .results = {type::text, type::text, type::text}}, {}).rows;
  for (std::size_t i = 0; i < told.size(); ++i) {
    auto name = text_at(told, i, 0);
    auto value = text_at(told, i, 1);
    if (name == "version" || name == "server_version") result.version = std::move(value);
    else if (name == "user") result.user = std::move(value);
    else if (name == "database") result.database = std::move(value);
    else result.settings.push_back({.name = std::move(name), .value = std::move(value), .source = text_at(told, i, 2)});
  }
  if (dialect == dialect_id::sqlite) result.settings.push_back({.name = "file_system", .value = file_system_of(result.database)});
  return result;
}

table ask_table(sql::connection& from, sql::dialect_id dialect, const std::string& name) {
  table result{.name = name};
  const auto& ask = questions_for(dialect);
  // PostgreSQL takes the name as it is written, the others in two parts.
  const bool whole = dialect == dialect_id::postgresql;
  const auto dot = whole ? std::string::npos : name.rfind('.');
  const std::string own = name.substr(dot + 1);
  const std::string qualifier = dot == std::string::npos ? std::string() : name.substr(0, dot);
  const std::array<sql::parameter, 2> which{std::string_view(own), std::string_view(qualifier)};
  const auto rows_of = [&](std::string_view text, std::vector<type> results) {
    return from.execute({.text = std::string(text), .parameters = {type::text, type::text}, .results = std::move(results)}, which).rows;
  };

  const auto storage = rows_of(ask.storage, {type::text});
  result.there = !storage.empty();
  if (!result.there) return result;
  result.storage = text_at(storage, 0, 0);

  const auto columns = rows_of(ask.columns, {type::text, type::text, type::text, type::integer, type::integer, type::text, type::integer,
                                             type::integer, type::integer, type::integer});
  for (std::size_t i = 0; i < columns.size(); ++i) result.columns.push_back(read_column(columns, i));

  const auto indexes = rows_of(ask.indexes, {type::text, type::text, type::text});
  for (std::size_t i = 0; i < indexes.size(); ++i) {
    auto its_name = text_at(indexes, i, 0);
    const auto sort = text_at(indexes, i, 1);
    if (result.indexes.empty() || result.indexes.back().name != its_name) {
      result.indexes.push_back({.name = std::move(its_name),
                                .primary = sort == "primary",
                                .constraint = sort == "primary" || sort == "constraint",
                                .unique = sort != "plain"});
    }
    result.indexes.back().columns.push_back(text_at(indexes, i, 2));
  }
  return result;
}

}  // namespace HOLDFAST_NAMESPACE::probing
