#include "serve/auth/state_tables.hpp"

#include <holdfast/error.hpp>

namespace HOLDFAST_NAMESPACE::detail::serve {

namespace {

std::vector<std::string> create_identity_tables(sql::dialect_id dialect, int /*version*/) {
  const auto types = state_columns(dialect);
  const auto number = " " + types.integer + " NOT NULL";
  const auto name = [&](std::size_t size) { return " " + types.text(size) + " NOT NULL"; };
  const auto text = [&](std::size_t size) { return " " + types.text(size); };
  return {
      create_state_table(dialect, "HOLDFAST_SERVE_TOKEN",
                         "TOKEN_ID" + name(8) + ", HASH" + name(64) + ", NAME" + name(64) +
                             ", ROLE_NAME" + name(16) + ", SCOPES" + text(4000) + ", TENANT" +
                             text(128) + ", RATE" + number + ", CREATED_ON" + number +
                             ", EXPIRES_ON" + number + ", REVOKED_ON" + number + ", LAST_USED" +
                             number + ", PRIMARY KEY (TOKEN_ID)"),
      create_state_table(dialect, "HOLDFAST_SERVE_SESSION",
                         "HASH" + name(64) + ", TOKEN_ID" + text(8) + ", NAME" + name(64) +
                             ", CREATED_ON" + number + ", LAST_SEEN" + number +
                             ", PRIMARY KEY (HASH)"),
      create_state_table(dialect, "HOLDFAST_SERVE_AUDIT",
                         "ENTRY_ID" + name(32) + ", CALLER" + text(200) + ", ADDRESS" + text(64) +
                             ", TENANT" + text(128) + ", ACTION_NAME" + name(64) + ", SUBJECT" +
                             text(500) + ", AMOUNT" + number + ", RESULT_TEXT" + text(500) +
                             ", PRIMARY KEY (ENTRY_ID)"),
      create_state_table(dialect, "HOLDFAST_SERVE_CHANGE",
                         "PART" + name(16) + ", CHANGE_COUNT" + number + ", PRIMARY KEY (PART)")};
}

}  // namespace

sql::schema_set identity_tables() {
  return {.name = "server",
          .tables = {"HOLDFAST_SERVE_TOKEN", "HOLDFAST_SERVE_SESSION", "HOLDFAST_SERVE_AUDIT",
                     "HOLDFAST_SERVE_CHANGE"},
          .create = create_identity_tables};
}

void count_change(state_session& session, std::string_view part) {
  if (session.execute("UPDATE HOLDFAST_SERVE_CHANGE SET CHANGE_COUNT = CHANGE_COUNT + 1 WHERE "
                      "PART = ?",
                      {part}) == 0)
    session.execute("INSERT INTO HOLDFAST_SERVE_CHANGE (PART, CHANGE_COUNT) VALUES (?, 1)", {part});
}

std::int64_t read_change_count(state_session& session) {
  const auto rows =
      session.query("SELECT CHANGE_COUNT FROM HOLDFAST_SERVE_CHANGE", {}, {sql::type::integer});
  std::int64_t sum = 0;
  for (std::size_t row = 0; row < rows.size(); ++row) sum += integer_of(rows, row, 0);
  return sum;
}

}  // namespace HOLDFAST_NAMESPACE::detail::serve
