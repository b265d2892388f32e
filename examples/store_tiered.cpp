// Memory in front of a durable store: what was read or written lately is answered from this
// process, also when the database is gone.

#include <holdfast/holdfast.hpp>

#include <chrono>
#include <filesystem>
#include <iostream>

int main() {
  using namespace std::chrono_literals;
  const auto file = std::filesystem::temp_directory_path() / "holdfast_store_tiered.db";
  for (const char* suffix : {"", "-wal", "-shm"}) std::filesystem::remove(file.string() + suffix);
  const auto now = holdfast::system_clock()->now();
  const holdfast::entry france{.name = "country",
                               .key = "FR",
                               .as_of = now,
                               .expire_on = now + 24h,
                               .payload = R"({"name":"France"})",
                               .payload_class = "app.country"};

  // region memory
  auto memory = holdfast::make_memory_store({.max_entries = 50'000, .max_bytes = 64 << 20});
  memory->put(france);
  (void)memory->find("country", "FR");
  (void)memory->find("country", "XX");
  const auto numbers = memory->stats();
  std::cout << numbers.entries << " entry, " << numbers.hits << " hit, " << numbers.misses
            << " miss, " << numbers.evicted << " evicted\n";
  // endregion

  // region tiered
  auto db = holdfast::open("sqlite://" + file.string());
  auto store = holdfast::make_tiered_store(
      db.store({.create_schema = true}),
      {.freshness = 10s, .read_deadline = 250ms, .executor = holdfast::make_thread_pool()});
  store->put(france);  // on the disk when it returns, and in front
  std::cout << *store->find("country", "FR")->payload << '\n';
  std::cout << store->stats().fresh << " answered from the front, " << store->stats().asked
            << " asked for below\n";
  // endregion
}
