// The exact SQL of each dialect. The daily tests run no SQL Server and no Oracle, so this is the
// only test of their statements.

#include "sequence/sql/statements.hpp"

#include <holdfast/database.hpp>

#include "support/failure_of.hpp"

#include <gtest/gtest.h>

#include <string>

namespace holdfast::test {
namespace {

using detail::sequence::grant_mode;
using detail::sequence::make_statements;
using sql::dialect_id;

std::string text_of(const sql::batch_statement& s) { return s.text + s.row + s.tail; }

TEST(SequenceStatements, ABlockIsOneStatement) {
  EXPECT_EQ(
      make_statements(dialect_id::postgresql, {.prefix = "P_"}).grant_one.text,
      "INSERT INTO P_SEQUENCES AS s (NAME, GRANTED, LIMIT_SEQ, LAST_SEQ, DEFINITION) VALUES ($1, "
      "$2, $3, $2, $4) ON CONFLICT (NAME) DO UPDATE SET GRANTED = LEAST(excluded.GRANTED, "
      "excluded.LIMIT_SEQ - s.LAST_SEQ), LAST_SEQ = s.LAST_SEQ + LEAST(excluded.GRANTED, "
      "excluded.LIMIT_SEQ - s.LAST_SEQ), LIMIT_SEQ = excluded.LIMIT_SEQ, DEFINITION = "
      "excluded.DEFINITION WHERE s.LAST_SEQ < excluded.LIMIT_SEQ AND s.DEFINITION IN ('', "
      "excluded.DEFINITION) RETURNING NAME, GRANTED, LAST_SEQ, EPOCH, s.ctid::text");
  EXPECT_EQ(text_of(make_statements(dialect_id::sqlite, {}).grant),
            "INSERT INTO SEQUENCES AS s (NAME, GRANTED, LIMIT_SEQ, LAST_SEQ, DEFINITION) VALUES "
            "(?1, ?2, ?3, ?2, ?4) ON CONFLICT (NAME) DO UPDATE SET "
            "GRANTED = min(excluded.GRANTED, excluded.LIMIT_SEQ - s.LAST_SEQ), LAST_SEQ = "
            "s.LAST_SEQ + min(excluded.GRANTED, excluded.LIMIT_SEQ - s.LAST_SEQ), LIMIT_SEQ = "
            "excluded.LIMIT_SEQ, DEFINITION = excluded.DEFINITION WHERE s.LAST_SEQ < "
            "excluded.LIMIT_SEQ AND s.DEFINITION IN ('', excluded.DEFINITION) RETURNING NAME, "
            "GRANTED, LAST_SEQ, EPOCH");
  EXPECT_EQ(make_statements(dialect_id::mariadb, {}).grant.tail,
            "ON DUPLICATE KEY UPDATE GRANTED = IF(LAST_SEQ >= VALUES(LIMIT_SEQ) OR NOT DEFINITION "
            "IN ('', VALUES(DEFINITION)), 0, LEAST(VALUES(GRANTED), VALUES(LIMIT_SEQ) - "
            "LAST_SEQ)), LAST_SEQ = IF(DEFINITION IN ('', VALUES(DEFINITION)), LAST_SEQ + GRANTED, "
            "LAST_SEQ), LIMIT_SEQ = IF(DEFINITION IN ('', VALUES(DEFINITION)), VALUES(LIMIT_SEQ), "
            "LIMIT_SEQ), DEFINITION = IF(DEFINITION IN ('', VALUES(DEFINITION)), "
            "VALUES(DEFINITION), DEFINITION) RETURNING NAME, GRANTED, LAST_SEQ, EPOCH")
      << "LAST_SEQ uses the new GRANTED, which is assigned before it";
  const auto mysql = make_statements(dialect_id::mysql, {});
  EXPECT_EQ(mysql.mode, grant_mode::batch_then_read);
  EXPECT_EQ(mysql.grant_by_insert_id.text,
            "INSERT INTO SEQUENCES (NAME, LAST_SEQ, GRANTED, LIMIT_SEQ, DEFINITION) VALUES (?, "
            "LAST_INSERT_ID(?), 0, ?, ?) ON DUPLICATE KEY UPDATE LAST_SEQ = IF(LAST_SEQ <= ? - ? "
            "AND DEFINITION = ?, LAST_INSERT_ID(LAST_SEQ + ?), LAST_SEQ + 0 * LAST_INSERT_ID(0))");
}

/// One page is read, also when the table has many pages and the planner would choose the index.
TEST(SequenceStatements, OnPostgresARowIsFoundByItsAddress) {
  EXPECT_EQ(
      make_statements(dialect_id::postgresql, {.prefix = "P_"}).grant_at_address.text,
      "UPDATE P_SEQUENCES AS s SET GRANTED = LEAST(excluded.GRANTED, excluded.LIMIT_SEQ - "
      "s.LAST_SEQ), LAST_SEQ = s.LAST_SEQ + LEAST(excluded.GRANTED, excluded.LIMIT_SEQ - "
      "s.LAST_SEQ), LIMIT_SEQ = excluded.LIMIT_SEQ, DEFINITION = excluded.DEFINITION FROM (SELECT "
      "$2::bigint AS GRANTED, $3::bigint AS LIMIT_SEQ, $4::text AS DEFINITION) AS excluded WHERE "
      "s.LAST_SEQ < excluded.LIMIT_SEQ AND s.DEFINITION IN ('', excluded.DEFINITION) AND s.ctid >= "
      "$5::tid AND s.ctid <= $5::tid AND s.NAME || '' = $1 RETURNING s.NAME, s.GRANTED, "
      "s.LAST_SEQ, s.EPOCH, s.ctid::text");
  for (const auto dialect : {dialect_id::sqlite, dialect_id::mysql, dialect_id::mariadb,
                             dialect_id::h2, dialect_id::sqlserver, dialect_id::oracle})
    EXPECT_EQ(make_statements(dialect, {}).grant_at_address.text, "");
}

/// Tables of earlier versions have no definitions.
TEST(SequenceStatements, WithoutDefinitions) {
  for (const auto dialect :
       {dialect_id::sqlite, dialect_id::postgresql, dialect_id::mysql, dialect_id::mariadb,
        dialect_id::h2, dialect_id::sqlserver, dialect_id::oracle}) {
    const auto texts = make_statements(dialect, {}, false);
    for (const auto& text :
         {text_of(texts.grant), text_of(texts.grant_cycling), texts.grant_one.text,
          texts.grant_one_cycling.text, texts.grant_at_address.text, texts.grant_by_insert_id.text,
          texts.ensure_at_least.text, texts.peek.text, texts.reset.text, texts.give_back.text,
          texts.list.text})
      EXPECT_EQ(text.find("DEFINITION"), std::string::npos) << text;
    EXPECT_EQ(texts.grant_one.parameters.size(), 3U);
  }
}

/// A grant for several counters never waits for a row lock.
TEST(SequenceStatements, ABatchSkipsLockedRows) {
  EXPECT_TRUE(make_statements(dialect_id::postgresql, {})
                  .grant.text.starts_with("WITH free AS (SELECT NAME FROM SEQUENCES WHERE NAME = "
                                          "ANY($1::text[]) ORDER BY NAME FOR UPDATE SKIP LOCKED) "
                                          "INSERT INTO SEQUENCES AS s "));
  for (const auto dialect : {dialect_id::mysql, dialect_id::mariadb})
    EXPECT_EQ(text_of(make_statements(dialect, {}).lock_free),
              "SELECT NAME FROM SEQUENCES WHERE NAME IN (?) FOR UPDATE SKIP LOCKED");
}

/// With failover_skip: on a later timeline a new row may be one that was lost, and no other server
/// takes ids back. Another cluster is another server, even on the same timeline.
TEST(SequenceStatements, AfterAFailover) {
  const auto postgres = make_statements(dialect_id::postgresql, {.failover_skip = 1000});
  const std::string timeline = "left(pg_walfile_name(pg_current_wal_lsn()), 8)";
  const std::string server =
      "(SELECT system_identifier FROM pg_control_system())::text || ':' || " + timeline;
  const std::string values =
      "VALUES ($1, $2, $3, $2::bigint + CASE WHEN " + timeline +
      " = '00000001' THEN 0 ELSE LEAST(1000, $3::bigint - $2::bigint) END, $4, " + server +
      ") ON CONFLICT";
  EXPECT_NE(postgres.grant_one.text.find(values), std::string::npos) << postgres.grant_one.text;
  EXPECT_NE(postgres.grant_one_cycling.text.find(values), std::string::npos)
      << postgres.grant_one_cycling.text;
  const std::string guard = " AND LAST_SEQ = ? AND EPOCH = ? AND INCARNATION = ";
  EXPECT_TRUE(postgres.give_back.text.ends_with(" AND EPOCH = $4 AND INCARNATION = " + server))
      << postgres.give_back.text;
  EXPECT_TRUE(make_statements(dialect_id::mysql, {.failover_skip = 1})
                  .give_back.text.ends_with(guard + "@@server_uuid"));
  EXPECT_TRUE(make_statements(dialect_id::mariadb, {.failover_skip = 1})
                  .give_back.text.ends_with(guard + "@@server_uid"));
  EXPECT_TRUE(make_statements(dialect_id::mariadb, {}).give_back.text.ends_with(" AND EPOCH = ?"));
  EXPECT_EQ(make_statements(dialect_id::mariadb, {.failover_skip = 7}).peek.text,
            "SELECT (LAST_SEQ + CASE WHEN INCARNATION IN ('', @@server_uid) THEN 0 ELSE "
            "GREATEST(0, LEAST(7, LIMIT_SEQ - LAST_SEQ)) END), EPOCH FROM SEQUENCES WHERE NAME = "
            "?");
}

TEST(SequenceStatements, OnH2) {
  EXPECT_EQ(make_statements(dialect_id::h2, {}).grant_one.text,
            "SELECT NAME, GRANTED, LAST_SEQ, EPOCH FROM FINAL TABLE (MERGE INTO SEQUENCES s USING "
            "(SELECT CAST(? AS VARCHAR(128)) AS k, CAST(? AS BIGINT) AS n, CAST(? AS BIGINT) AS l, "
            "CAST(? AS VARCHAR(255)) AS d) v ON s.NAME = v.k WHEN MATCHED AND s.LAST_SEQ < v.l AND "
            "s.DEFINITION IN ('', v.d) THEN UPDATE SET GRANTED = LEAST(v.n, v.l - s.LAST_SEQ), "
            "LAST_SEQ = s.LAST_SEQ + LEAST(v.n, v.l - s.LAST_SEQ), LIMIT_SEQ = v.l, DEFINITION = "
            "v.d WHEN NOT MATCHED THEN INSERT (NAME, GRANTED, LIMIT_SEQ, LAST_SEQ, DEFINITION) "
            "VALUES (v.k, v.n, v.l, v.n, v.d))");
}

TEST(SequenceStatements, OnSqlServer) {
  EXPECT_EQ(
      make_statements(dialect_id::sqlserver, {.prefix = "dbo."}).grant_one.text,
      "SET NOCOUNT ON; SET XACT_ABORT ON; DECLARE @name VARCHAR(128) = ?, @n BIGINT = ?, @limit "
      "BIGINT = ?, @d VARCHAR(255) = ?; DECLARE @done TABLE (k VARCHAR(128), g BIGINT, l BIGINT, e "
      "BIGINT); BEGIN TRANSACTION; UPDATE dbo.SEQUENCES WITH (UPDLOCK, SERIALIZABLE) SET GRANTED = "
      "IIF(@n < @limit - LAST_SEQ, @n, @limit - LAST_SEQ), LAST_SEQ = LAST_SEQ + IIF(@n < @limit - "
      "LAST_SEQ, @n, @limit - LAST_SEQ), LIMIT_SEQ = @limit, DEFINITION = @d OUTPUT inserted.NAME, "
      "inserted.GRANTED, inserted.LAST_SEQ, inserted.EPOCH INTO @done WHERE NAME = @name AND "
      "LAST_SEQ < @limit AND DEFINITION IN ('', @d); IF @@ROWCOUNT = 0 INSERT dbo.SEQUENCES (NAME, "
      "GRANTED, LIMIT_SEQ, LAST_SEQ, DEFINITION) OUTPUT inserted.NAME, inserted.GRANTED, "
      "inserted.LAST_SEQ, inserted.EPOCH INTO @done SELECT @name, @n, @limit, @n, @d WHERE NOT "
      "EXISTS (SELECT 1 FROM dbo.SEQUENCES WITH (UPDLOCK, SERIALIZABLE) WHERE NAME = @name); "
      "COMMIT TRANSACTION; SELECT k, g, l, e FROM @done");
}

TEST(SequenceStatements, OnOracle) {
  const std::string update =
      "UPDATE SEQUENCES SET GRANTED = LEAST(v_n, v_l - LAST_SEQ), LAST_SEQ = LAST_SEQ + LEAST(v_n, "
      "v_l - LAST_SEQ), LIMIT_SEQ = v_l, DEFINITION = v_d WHERE NAME = v_k AND LAST_SEQ < v_l AND "
      "(DEFINITION IS NULL OR DEFINITION = v_d) RETURNING GRANTED, LAST_SEQ, EPOCH INTO v_g, v_t, "
      "v_e; ";
  EXPECT_EQ(make_statements(dialect_id::oracle, {}).grant_one.text,
            "DECLARE v_k VARCHAR2(128) := ?; v_n NUMBER(19) := ?; v_l NUMBER(19) := ?; v_d "
            "VARCHAR2(255) := ?; v_g NUMBER(19); v_t NUMBER(19); v_e NUMBER(19); c SYS_REFCURSOR; "
            "BEGIN " +
                update +
                "IF SQL%ROWCOUNT = 0 THEN BEGIN INSERT INTO SEQUENCES (NAME, GRANTED, LIMIT_SEQ, "
                "LAST_SEQ, DEFINITION) VALUES (v_k, v_n, v_l, v_n, v_d) RETURNING GRANTED, "
                "LAST_SEQ, EPOCH INTO v_g, v_t, v_e; EXCEPTION WHEN DUP_VAL_ON_INDEX THEN " +
                update +
                "END; END IF; COMMIT WRITE IMMEDIATE WAIT; OPEN c FOR SELECT v_k, v_g, v_t, v_e "
                "FROM DUAL WHERE v_t IS NOT NULL; DBMS_SQL.RETURN_RESULT(c); END;");
}

TEST(SequenceStatements, TheTableComparesNamesAsBytesAndCannotOverflow) {
  EXPECT_EQ(sequence_schema(dialect_id::sqlite, {.prefix = "P_"}).front(),
            "CREATE TABLE IF NOT EXISTS P_SEQUENCES (\n  NAME TEXT NOT NULL,\n  LAST_SEQ INTEGER "
            "NOT NULL,\n  GRANTED INTEGER DEFAULT 0 NOT "
            "NULL,\n  LIMIT_SEQ INTEGER NOT NULL,\n  EPOCH INTEGER DEFAULT 1 NOT NULL,\n  "
            "INCARNATION TEXT DEFAULT '' NOT NULL,\n  DEFINITION TEXT DEFAULT '' NOT NULL,\n  "
            "PRIMARY KEY (NAME)\n) STRICT, WITHOUT ROWID");
  EXPECT_NE(sequence_schema(dialect_id::postgresql).front().find(R"(COLLATE "C")"),
            std::string::npos);
  EXPECT_NE(sequence_schema(dialect_id::mysql).front().find("utf8mb4_0900_bin"), std::string::npos);
  EXPECT_NE(sequence_schema(dialect_id::mariadb).front().find("utf8mb4_nopad_bin"),
            std::string::npos);
  EXPECT_NE(sequence_schema(dialect_id::sqlserver).front().find("Latin1_General_BIN2"),
            std::string::npos);
  EXPECT_NE(sequence_schema(dialect_id::oracle)
                .front()
                .find("CHECK (LAST_SEQ BETWEEN 0 AND 9223372036854775807)"),
            std::string::npos);
}

TEST(SequenceStatements, InvalidOptionsAreRefused) {
  EXPECT_EQ(failure_of([] { (void)make_statements(dialect_id::unknown, {}); }).code(),
            errc::invalid_argument);
  EXPECT_EQ(failure_of([] { (void)sequence_schema(dialect_id::unknown); }).code(),
            errc::invalid_argument);
  EXPECT_EQ(failure_of([] {
              (void)make_statements(dialect_id::postgresql, {.prefix = "x; DROP TABLE y; --"});
            }).code(),
            errc::invalid_argument);
  EXPECT_EQ(failure_of([] {
              (void)make_statements(dialect_id::postgresql, {.failover_skip = -1});
            }).code(),
            errc::invalid_argument);
  EXPECT_EQ(
      failure_of([] { (void)make_statements(dialect_id::oracle, {.failover_skip = 1}); }).code(),
      errc::invalid_argument);
}

}  // namespace
}  // namespace holdfast::test
