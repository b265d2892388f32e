// A sequence on SQLite: ids, blocks, what a second process gets, and what happens after an import.
// And how one on Redis is fenced.

#include <holdfast/holdfast.hpp>

#include <chrono>
#include <filesystem>
#include <iostream>

using namespace std::chrono_literals;

// region redis
/// Redis hands out the ids, and PostgreSQL makes sure that none comes twice: it is asked once in a
/// million ids.
holdfast::sequence on_redis(const std::string& redis_url, const std::string& sql_url) {
  const auto below = holdfast::open(sql_url).block_store();
  return holdfast::open(redis_url).sequence(
      "account.id", {.store = {.fence = holdfast::super_blocks{.source = below}}});
}
// endregion

// region server
/// For a server that draws much: blocks grow with the rate, and the next one is there before it is
/// needed.
holdfast::sequence for_a_server(const holdfast::database& db) {
  return db.sequence("order.id", {.blocks = holdfast::adaptive_blocks{.target = 1s}});
}
// endregion

int main(int argc, char** argv) {
  const auto file = std::filesystem::temp_directory_path() / "holdfast_sequence_quickstart.db";
  for (const char* suffix : {"", "-wal", "-shm"}) std::filesystem::remove(file.string() + suffix);

  // region next
  auto db = holdfast::open("sqlite://" + file.string());
  auto ids = db.sequence("account.id", {.store = {.create_schema = true}});
  std::cout << ids.next() << ' ' << ids.next() << ' ' << ids.next() << '\n';
  // endregion

  // region blocks
  // As another process would
  auto elsewhere = holdfast::open("sqlite://" + file.string()).sequence("account.id");
  std::cout << elsewhere.next() << '\n';
  std::cout << ids.next() << '\n';
  std::cout << "allocated: " << ids.peek().value_or(0) << '\n';
  // endregion

  // region import
  // Rows with ids up to 1000 were imported
  ids.ensure_at_least(1000);
  // What was leased before stays good
  std::cout << ids.next() << ", later " << db.sequence("account.id").next() << '\n';
  // endregion

  std::cout << for_a_server(db).next() << '\n';
  if (argc > 2) std::cout << on_redis(argv[1], argv[2]).next() << '\n';
}
