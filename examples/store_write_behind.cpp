// Write-behind: a put costs a copy, the database is written in batches, and flush says what is
// durable.

#include <holdfast/database.hpp>
#include <holdfast/store/write_behind.hpp>

#include <chrono>
#include <filesystem>
#include <iostream>
#include <string>

int main() {
  using namespace std::chrono_literals;
  const auto file = std::filesystem::temp_directory_path() / "holdfast_store_write_behind.db";
  for (const char* suffix : {"", "-wal", "-shm"}) std::filesystem::remove(file.string() + suffix);
  const auto durable = holdfast::open("sqlite://" + file.string()).store({.create_schema = true});
  const auto now = holdfast::system_clock()->now();
  const auto country = [now](const std::string& code, std::chrono::seconds ago,
                             const std::string& payload) {
    return holdfast::entry{.name = "country",
                           .key = code,
                           .as_of = now - ago,
                           .expire_on = now + 24h,
                           .payload = payload,
                           .payload_class = "app.country"};
  };

  // region open
  auto store = holdfast::make_write_behind(
      durable, {.max_entries = 50'000, .full = holdfast::when_full::drop_oldest});
  // endregion

  // region put
  // queued: the caller does not wait for the database
  store->put(country("FR", 2s, R"({"name":"France"})"));
  store->put(country("IT", 2s, R"({"name":"Italy"})"));
  std::cout << *store->find("country", "FR")->payload << '\n';  // reads see what is queued
  // endregion

  // region flush
  const auto report = store->flush(std::chrono::steady_clock::now() + 10s);
  std::cout << (report.complete() ? "durable" : "not all of it is durable") << '\n';
  std::cout << durable->count("country") << " rows\n";
  // endregion

  // region close
  const auto last = store->close(std::chrono::steady_clock::now() + 10s);
  std::cout << last.unsaved << " unsaved, " << last.in_flight << " in flight, " << last.dropped
            << " dropped\n";
  const auto numbers = store->numbers();
  std::cout << numbers.queued << " queued, " << numbers.written << " written, " << numbers.failed
            << " failed\n";
  // endregion
  for (const char* suffix : {"", "-wal", "-shm"}) std::filesystem::remove(file.string() + suffix);
}
