#include "sequence/sql/statements.hpp"

#include <holdfast/error.hpp>

#include "sequence/sql/schema.hpp"
#include "sql/placeholders.hpp"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::sequence {

namespace {

using sql::dialect_id;
using sql::type;

/// What a grant returns. The first ordinal is computed by the caller from the size of the block: in
/// SQL it could overflow at the end of the range.
constexpr std::string_view grant_columns = "NAME, GRANTED, LAST_SEQ, EPOCH";
const std::vector<type> grant_types{type::text, type::integer, type::integer, type::integer};
/// With the address of the row.
const std::vector<type> located_grant_types{type::text, type::integer, type::integer, type::integer,
                                            type::text};

std::vector<type> request_types(bool defined) {
  std::vector<type> types{type::text, type::integer, type::integer};
  if (defined) types.push_back(type::text);
  return types;
}

// ---- PostgreSQL, SQLite, MySQL, MariaDB: an upsert.

/// How a dialect with ON CONFLICT (PostgreSQL, SQLite) or ON DUPLICATE KEY (MySQL, MariaDB) writes
/// the parts of an upsert.
struct upsert_syntax {
  std::string least;           // the function that returns the smaller of two numbers
  std::string existing;        // prefix of a column of the existing row
  std::string proposed;        // prefix of a column of the row to insert
  std::string proposed_end{};  // and its suffix
  std::string incarnation{};   // expression that identifies the server; empty without failover_skip
};

/// The expression that identifies a server, or empty. Two copies of a database differ in it.
/// - PostgreSQL: the identifier of the cluster and the timeline. A standby that is promoted starts
/// a
///   new timeline; a logical replica, and a dump that was restored elsewhere, are in another cluster.
/// - MySQL, MariaDB: the unique id of the server.
std::string incarnation_of(dialect_id dialect) {
  switch (dialect) {
    case dialect_id::postgresql:
      return "(SELECT system_identifier FROM pg_control_system())::text || ':' || "
             "left(pg_walfile_name(pg_current_wal_lsn()), 8)";
    case dialect_id::mysql:
      return "@@server_uuid";
    case dialect_id::mariadb:
      return "@@server_uid";
    default:
      return "";
  }
}

upsert_syntax syntax_of(dialect_id dialect, bool fenced) {
  std::string incarnation = fenced ? incarnation_of(dialect) : "";
  switch (dialect) {
    case dialect_id::postgresql:
      return {.least = "LEAST",
              .existing = "s.",
              .proposed = "excluded.",
              .incarnation = std::move(incarnation)};
    case dialect_id::sqlite:
      return {.least = "min", .existing = "s.", .proposed = "excluded."};
    default:
      return {.least = "LEAST",
              .existing = "",
              .proposed = "VALUES(",
              .proposed_end = ")",
              .incarnation = std::move(incarnation)};
  }
}

class upsert_writer {
 public:
  upsert_writer(dialect_id dialect, std::string table, const sequence_store_options& options,
                bool defined)
      : dialect_(dialect),
        table_(std::move(table)),
        syntax_(syntax_of(dialect, options.failover_skip != 0)),
        fenced_(!syntax_.incarnation.empty()),
        defined_(defined),
        skip_(std::to_string(options.failover_skip)) {}

