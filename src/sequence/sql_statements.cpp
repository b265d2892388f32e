#include "sequence/sql_statements.hpp"

#include <holdfast/error.hpp>

#include "sql/table_prefix.hpp"

#include <string_view>

namespace HOLDFAST_NAMESPACE::detail {

namespace {

using sql::dialect_id;
using sql::type;

/// What a grant returns. What was granted last is in the row, so both ends can be told; the first is worked out here, since at the end of the
/// range it would overflow there.
constexpr std::string_view ends = "NAME, GRANTED, LAST_SEQ, EPOCH";
const std::vector<type> ends_types{type::text, type::integer, type::integer, type::integer};
const std::vector<type> request_types{type::text, type::integer, type::integer};

/// The words for one dialect of those that have ON CONFLICT (PostgreSQL, SQLite) or ON DUPLICATE KEY (MySQL, MariaDB).
struct upsert_words {
  std::string least;          // the smaller of two
  std::string held;           // before a column of the row that is there
  std::string given;          // before a column of the row that was to be inserted
  std::string given_end{};    // after it
  std::string incarnation{};  // of the server; empty when nobody asks
};

upsert_words words_of(dialect_id dialect, const sequence_store_options& options) {
  const bool fenced = options.failover_skip != 0;
  switch (dialect) {
    case dialect_id::postgresql:
      // The timeline: a new one begins with each promotion.
      return {.least = "LEAST",
              .held = "s.",
              .given = "excluded.",
              .incarnation = fenced ? "left(pg_walfile_name(pg_current_wal_lsn()), 8)" : ""};
    case dialect_id::sqlite:
      return {.least = "min", .held = "s.", .given = "excluded."};
    case dialect_id::mariadb:
      return {.least = "LEAST", .held = "", .given = "VALUES(", .given_end = ")", .incarnation = fenced ? "@@server_uid" : ""};
    default:
      return {.least = "LEAST", .held = "", .given = "VALUES(", .given_end = ")", .incarnation = fenced ? "@@server_uuid" : ""};
  }
}

/// What is assigned when the row is there. `skip` is a number of ours, never text from outside.
class assignments {
 public:
  assignments(upsert_words words, std::int64_t skip) : w_(std::move(words)), skip_(skip) {}

  [[nodiscard]] std::string held(std::string_view column) const { return w_.held + std::string(column); }
  [[nodiscard]] std::string given(std::string_view column) const { return w_.given + std::string(column) + w_.given_end; }
  [[nodiscard]] bool ordered() const { return w_.held.empty(); }  // MySQL assigns from left to right, and sees what it assigned

  /// The counter before this grant: where another server was used last, what that one may have granted is left out.
  [[nodiscard]] std::string before() const {
    if (w_.incarnation.empty()) return held("LAST_SEQ");
    const std::string room = given("LIMIT_SEQ") + " - " + held("LAST_SEQ");
    return "(" + held("LAST_SEQ") + " + CASE WHEN " + held("INCARNATION") + " = " + given("INCARNATION") + " OR " + held("LAST_SEQ") +
           " >= " + given("LIMIT_SEQ") + " THEN 0 ELSE " + w_.least + "(" + std::to_string(skip_) + ", " + room + ") END)";
  }
  [[nodiscard]] std::string at_end() const { return held("LAST_SEQ") + " >= " + given("LIMIT_SEQ"); }
  [[nodiscard]] std::string granted() const {
    return w_.least + "(" + given("GRANTED") + ", " + given("LIMIT_SEQ") + " - " + before() + ")";
  }

  [[nodiscard]] std::string plain() const {
    // Beyond its limit nothing is granted; where there is a WHERE, the row is not even touched.
    if (ordered()) return "GRANTED = IF(" + at_end() + ", 0, " + granted() + "), LAST_SEQ = " + before() + " + GRANTED, " + rest();
    return "GRANTED = " + granted() + ", LAST_SEQ = " + before() + " + " + granted() + ", " + rest() + " WHERE " + held("LAST_SEQ") +
           " < " + given("LIMIT_SEQ");
  }
  [[nodiscard]] std::string cycling() const {
    const std::string either = "CASE WHEN " + at_end() + " THEN ";
    const std::string epoch = "EPOCH = " + held("EPOCH") + " + " + either + "1 ELSE 0 END, ";
    const std::string grants = "GRANTED = " + either + given("GRANTED") + " ELSE " + granted() + " END, ";
    const std::string sum =
        ordered() ? "GRANTED ELSE " + before() + " + GRANTED" : given("GRANTED") + " ELSE " + before() + " + " + granted();
    return epoch + grants + "LAST_SEQ = " + either + sum + " END, " + rest();
  }
  [[nodiscard]] const std::string& incarnation() const { return w_.incarnation; }

