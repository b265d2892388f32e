// The store by itself: the newer of two versions stays, and a tombstone says that there is nothing.

#include <holdfast/holdfast.hpp>

#include <chrono>
#include <filesystem>
#include <iostream>

int main() {
  using namespace std::chrono_literals;
  const auto file = std::filesystem::temp_directory_path() / "holdfast_store_quickstart.db";
  for (const char* suffix : {"", "-wal", "-shm"}) std::filesystem::remove(file.string() + suffix);

  // region open
  auto db = holdfast::open("sqlite://" + file.string());
  auto store = db.store({.prefix = "DEMO_", .create_schema = true});
  // endregion

  // region newer wins
  const auto now = holdfast::system_clock()->now();
  holdfast::entry france{.name = "country",
                         .key = "FR",
                         .as_of = now - 2s,  // when the call started
                         .expire_on = now + 24h,
                         .payload = R"({"name":"France"})",
                         .payload_class = "app.country"};
  store->put({&france, 1});

  france.payload = R"({"name":"an older answer, written late"})";
  france.as_of = now - 5s;
  store->put({&france, 1});  // not written: what is there is newer
  std::cout << *store->find("country", "FR")->payload << '\n';
  // endregion

  // region tombstone
  const holdfast::entry gone{.name = "country", .key = "FR", .as_of = now, .expire_on = now + 1h};
  store->put({&gone, 1});
  std::cout << "tombstone: " << std::boolalpha << store->find("country", "FR")->tombstone() << '\n';
  // endregion

  std::cout << "entries: " << store->count("country") << '\n';
}