  [[nodiscard]] sql::batch_statement grant(bool cycling) const {
    const std::string update = cycling ? assign_cycling() : assign();
    switch (dialect_) {
      case dialect_id::postgresql:
        return {.text = "WITH free AS (SELECT NAME FROM " + table_ +
                        " WHERE NAME = ANY($1::text[]) ORDER BY NAME FOR UPDATE SKIP LOCKED) "
                        "INSERT INTO " +
                        table_ + " AS s" + columns() + " SELECT k, n, l, " +
                        last_of_new_row("n", "l") + (defined_ ? ", d" : "") + incarnation_value() +
                        " FROM unnest($1::text[], $2::bigint[], $3::bigint[]" +
                        (defined_ ? ", $4::text[]) AS v (k, n, l, d)" : ") AS v (k, n, l)") +
                        " WHERE k IN (SELECT NAME FROM free) ORDER BY k ON CONFLICT (NAME) DO "
                        "UPDATE SET " +
                        update + returning_address(),
                .columns = request_types(defined_),
                .results = located_grant_types};
      case dialect_id::sqlite:
        return {.text = "INSERT INTO " + table_ + " AS s" + columns(),
                .row = std::string(" VALUES (?1, ?2, ?3, ?2") + (defined_ ? ", ?4)" : ")"),
                .tail = " ON CONFLICT (NAME) DO UPDATE SET " + update + returning(),
                .columns = request_types(defined_),
                .results = grant_types};
      default: {
        const bool returns_rows = dialect_ == dialect_id::mariadb;
        return {.text = "INSERT INTO " + table_ + columns() + " VALUES",
                .row = std::string("(?, ?, ?, GRANTED") + (defined_ ? ", ?" : "") +
                       incarnation_value() + ")",
                .tail = "ON DUPLICATE KEY UPDATE " + update + (returns_rows ? returning() : ""),
                .columns = request_types(defined_),
                .results = returns_rows ? grant_types : std::vector<type>{}};
      }
    }
  }

  [[nodiscard]] sql::statement grant_one(bool cycling) const {
    if (dialect_ == dialect_id::postgresql) {
      const std::string last = fenced_ ? last_of_new_row("$2::bigint", "$3::bigint") : "$2";
      return {.text = "INSERT INTO " + table_ + " AS s" + columns() + " VALUES ($1, $2, $3, " +
                      last + (defined_ ? ", $4" : "") + incarnation_value() +
                      ") ON CONFLICT (NAME) DO UPDATE SET " +
                      (cycling ? assign_cycling() : assign()) + returning_address(),
              .parameters = request_types(defined_),
              .results = located_grant_types};
    }
    const auto batch = grant(cycling);
    return {.text = batch.text + (batch.row.starts_with(' ') ? "" : " ") + batch.row +
                    (batch.tail.starts_with(' ') ? "" : " ") + batch.tail,
            .parameters = request_types(defined_),
            .results = batch.results};
  }

  /// PostgreSQL. The comparisons make a range of one address: PostgreSQL 14 and later read one
  /// page, and remove old versions from it, which they do not do for `ctid =`. The concatenation
  /// keeps the planner from searching by name when the table has many pages.
  [[nodiscard]] sql::statement grant_at_address() const {
    const std::string address = defined_ ? "$5::tid" : "$4::tid";
    auto parameters = request_types(defined_);
    parameters.push_back(type::text);
    return {.text = "UPDATE " + table_ + " AS s SET " + assignments() +
                    " FROM (SELECT $2::bigint AS GRANTED, $3::bigint AS LIMIT_SEQ" +
                    (defined_ ? ", $4::text AS DEFINITION" : "") +
                    (fenced_ ? incarnation_value() + " AS INCARNATION" : "") +
                    ") AS excluded WHERE " + may_grant() + " AND s.ctid >= " + address +
                    " AND s.ctid <= " + address +
                    " AND s.NAME || '' = $1 RETURNING s.NAME, s.GRANTED, s.LAST_SEQ, s.EPOCH, "
                    "s.ctid::text",
            .parameters = std::move(parameters),
            .results = located_grant_types};
  }

  /// Name, ordinal. After a failover the counter is raised above what the server before may have
  /// granted, as a grant does.
  [[nodiscard]] sql::statement ensure_at_least() const {
    const std::string limit = std::to_string(last_ordinal);
    const std::string ordinal = sql::placeholder(dialect_, 2);
    const std::string names =
        std::string(" (NAME, LAST_SEQ, GRANTED, LIMIT_SEQ") + (fenced_ ? ", INCARNATION)" : ")");
    const bool numbered = dialect_ == dialect_id::postgresql;
    const std::string values =
        " VALUES (" + sql::placeholder(dialect_, 1) + ", " +
        (numbered && fenced_ ? last_of_new_row("$2::bigint", limit) : ordinal) + ", 0, " + limit +
        incarnation_value() + ")";
    if (assigns_in_order())
      return {.text = "INSERT INTO " + table_ + names + values +
                      " ON DUPLICATE KEY UPDATE LAST_SEQ = GREATEST(" + last_to_raise() +
                      ", VALUES(LAST_SEQ))" +
                      (fenced_ ? ", INCARNATION = VALUES(INCARNATION)" : ""),
              .parameters = {type::text, type::integer}};
    const std::string update =
        fenced_ ? "LAST_SEQ = GREATEST(" + last_to_raise() +
                      ", $2::bigint), INCARNATION = excluded.INCARNATION"
                : "LAST_SEQ = excluded.LAST_SEQ WHERE s.LAST_SEQ < excluded.LAST_SEQ";
    return {.text = "INSERT INTO " + table_ + " AS s" + names + values +
                    " ON CONFLICT (NAME) DO UPDATE SET " + update,
            .parameters = {type::text, type::integer}};
  }

