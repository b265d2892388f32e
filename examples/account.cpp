// The Account of the published design: its ids come from a sequence that all machines share, and
// its tests need no database.

#include <holdfast/holdfast.hpp>
#include <holdfast/id_generator.hpp>

#include <cstdint>
#include <filesystem>
#include <iostream>
#include <string>
#include <utility>

// region account
class account {
 public:
  /// Takes whatever makes ids: a sequence in production, a counter in a test.
  template <holdfast::id_generator Ids>
  static account create(Ids& ids, std::int64_t customer, std::string name) {
    return {ids.next(), customer, std::move(name)};
  }

  [[nodiscard]] std::int64_t id() const { return id_; }
  [[nodiscard]] const std::string& name() const { return name_; }

 private:
  account(std::int64_t id, std::int64_t customer, std::string name)
      : id_(id), customer_(customer), name_(std::move(name)) {}

  std::int64_t id_;
  std::int64_t customer_;
  std::string name_;
};
// endregion

int main() {
  const auto file = std::filesystem::temp_directory_path() / "holdfast_account.db";
  for (const char* suffix : {"", "-wal", "-shm"}) std::filesystem::remove(file.string() + suffix);

  // region sequence
  auto db = holdfast::open("sqlite://" + file.string());
  auto ids = db.sequence("account.id", {.store = {.create_schema = true}});

  const auto savings = account::create(ids, 7, "savings");
  const auto daily = account::create(ids, 7, "daily");
  std::cout << savings.name() << ' ' << savings.id() << '\n'
            << daily.name() << ' ' << daily.id() << '\n';
  // endregion

  // region another machine
  auto elsewhere = holdfast::open("sqlite://" + file.string());  // as another process would
  auto other_ids = elsewhere.sequence("account.id");
  std::cout << "elsewhere " << account::create(other_ids, 8, "travel").id() << '\n';
  std::cout << "here " << account::create(ids, 7, "house").id() << '\n';
  std::cout << "allocated " << ids.peek().value() << '\n';
  // endregion

  // region test
  holdfast::local_ids counter(1000);
  std::cout << "in a test " << account::create(counter, 1, "any").id() << '\n';
  // endregion

  // region handle
  auto mine = ids.handle();  // this thread's own part of the lease
  std::cout << "from a handle " << account::create(mine, 7, "holiday").id() << '\n';
  auto many = ids.next_n(500);
  std::cout << many.size() << " at once, without a gap: " << many.last() - many.first() + 1 << '\n';
  // endregion
}
