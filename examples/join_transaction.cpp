// A statement of the library's in a transaction of yours: there when you commit, never there when
// you roll back.

#include <holdfast/holdfast.hpp>
#include <holdfast/join/sqlite3.hpp>

#include <sqlite3.h>

#include <array>
#include <iostream>

int main() {
  // Your own handle, made and owned by you.
  sqlite3* db = nullptr;
  if (sqlite3_open(":memory:", &db) != SQLITE_OK) return 1;
  const auto run = [db](const char* text) {
    return sqlite3_exec(db, text, nullptr, nullptr, nullptr) == SQLITE_OK;
  };
  if (!run("CREATE TABLE orders (id INTEGER); CREATE TABLE notes (order_id INTEGER, note TEXT)"))
    return 1;

  // region join
  holdfast::join::sqlite here{db};
  const holdfast::sql::statement note{
      .text = "INSERT INTO notes VALUES (?, ?)",
      .parameters = {holdfast::sql::type::integer, holdfast::sql::type::text}};
  const std::array<holdfast::sql::parameter, 2> values{std::int64_t{7}, std::string_view("paid")};

  run("BEGIN IMMEDIATE");
  run("INSERT INTO orders VALUES (7)");  // yours
  here.execute(note, values);            // ours, in the same transaction
  run("COMMIT");
  // endregion

  run("BEGIN IMMEDIATE");
  here.execute(note, values);
  run("ROLLBACK");

  run("BEGIN");
  const auto count = here.execute(
      {.text = "SELECT COUNT(*) FROM notes", .results = {holdfast::sql::type::integer}}, {});
  std::cout << "notes: " << std::get<std::int64_t>(count.rows.at(0, 0)) << '\n';
  run("COMMIT");

  // region refused
  try {
    here.execute(note, values);
  } catch (const holdfast::error& e) {
    std::cout << e.what() << '\n';
  }
  // endregion
  sqlite3_close(db);
}