  /// The last ordinal that any server may have granted. A counter that was never used with
  /// failover_skip says nothing about its server.
  [[nodiscard]] std::string last_to_report() const {
    return fenced_ ? last_or_skipped("", "INCARNATION IN ('', " + syntax_.incarnation + ")")
                   : "LAST_SEQ";
  }

  [[nodiscard]] const std::string& incarnation() const { return syntax_.incarnation; }

 private:
  /// LAST_SEQ of a row, with the ordinals that are skipped unless `same_server` holds.
  [[nodiscard]] std::string last_or_skipped(const std::string& alias,
                                            const std::string& same_server) const {
    return "(" + alias + "LAST_SEQ + CASE WHEN " + same_server + " THEN 0 ELSE GREATEST(0, LEAST(" +
           skip_ + ", " + alias + "LIMIT_SEQ - " + alias + "LAST_SEQ)) END)";
  }
  /// LAST_SEQ of the existing row, for ensure_at_least.
  [[nodiscard]] std::string last_to_raise() const {
    return fenced_ ? last_or_skipped(syntax_.existing,
                                     existing("INCARNATION") + " = " + syntax_.incarnation)
                   : existing("LAST_SEQ");
  }

  [[nodiscard]] std::string columns() const {
    return std::string(" (NAME, GRANTED, LIMIT_SEQ, LAST_SEQ") + (defined_ ? ", DEFINITION" : "") +
           (fenced_ ? ", INCARNATION)" : ")");
  }
  [[nodiscard]] std::string incarnation_value() const {
    return fenced_ ? ", " + syntax_.incarnation : "";
  }
  [[nodiscard]] static std::string returning() {
    return " RETURNING " + std::string(grant_columns);
  }
  [[nodiscard]] static std::string returning_address() { return returning() + ", s.ctid::text"; }

  /// LAST_SEQ of a new row. On a later timeline of PostgreSQL the counter may exist on the server
  /// before the failover, and not be replicated: ordinals are skipped.
  [[nodiscard]] std::string last_of_new_row(const std::string& count,
                                            const std::string& limit) const {
    if (!fenced_) return count;
    return count +
           " + CASE WHEN left(pg_walfile_name(pg_current_wal_lsn()), 8) = '00000001' THEN "
           "0 ELSE LEAST(" +
           skip_ + ", " + limit + " - " + count + ") END";
  }

  [[nodiscard]] std::string existing(std::string_view column) const {
    return syntax_.existing + std::string(column);
  }
  [[nodiscard]] std::string proposed(std::string_view column) const {
    return syntax_.proposed + std::string(column) + syntax_.proposed_end;
  }
  /// MySQL assigns from left to right: an expression sees the new values of columns before it.
  [[nodiscard]] bool assigns_in_order() const { return syntax_.existing.empty(); }

