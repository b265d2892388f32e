// Payloads encrypted at rest: sealed, moved to another row, rotated to a new key.

#include <holdfast/holdfast.hpp>
#include <holdfast/store/sealed.hpp>

#include <chrono>
#include <filesystem>
#include <iostream>

int main() {
  using namespace std::chrono_literals;
  const auto file = std::filesystem::temp_directory_path() / "holdfast_store_sealed.db";
  for (const char* suffix : {"", "-wal", "-shm"}) std::filesystem::remove(file.string() + suffix);
  auto db = holdfast::open("sqlite://" + file.string());
  const auto now = holdfast::system_clock()->now();

  // region seal
  auto keys =
      // from_file, from_environment, from_callback
      holdfast::sealing_ring::from_text("may:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=");
  auto raw = db.store({.create_schema = true});
  auto store = holdfast::make_sealed(raw, {.keys = std::move(keys)});

  store->put(holdfast::entry{.name = "country",
                             .key = "FR",
                             .as_of = now,
                             .expire_on = now + 24h,
                             .payload = R"({"name":"France"})",
                             .payload_class = "app.country"});
  std::cout << "below:  " << raw->find("country", "FR")->payload->substr(0, 12) << "...\n";
  std::cout << "opened: " << *store->find("country", "FR")->payload << '\n';
  // endregion

  // region swapped
  auto stolen = *raw->find("country", "FR");
  stolen.key = "DE";  // an attacker copies the row to another key
  raw->put(stolen);
  try {
    (void)store->find("country", "DE");
  } catch (const holdfast::error& refused) {
    std::cout << "swapped: " << to_string(refused.code()) << '\n';
  }
  // endregion
  raw->erase("country", "DE", stolen.as_of);

  // region rotate
  auto both = holdfast::sealing_ring::from_text(
      "june:ICEiIyQlJicoKSorLC0uLzAxMjM0NTY3ODk6Ozw9Pj8=\n"  // the current one
      "may:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=");   // only opens
  store->use(std::move(both));
  const auto report = store->rekey();
  std::cout << "rekeyed: " << report.changed << ", "
            << raw->find("country", "FR")->payload->substr(0, 13) << "...\n";
  // endregion
}
