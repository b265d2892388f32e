// An order and the promise to tell about it, in one transaction of yours: both are there, or
// neither.

#include <holdfast/holdfast.hpp>
#include <holdfast/join/sqlite3.hpp>
#include <holdfast/outbox.hpp>

#include <sqlite3.h>

#include <filesystem>
#include <iostream>

int main() {
  const auto file = std::filesystem::temp_directory_path() / "holdfast_join_outbox.db";
  for (const char* suffix : {"", "-wal", "-shm"}) std::filesystem::remove(file.string() + suffix);
  const auto outbox = holdfast::open("sqlite://" + file.string()).outbox({.create_schema = true});

  // Your own handle, on the same database.
  sqlite3* db = nullptr;
  if (sqlite3_open(file.c_str(), &db) != SQLITE_OK) return 1;
  const auto run = [db](const char* text) {
    return sqlite3_exec(db, text, nullptr, nullptr, nullptr) == SQLITE_OK;
  };
  if (!run("CREATE TABLE orders (id INTEGER)")) return 1;

  // region publish
  holdfast::join::sqlite here{db};

  run("BEGIN IMMEDIATE");
  // yours
  run("INSERT INTO orders VALUES (7)");
  // Ours, in the same transaction
  outbox.publish(here, {.type = "order.taken", .key = "customer-1", .payload = R"({"order":7})"});
  run("COMMIT");
  // endregion

  run("BEGIN IMMEDIATE");
  run("INSERT INTO orders VALUES (8)");
  outbox.publish(here, {.type = "order.taken", .key = "customer-1", .payload = R"({"order":8})"});
  run("ROLLBACK");

  // region effect
  const auto got = outbox.claim({.run = 10});
  for (const auto& one : got.events) {
    run("BEGIN IMMEDIATE");
    if (outbox.effect_once(here, got.fence, one) == holdfast::commit_status::done) {
      // What must happen once, in this transaction
      std::cout << one.event.type << ' ' << one.event.payload << '\n';
    }
    run("COMMIT");
    outbox.ack(got.fence, one);
  }
  // endregion
  std::cout << "left: " << outbox.admin().stats().events << '\n';
  sqlite3_close(db);
}