  /// LAST_SEQ before this grant. If another server was used last, the ordinals that it may have
  /// granted are skipped.
  [[nodiscard]] std::string last_before() const {
    if (!fenced_) return existing("LAST_SEQ");
    return "(" + existing("LAST_SEQ") + " + CASE WHEN " + existing("INCARNATION") + " = " +
           proposed("INCARNATION") + " OR " + at_limit() + " THEN 0 ELSE " + syntax_.least + "(" +
           skip_ + ", " + proposed("LIMIT_SEQ") + " - " + existing("LAST_SEQ") + ") END)";
  }
  [[nodiscard]] std::string at_limit() const {
    return existing("LAST_SEQ") + " >= " + proposed("LIMIT_SEQ");
  }
  [[nodiscard]] std::string granted() const {
    return syntax_.least + "(" + proposed("GRANTED") + ", " + proposed("LIMIT_SEQ") + " - " +
           last_before() + ")";
  }
  [[nodiscard]] std::string same_definition() const {
    return existing("DEFINITION") + " IN ('', " + proposed("DEFINITION") + ")";
  }
  /// For MySQL, which has no WHERE clause here: the value of a column in a row with another
  /// definition stays.
  [[nodiscard]] std::string if_same(const std::string& column, const std::string& value) const {
    return column + " = " +
           (defined_ ? "IF(" + same_definition() + ", " + value + ", " + column + ")" : value);
  }

  /// The assignments of an existing row. At the limit nothing is granted: where a WHERE clause is
  /// allowed, the row is not touched.
  [[nodiscard]] std::string assign() const {
    if (assigns_in_order())
      return "GRANTED = IF(" + at_limit() + (defined_ ? " OR NOT " + same_definition() : "") +
             ", 0, " + granted() + "), " + if_same("LAST_SEQ", last_before() + " + GRANTED") +
             ", " + assign_limit();
    return assignments() + " WHERE " + may_grant();
  }
  [[nodiscard]] std::string assignments() const {
    return "GRANTED = " + granted() + ", LAST_SEQ = " + last_before() + " + " + granted() + ", " +
           assign_limit();
  }
  [[nodiscard]] std::string may_grant() const {
    return existing("LAST_SEQ") + " < " + proposed("LIMIT_SEQ") +
           (defined_ ? " AND " + same_definition() : "");
  }
  [[nodiscard]] std::string assign_cycling() const {
    const std::string if_at_limit = "CASE WHEN " + at_limit() + " THEN ";
    const std::string epoch = existing("EPOCH") + " + " + if_at_limit + "1 ELSE 0 END";
    const std::string grant = if_at_limit + proposed("GRANTED") + " ELSE " + granted() + " END";
    if (assigns_in_order())
      return if_same("EPOCH", epoch) + ", GRANTED = " +
             (defined_ ? "IF(" + same_definition() + ", " + grant + ", 0)" : grant) + ", " +
             if_same("LAST_SEQ", if_at_limit + "GRANTED ELSE " + last_before() + " + GRANTED END") +
             ", " + assign_limit();
    return "EPOCH = " + epoch + ", GRANTED = " + grant + ", LAST_SEQ = " + if_at_limit +
           proposed("GRANTED") + " ELSE " + last_before() + " + " + granted() + " END, " +
           assign_limit() + (defined_ ? " WHERE " + same_definition() : "");
  }
  /// LIMIT_SEQ, INCARNATION, and DEFINITION last: the expressions before it need the old one.
  [[nodiscard]] std::string assign_limit() const {
    if (assigns_in_order())
      return if_same("LIMIT_SEQ", proposed("LIMIT_SEQ")) +
             (fenced_ ? ", " + if_same("INCARNATION", proposed("INCARNATION")) : "") +
             (defined_ ? ", " + if_same("DEFINITION", proposed("DEFINITION")) : "");
    return "LIMIT_SEQ = " + proposed("LIMIT_SEQ") +
           (fenced_ ? ", INCARNATION = " + proposed("INCARNATION") : "") +
           (defined_ ? ", DEFINITION = " + proposed("DEFINITION") : "");
  }