 private:
  [[nodiscard]] std::string rest() const {
    return "LIMIT_SEQ = " + given("LIMIT_SEQ") + (w_.incarnation.empty() ? "" : ", INCARNATION = " + given("INCARNATION"));
  }

  upsert_words w_;
  std::int64_t skip_;
};

void write_upserts(sequence_statements& made, dialect_id dialect, const std::string& table, const sequence_store_options& options) {
  const assignments set(words_of(dialect, options), options.failover_skip);
  const bool fenced = !set.incarnation().empty();
  const std::string columns = std::string(" (NAME, GRANTED, LIMIT_SEQ, LAST_SEQ") + (fenced ? ", INCARNATION)" : ")");
  const std::string token = fenced ? ", " + set.incarnation() : "";
  const std::string returning = " RETURNING " + std::string(ends);
  // PostgreSQL: a row that is made on a later timeline may have been there before, and be one that this server never heard of.
  const auto first_of = [&](const std::string& count, const std::string& limit) {
    if (!fenced) return count;
    return count + " + CASE WHEN " + set.incarnation() + " = '00000001' THEN 0 ELSE LEAST(" + std::to_string(options.failover_skip) + ", " +
           limit + " - " + count + ") END";
  };
  const auto batch = [&](bool cycling) -> sql::batch_statement {
    const std::string assigned = cycling ? set.cycling() : set.plain();
    if (dialect == dialect_id::postgresql) {
      // In the order of names, so that two of these wait for each other instead of deadlocking.
      return {.text = "INSERT INTO " + table + " AS s" + columns + " SELECT k, n, l, " + first_of("n", "l") + token +
                      " FROM unnest($1::text[], $2::bigint[], $3::bigint[]) AS v (k, n, l) ORDER BY k ON CONFLICT (NAME) DO UPDATE SET " +
                      assigned + returning,
              .columns = request_types,
              .results = ends_types};
    }
    if (dialect == dialect_id::sqlite) {
      return {.text = "INSERT INTO " + table + " AS s" + columns,
              .row = " VALUES (?1, ?2, ?3, ?2)",
              .tail = " ON CONFLICT (NAME) DO UPDATE SET " + assigned + returning,
              .columns = request_types,
              .results = ends_types};
    }
    const bool returns = dialect == dialect_id::mariadb;
    return {.text = "INSERT INTO " + table + columns + " VALUES",
            .row = "(?, ?, ?, GRANTED" + token + ")",
            .tail = "ON DUPLICATE KEY UPDATE " + assigned + (returns ? returning : ""),
            .columns = request_types,
            .results = returns ? ends_types : std::vector<type>{}};
  };
  made.grant = batch(false);
  made.grant_cycling = batch(true);
  const auto one = [&](bool cycling) -> sql::statement {
    if (dialect != dialect_id::postgresql) {
      const auto& many = cycling ? made.grant_cycling : made.grant;
      return {.text = many.text + (many.row.starts_with(' ') ? "" : " ") + many.row + (many.tail.starts_with(' ') ? "" : " ") + many.tail,
              .parameters = request_types,
              .results = many.results};
    }
    return {.text = "INSERT INTO " + table + " AS s" + columns + " VALUES ($1, $2, $3, " +
                    (fenced ? first_of("$2::bigint", "$3::bigint") : "$2") + token + ") ON CONFLICT (NAME) DO UPDATE SET " +
                    (cycling ? set.cycling() : set.plain()) + returning,
            .parameters = request_types,
            .results = ends_types};
  };
  made.grant_one = one(false);
  made.grant_one_cycling = one(true);
  if (dialect == dialect_id::mysql) {
    made.many = many_blocks::batch_look;
    made.look = {.text = "SELECT " + std::string(ends) + " FROM " + table + " WHERE NAME IN (",
                 .row = "?",
                 .tail = ")",
                 .columns = {type::text},
                 .results = ends_types};
    // MySQL returns no rows from an INSERT, but one number: the whole counter fits into it. 0 rows affected: nothing was granted.
    if (!fenced) {
      made.last_insert_id = {
          .text = "INSERT INTO " + table +
                  " (NAME, LAST_SEQ, GRANTED, LIMIT_SEQ) VALUES (?, LAST_INSERT_ID(?), 0, ?) ON DUPLICATE KEY UPDATE LAST_SEQ = "
                  "IF(LAST_SEQ <= ? - ?, LAST_INSERT_ID(LAST_SEQ + ?), LAST_SEQ + 0 * LAST_INSERT_ID(0))",
          .parameters = {type::text, type::integer, type::integer, type::integer, type::integer, type::integer}};
    }
  }
}

/// The words of those that have MERGE, or a language of their own, instead.
void write_merges(sequence_statements& made, dialect_id dialect, const std::string& table) {
  made.many = many_blocks::one_by_one;
  const auto one = [&](bool cycling) -> std::string {
    const std::string sum =
        dialect == dialect_id::sqlserver ? "IIF(@n < @limit - LAST_SEQ, @n, @limit - LAST_SEQ)" : "LEAST(v.n, v.l - s.LAST_SEQ)";
    if (dialect == dialect_id::h2) {
      const std::string matched =
          cycling ? "WHEN MATCHED THEN UPDATE SET EPOCH = s.EPOCH + CASE WHEN s.LAST_SEQ >= v.l THEN 1 ELSE 0 END, GRANTED = "
                    "CASE WHEN s.LAST_SEQ >= v.l THEN v.n ELSE " +
                        sum + " END, LAST_SEQ = CASE WHEN s.LAST_SEQ >= v.l THEN v.n ELSE s.LAST_SEQ + " + sum + " END"
                  : "WHEN MATCHED AND s.LAST_SEQ < v.l THEN UPDATE SET GRANTED = " + sum + ", LAST_SEQ = s.LAST_SEQ + " + sum;
      return "SELECT " + std::string(ends) + " FROM FINAL TABLE (MERGE INTO " + table +
             " s USING (SELECT CAST(? AS VARCHAR(128)) AS k, CAST(? AS BIGINT) AS n, CAST(? AS BIGINT) AS l) v ON s.NAME = v.k " + matched +
             ", LIMIT_SEQ = v.l WHEN NOT MATCHED THEN INSERT (NAME, GRANTED, LIMIT_SEQ, LAST_SEQ) VALUES (v.k, v.n, v.l, v.n))";
    }
    if (dialect == dialect_id::sqlserver) {
      const std::string set = cycling ? "EPOCH = EPOCH + IIF(LAST_SEQ >= @limit, 1, 0), GRANTED = IIF(LAST_SEQ >= @limit, @n, " + sum +
                                            "), LAST_SEQ = IIF(LAST_SEQ >= @limit, @n, LAST_SEQ + " + sum + ")"
                                      : "GRANTED = " + sum + ", LAST_SEQ = LAST_SEQ + " + sum;
      // One batch, one round trip; the key range stays locked between looking and inserting, so that two who make the same row wait.
      return "SET NOCOUNT ON; SET XACT_ABORT ON; DECLARE @name VARCHAR(128) = ?, @n BIGINT = ?, @limit BIGINT = ?; DECLARE @done TABLE (k "
             "VARCHAR(128), g BIGINT, l BIGINT, e BIGINT); BEGIN TRANSACTION; UPDATE " +
             table + " WITH (UPDLOCK, SERIALIZABLE) SET " + set +
             ", LIMIT_SEQ = @limit OUTPUT inserted.NAME, inserted.GRANTED, inserted.LAST_SEQ, inserted.EPOCH INTO "
             "@done "
             "WHERE NAME = @name" +
             (cycling ? "" : " AND LAST_SEQ < @limit") + "; IF @@ROWCOUNT = 0 INSERT " + table +
             " (NAME, GRANTED, LIMIT_SEQ, LAST_SEQ) OUTPUT inserted.NAME, inserted.GRANTED, inserted.LAST_SEQ, inserted.EPOCH INTO @done "
             "SELECT @name, "
             "@n, @limit, @n WHERE NOT EXISTS (SELECT 1 FROM " +
             table + " WITH (UPDLOCK, SERIALIZABLE) WHERE NAME = @name); COMMIT TRANSACTION; SELECT k, g, l, e FROM @done";
    }
    const std::string room = "LEAST(v_n, v_l - LAST_SEQ)";
    const std::string set =
        cycling ? "EPOCH = EPOCH + CASE WHEN LAST_SEQ >= v_l THEN 1 ELSE 0 END, GRANTED = CASE WHEN LAST_SEQ >= v_l THEN v_n ELSE " + room +
                      " END, LAST_SEQ = CASE WHEN LAST_SEQ >= v_l THEN v_n ELSE LAST_SEQ + " + room + " END"
                : "GRANTED = " + room + ", LAST_SEQ = LAST_SEQ + " + room;
    const std::string update = "UPDATE " + table + " SET " + set + ", LIMIT_SEQ = v_l WHERE NAME = v_k" +
                               (cycling ? "" : " AND LAST_SEQ < v_l") + " RETURNING GRANTED, LAST_SEQ, EPOCH INTO v_g, v_t, v_e; ";
    // COMMIT WRITE IMMEDIATE WAIT: whatever the server was told about commits, and PL/SQL's own idea of them.
    return "DECLARE v_k VARCHAR2(128) := ?; v_n NUMBER(19) := ?; v_l NUMBER(19) := ?; v_g NUMBER(19); v_t NUMBER(19); v_e NUMBER(19); c "
           "SYS_REFCURSOR; BEGIN " +
           update + "IF SQL%ROWCOUNT = 0 THEN BEGIN INSERT INTO " + table +
           " (NAME, GRANTED, LIMIT_SEQ, LAST_SEQ) VALUES (v_k, v_n, v_l, v_n) RETURNING GRANTED, LAST_SEQ, EPOCH INTO v_g, v_t, v_e; "
           "EXCEPTION "
           "WHEN "
           "DUP_VAL_ON_INDEX THEN " +
           update +
           "END; END IF; COMMIT WRITE IMMEDIATE WAIT; OPEN c FOR SELECT v_k, v_g, v_t, v_e FROM DUAL WHERE v_t IS NOT NULL; "
           "DBMS_SQL.RETURN_RESULT(c); END;";
  };
  made.grant_one = {.text = one(false), .parameters = request_types, .results = ends_types};
  made.grant_one_cycling = {.text = one(true), .parameters = request_types, .results = ends_types};
}

std::string ensure_text(dialect_id dialect, const std::string& table) {
  const std::string insert = "INSERT INTO " + table;
  const std::string columns = " (NAME, LAST_SEQ, GRANTED, LIMIT_SEQ)";
  const std::string limit = std::to_string(last_ordinal);
  switch (dialect) {
    case dialect_id::postgresql:
      return insert + " AS s" + columns + " VALUES ($1, $2, 0, " + limit +
             ") ON CONFLICT (NAME) DO UPDATE SET LAST_SEQ = excluded.LAST_SEQ WHERE " + "s.LAST_SEQ < excluded.LAST_SEQ";
    case dialect_id::sqlite:
      return insert + " AS s" + columns + " VALUES (?, ?, 0, " + limit +
             ") ON CONFLICT (NAME) DO UPDATE SET LAST_SEQ = excluded.LAST_SEQ WHERE " + "s.LAST_SEQ < excluded.LAST_SEQ";
    case dialect_id::mysql:
    case dialect_id::mariadb:
      return insert + columns + " VALUES (?, ?, 0, " + limit + ") ON DUPLICATE KEY UPDATE LAST_SEQ = GREATEST(LAST_SEQ, VALUES(LAST_SEQ))";
    default:
      break;
  }
  const bool server = dialect == dialect_id::sqlserver;
  const bool oracle = dialect == dialect_id::oracle;
  const std::string text = oracle ? "VARCHAR2(128)" : "VARCHAR(128)";
  const std::string number = oracle ? "NUMBER(19)" : "BIGINT";
  return "MERGE INTO " + table + (server ? " WITH (HOLDLOCK) AS s" : " s") + " USING (SELECT CAST(? AS " + text + ") AS k, CAST(? AS " +
         number + ") AS n" + (oracle ? " FROM DUAL" : "") + ") v ON (s.NAME = v.k) WHEN MATCHED " +
         (oracle ? "THEN UPDATE SET LAST_SEQ = v.n WHERE s.LAST_SEQ < v.n" : "AND s.LAST_SEQ < v.n THEN UPDATE SET LAST_SEQ = v.n") +
         " WHEN NOT MATCHED THEN INSERT (NAME, LAST_SEQ, GRANTED, LIMIT_SEQ) VALUES (v.k, v.n, 0, " + limit + ")" + (server ? ";" : "");
}

std::string list_text(dialect_id dialect, const std::string& table) {
  // Byte order, whatever the collation of the column is.
  const std::string name = dialect == dialect_id::postgresql ? "NAME COLLATE \"C\"" : "NAME";
  const bool dollars = dialect == dialect_id::postgresql;
  const std::string from =
      "SELECT NAME, LAST_SEQ, EPOCH FROM " + table + " WHERE " + name + " > " + (dollars ? "$1" : "?") + " ORDER BY " + name;
  if (dialect == dialect_id::sqlserver || dialect == dialect_id::oracle)
    return from + (dialect == dialect_id::sqlserver ? " OFFSET 0 ROWS FETCH NEXT ? ROWS ONLY" : " FETCH FIRST ? ROWS ONLY");
  return from + " LIMIT " + (dollars ? "$2" : "?");
}

}  // namespace

std::string sequence_table(const sequence_store_options& options) {
  sql::check_table_prefix(options.prefix);
  return options.prefix + "SEQUENCES";
}

sequence_statements make_sequence_statements(dialect_id dialect, const sequence_store_options& options) {
  const std::string table = sequence_table(options);
  if (options.failover_skip < 0)
    throw error(errc::invalid_argument, "failover_skip is a number of ids, not below 0", {.path = "failover_skip"});
  sequence_statements made;
  switch (dialect) {
    case dialect_id::sqlite:
    case dialect_id::postgresql:
    case dialect_id::mysql:
    case dialect_id::mariadb:
      if (dialect == dialect_id::sqlite && options.failover_skip != 0)
        throw error(errc::invalid_argument, "a file of SQLite has no standby; leave failover_skip at 0", {.path = "failover_skip"});
      write_upserts(made, dialect, table, options);
      break;
    case dialect_id::h2:
    case dialect_id::sqlserver:
    case dialect_id::oracle:
      if (options.failover_skip != 0)
        throw error(errc::invalid_argument,
                    "this database does not say which of its servers answers; use a synchronous standby, and leave failover_skip at 0",
                    {.path = "failover_skip"});
      write_merges(made, dialect, table);
      break;
    case dialect_id::unknown:
      throw error(errc::invalid_argument, "sequences need a database whose dialect is known; say it with resolve_dialect");
  }
  const bool dollars = dialect == dialect_id::postgresql;
  const auto p = [dollars](int n) { return dollars ? "$" + std::to_string(n) : std::string("?"); };
  made.peek = {.text = "SELECT LAST_SEQ, EPOCH FROM " + table + " WHERE NAME = " + p(1),
               .parameters = {type::text},
               .results = {type::integer, type::integer}};
  made.ensure = {.text = ensure_text(dialect, table), .parameters = {type::text, type::integer}};
  const std::string guard = " WHERE NAME = " + p(2) + " AND LAST_SEQ = " + p(3) + " AND EPOCH = " + p(4);
  const std::vector<type> guarded{type::integer, type::text, type::integer, type::integer};
  made.reset = {.text = "UPDATE " + table + " SET LAST_SEQ = " + p(1) + ", GRANTED = 0, EPOCH = EPOCH + 1" + guard, .parameters = guarded};
  // Another server may not know of all that its predecessor granted: it takes nothing back for it.
  const std::string same_server = options.failover_skip == 0 ? "" : " AND INCARNATION = " + words_of(dialect, options).incarnation;
  made.give_back = {.text = "UPDATE " + table + " SET LAST_SEQ = " + p(1) + ", GRANTED = 0" + guard + same_server, .parameters = guarded};
  made.list = {
      .text = list_text(dialect, table), .parameters = {type::text, type::integer}, .results = {type::text, type::integer, type::integer}};
  return made;
}

}  // namespace HOLDFAST_NAMESPACE::detail