  const dialect_id dialect_;
  const std::string table_;
  const upsert_syntax syntax_;
  const bool fenced_;
  const bool defined_;
  const std::string skip_;  // a number, never text from outside
};

/// MySQL and MariaDB lock the free rows of a batch before they change them.
void add_row_locks(statements& result, const std::string& table) {
  result.lock_free = {.text = "SELECT NAME FROM " + table + " WHERE NAME IN (",
                      .row = "?",
                      .tail = ") FOR UPDATE SKIP LOCKED",
                      .columns = {type::text},
                      .results = {type::text}};
}

/// MySQL has no RETURNING. The counter is read back in the same transaction, or returned as the
/// insert id of the connection: then 0 affected rows mean that nothing was granted.
void add_mysql_statements(statements& result, const std::string& table, bool fenced) {
  result.mode = grant_mode::batch_then_read;
  result.read_granted = {
      .text = "SELECT " + std::string(grant_columns) + " FROM " + table + " WHERE NAME IN (",
      .row = "?",
      .tail = ")",
      .columns = {type::text},
      .results = grant_types};
  if (fenced) return;
  // Only rows with the same definition: one without a definition gets it from `grant`.
  const bool defined = result.defined;
  result.grant_by_insert_id = {
      .text = "INSERT INTO " + table + " (NAME, LAST_SEQ, GRANTED, LIMIT_SEQ" +
              (defined ? ", DEFINITION) VALUES (?, LAST_INSERT_ID(?), 0, ?, ?) "
                       : ") VALUES (?, LAST_INSERT_ID(?), 0, ?) ") +
              "ON DUPLICATE KEY UPDATE LAST_SEQ = IF(LAST_SEQ <= ? - ?" +
              (defined ? " AND DEFINITION = ?" : "") +
              ", LAST_INSERT_ID(LAST_SEQ + ?), LAST_SEQ + 0 * LAST_INSERT_ID(0))",
      .parameters = {type::text, type::integer, type::integer}};
  auto& parameters = result.grant_by_insert_id.parameters;
  if (defined) parameters.push_back(type::text);
  parameters.insert(parameters.end(), {type::integer, type::integer});
  if (defined) parameters.push_back(type::text);
  parameters.push_back(type::integer);
}

// ---- H2, SQL Server, Oracle: a statement for each counter.

std::string h2_grant(const std::string& table, bool cycling, bool defined) {
  const std::string granted = "LEAST(v.n, v.l - s.LAST_SEQ)";
  const std::string at_limit = "CASE WHEN s.LAST_SEQ >= v.l THEN ";
  const std::string same = defined ? " AND s.DEFINITION IN ('', v.d)" : "";
  const std::string update =
      cycling
          ? "WHEN MATCHED" + same + " THEN UPDATE SET EPOCH = s.EPOCH + " + at_limit +
                "1 ELSE 0 END, GRANTED = " + at_limit + "v.n ELSE " + granted +
                " END, LAST_SEQ = " + at_limit + "v.n ELSE s.LAST_SEQ + " + granted + " END"
          : "WHEN MATCHED AND s.LAST_SEQ < v.l" + same + " THEN UPDATE SET GRANTED = " + granted +
                ", LAST_SEQ = s.LAST_SEQ + " + granted;
  return "SELECT " + std::string(grant_columns) + " FROM FINAL TABLE (MERGE INTO " + table +
         " s USING (SELECT CAST(? AS VARCHAR(128)) AS k, CAST(? AS BIGINT) AS n, CAST(? AS "
         "BIGINT) AS l" +
         (defined ? ", CAST(? AS VARCHAR(255)) AS d" : "") + ") v ON s.NAME = v.k " + update +
         ", LIMIT_SEQ = v.l" + (defined ? ", DEFINITION = v.d" : "") +
         " WHEN NOT MATCHED THEN INSERT (NAME, GRANTED, LIMIT_SEQ, LAST_SEQ" +
         (defined ? ", DEFINITION) VALUES (v.k, v.n, v.l, v.n, v.d))"
                  : ") VALUES (v.k, v.n, v.l, v.n))");
}

/// One batch, one round trip. The locks on the key range last from the UPDATE to the INSERT, so two
/// clients that create the same row wait for each other.
std::string sqlserver_grant(const std::string& table, bool cycling, bool defined) {
  const std::string granted = "IIF(@n < @limit - LAST_SEQ, @n, @limit - LAST_SEQ)";
  const std::string update =
      cycling
          ? "EPOCH = EPOCH + IIF(LAST_SEQ >= @limit, 1, 0), GRANTED = IIF(LAST_SEQ >= "
            "@limit, @n, " +
                granted + "), LAST_SEQ = IIF(LAST_SEQ >= @limit, @n, LAST_SEQ + " + granted + ")"
          : "GRANTED = " + granted + ", LAST_SEQ = LAST_SEQ + " + granted;
  const std::string output =
      "OUTPUT inserted.NAME, inserted.GRANTED, inserted.LAST_SEQ, inserted.EPOCH INTO @done ";
  return std::string(
             "SET NOCOUNT ON; SET XACT_ABORT ON; DECLARE @name VARCHAR(128) = ?, @n BIGINT "
             "= ?, @limit BIGINT = ?") +
         (defined ? ", @d VARCHAR(255) = ?" : "") +
         "; DECLARE @done TABLE (k VARCHAR(128), g BIGINT, l BIGINT, e BIGINT); "
         "BEGIN TRANSACTION; UPDATE " +
         table + " WITH (UPDLOCK, SERIALIZABLE) SET " + update + ", LIMIT_SEQ = @limit" +
         (defined ? ", DEFINITION = @d " : " ") + output + "WHERE NAME = @name" +
         (cycling ? "" : " AND LAST_SEQ < @limit") +
         (defined ? " AND DEFINITION IN ('', @d)" : "") + "; IF @@ROWCOUNT = 0 INSERT " + table +
         " (NAME, GRANTED, LIMIT_SEQ, LAST_SEQ" + (defined ? ", DEFINITION) " : ") ") + output +
         "SELECT @name, @n, @limit, @n" + (defined ? ", @d" : "") +
         " WHERE NOT EXISTS (SELECT 1 FROM " + table +
         " WITH (UPDLOCK, SERIALIZABLE) WHERE NAME = @name); COMMIT TRANSACTION; SELECT k, g, l, "
         "e FROM @done";
}

/// COMMIT WRITE IMMEDIATE WAIT makes the commit durable, whatever the settings of the server and of
/// PL/SQL are. Oracle stores an empty text as NULL.
std::string oracle_grant(const std::string& table, bool cycling, bool defined) {
  const std::string granted = "LEAST(v_n, v_l - LAST_SEQ)";
  const std::string at_limit = "CASE WHEN LAST_SEQ >= v_l THEN ";
  const std::string assign =
      cycling
          ? "EPOCH = EPOCH + " + at_limit + "1 ELSE 0 END, GRANTED = " + at_limit + "v_n ELSE " +
                granted + " END, LAST_SEQ = " + at_limit + "v_n ELSE LAST_SEQ + " + granted + " END"
          : "GRANTED = " + granted + ", LAST_SEQ = LAST_SEQ + " + granted;
  const std::string returning = " RETURNING GRANTED, LAST_SEQ, EPOCH INTO v_g, v_t, v_e; ";
  const std::string update = "UPDATE " + table + " SET " + assign + ", LIMIT_SEQ = v_l" +
                             (defined ? ", DEFINITION = v_d" : "") + " WHERE NAME = v_k" +
                             (cycling ? "" : " AND LAST_SEQ < v_l") +
                             (defined ? " AND (DEFINITION IS NULL OR DEFINITION = v_d)" : "") +
                             returning;
  return std::string("DECLARE v_k VARCHAR2(128) := ?; v_n NUMBER(19) := ?; v_l NUMBER(19) := ?; ") +
         (defined ? "v_d VARCHAR2(255) := ?; " : "") +
         "v_g NUMBER(19); v_t NUMBER(19); v_e NUMBER(19); c SYS_REFCURSOR; BEGIN " + update +
         "IF SQL%ROWCOUNT = 0 THEN BEGIN INSERT INTO " + table +
         " (NAME, GRANTED, LIMIT_SEQ, LAST_SEQ" +
         (defined ? ", DEFINITION) VALUES (v_k, v_n, v_l, v_n, v_d)"
                  : ") VALUES (v_k, v_n, v_l, v_n)") +
         returning + "EXCEPTION WHEN DUP_VAL_ON_INDEX THEN " + update +
         "END; END IF; COMMIT WRITE IMMEDIATE WAIT; OPEN c FOR SELECT v_k, v_g, v_t, v_e FROM "
         "DUAL WHERE v_t IS NOT NULL; DBMS_SQL.RETURN_RESULT(c); END;";
}

// ---- The other statements.

/// H2, SQL Server, Oracle: name, ordinal.
std::string merge_ensure_at_least(dialect_id dialect, const std::string& table) {
  const std::string columns = " (NAME, LAST_SEQ, GRANTED, LIMIT_SEQ)";
  const std::string limit = std::to_string(last_ordinal);
  const bool sqlserver = dialect == dialect_id::sqlserver;
  const bool oracle = dialect == dialect_id::oracle;
  const std::string text_type = oracle ? "VARCHAR2(128)" : "VARCHAR(128)";
  const std::string number_type = oracle ? "NUMBER(19)" : "BIGINT";
  return "MERGE INTO " + table + (sqlserver ? " WITH (HOLDLOCK) AS s" : " s") +
         " USING (SELECT CAST(? AS " + text_type + ") AS k, CAST(? AS " + number_type + ") AS n" +
         (oracle ? " FROM DUAL" : "") + ") v ON (s.NAME = v.k) WHEN MATCHED " +
         (oracle ? "THEN UPDATE SET LAST_SEQ = v.n WHERE s.LAST_SEQ < v.n"
                 : "AND s.LAST_SEQ < v.n THEN UPDATE SET LAST_SEQ = v.n") +
         " WHEN NOT MATCHED THEN INSERT" + columns + " VALUES (v.k, v.n, 0, " + limit + ")" +
         (sqlserver ? ";" : "");
}

std::string list_text(dialect_id dialect, const std::string& table, const std::string& last) {
  const bool postgres = dialect == dialect_id::postgresql;
  // In byte order, whatever the collation of the column is.
  const std::string name = postgres ? "NAME COLLATE \"C\"" : "NAME";
  const std::string query = "SELECT NAME, " + last + ", EPOCH FROM " + table + " WHERE " + name +
                            " > " + sql::placeholder(dialect, 1) + " ORDER BY " + name;
  switch (dialect) {
    case dialect_id::sqlserver:
      return query + " OFFSET 0 ROWS FETCH NEXT ? ROWS ONLY";
    case dialect_id::oracle:
      return query + " FETCH FIRST ? ROWS ONLY";
    default:
      return query + " LIMIT " + sql::placeholder(dialect, 2);
  }
}

/// peek, reset, give_back, list, definition, redefine. `incarnation`: an expression, or empty.
/// `last`: the last ordinal that any server may have granted, as an expression.
void add_common_statements(statements& result, dialect_id dialect, const std::string& table,
                           const std::string& incarnation, const std::string& last) {
  const auto parameter = [dialect](unsigned number) { return sql::placeholder(dialect, number); };
  result.peek = {
      .text = "SELECT " + last + ", EPOCH FROM " + table + " WHERE NAME = " + parameter(1),
      .parameters = {type::text},
      .results = {type::integer, type::integer}};
  const std::string set_last =
      "UPDATE " + table + " SET LAST_SEQ = " + parameter(1) + ", GRANTED = 0";
  const auto if_expected = [&](const std::string& compared) {
    return " WHERE NAME = " + parameter(2) + " AND " + compared + " = " + parameter(3) +
           " AND EPOCH = " + parameter(4);
  };
  const std::vector<type> types{type::integer, type::text, type::integer, type::integer};
  result.reset = {.text = set_last + ", EPOCH = EPOCH + 1" + if_expected(last),
                  .parameters = types};
  // After a failover the new server may not know of all grants, so it takes nothing back.
  const std::string same_server = incarnation.empty() ? "" : " AND INCARNATION = " + incarnation;
  result.give_back = {.text = set_last + if_expected("LAST_SEQ") + same_server,
                      .parameters = types};
  result.list = {.text = list_text(dialect, table, last),
                 .parameters = {type::text, type::integer},
                 .results = {type::text, type::integer, type::integer}};
  if (!result.defined) return;
  result.definition = {.text = "SELECT DEFINITION FROM " + table + " WHERE NAME = " + parameter(1),
                       .parameters = {type::text},
                       .results = {type::text}};
  // After a failover the counter must first be used with its old definition, which skips what the
  // server before may have granted.
  const std::string server = incarnation_of(dialect);
  result.redefine = {.text = "UPDATE " + table + " SET DEFINITION = " + parameter(1) +
                             ", LAST_SEQ = " + parameter(2) + ", GRANTED = 0 WHERE NAME = " +
                             parameter(3) + " AND LAST_SEQ = " + parameter(4) +
                             " AND EPOCH = " + parameter(5) + " AND DEFINITION = " + parameter(6),
                     .parameters = {type::text, type::integer, type::text, type::integer,
                                    type::integer, type::text}};
  result.redefine_fenced = result.redefine;
  if (!server.empty()) result.redefine_fenced.text += " AND INCARNATION IN ('', " + server + ")";
}

statements upsert_statements(dialect_id dialect, const std::string& table,
                             const sequence_store_options& options, bool defined) {
  const upsert_writer upsert(dialect, table, options, defined);
  statements result{.defined = defined,
                    .grant = upsert.grant(false),
                    .grant_cycling = upsert.grant(true),
                    .grant_one = upsert.grant_one(false),
                    .grant_one_cycling = upsert.grant_one(true),
                    .ensure_at_least = upsert.ensure_at_least()};
  if (dialect == dialect_id::postgresql) result.grant_at_address = upsert.grant_at_address();
  if (dialect == dialect_id::mysql || dialect == dialect_id::mariadb) add_row_locks(result, table);
  if (dialect == dialect_id::mysql)
    add_mysql_statements(result, table, !upsert.incarnation().empty());
  add_common_statements(result, dialect, table, upsert.incarnation(), upsert.last_to_report());
  return result;
}

/// `grant_text` makes the text of a grant from the table, whether it cycles, and whether the table
/// has definitions.
template <class Grant>
statements single_row_statements(dialect_id dialect, const std::string& table, bool defined,
                                 Grant grant_text) {
  const auto grant = [&](bool cycling) {
    return sql::statement{.text = grant_text(table, cycling, defined),
                          .parameters = request_types(defined),
                          .results = grant_types};
  };
  statements result{.mode = grant_mode::one_by_one,
                    .defined = defined,
                    .grant_one = grant(false),
                    .grant_one_cycling = grant(true),
                    .ensure_at_least = {.text = merge_ensure_at_least(dialect, table),
                                        .parameters = {type::text, type::integer}}};
  add_common_statements(result, dialect, table, "", "LAST_SEQ");
  return result;
}

void check_failover_skip(dialect_id dialect, std::int64_t skip) {
  const auto refuse = [](const std::string& message) {
    throw error(errc::invalid_argument, message, {.path = "failover_skip"});
  };
  if (skip < 0) refuse("failover_skip is a number of ids, not below 0");
  if (skip == 0) return;
  if (dialect == dialect_id::sqlite)
    refuse("a SQLite file has no standby; leave failover_skip at 0");
  if (dialect == dialect_id::h2 || dialect == dialect_id::sqlserver ||
      dialect == dialect_id::oracle)
    refuse(
        "this database does not say which of its servers answers; use a synchronous standby, and "
        "leave failover_skip at 0");
}

}  // namespace

statements make_statements(dialect_id dialect, const sequence_store_options& options,
                           bool defined) {
  const std::string table = table_name(options);
  check_failover_skip(dialect, options.failover_skip);
  switch (dialect) {
    case dialect_id::sqlite:
    case dialect_id::postgresql:
    case dialect_id::mysql:
    case dialect_id::mariadb:
      return upsert_statements(dialect, table, options, defined);
    case dialect_id::h2:
      return single_row_statements(dialect, table, defined, h2_grant);
    case dialect_id::sqlserver:
      return single_row_statements(dialect, table, defined, sqlserver_grant);
    case dialect_id::oracle:
      return single_row_statements(dialect, table, defined, oracle_grant);
    case dialect_id::unknown:
      break;
  }
  throw error(errc::invalid_argument,
              "sequences need a database whose dialect is known; say it with resolve_dialect");
}

}  // namespace HOLDFAST_NAMESPACE::detail::sequence
