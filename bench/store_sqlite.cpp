#include <holdfast/error.hpp>

#include "store_floor.hpp"

#include <sqlite3.h>

#include <utility>

namespace holdfast::bench {

namespace {

struct finalize {
  void operator()(sqlite3_stmt* s) const noexcept { sqlite3_finalize(s); }
};
using prepared = std::unique_ptr<sqlite3_stmt, finalize>;

struct close_database {
  void operator()(sqlite3* db) const noexcept { sqlite3_close_v2(db); }
};

/// One transaction, one prepared upsert, run for each row.
class floor_of_sqlite final : public store_floor {
 public:
  explicit floor_of_sqlite(const store_place& place) {
    sqlite3* opened = nullptr;
    const std::string vfs = place.parameter("vfs");
    const int done = sqlite3_open_v2(place.path.c_str(), &opened, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX,
                                     vfs.empty() ? nullptr : vfs.c_str());
    db_.reset(opened);
    check(done == SQLITE_OK);
    sqlite3_busy_timeout(db_.get(), 10'000);
    run("PRAGMA journal_mode=WAL");
    const std::string level = place.parameter("synchronous");
    run("PRAGMA synchronous=" + (level.empty() ? "full" : level));
  }

  void run(const std::string& text) override { check(sqlite3_exec(db_.get(), text.c_str(), nullptr, nullptr, nullptr) == SQLITE_OK); }

  void prepare(const std::string& written, const std::string& read) override {
    begin_ = made("BEGIN IMMEDIATE");
    commit_ = made("COMMIT");
    upsert_ = made("INSERT INTO " + written + " (" + std::string(store_columns) + ") VALUES (?, ?, ?, ?, ?, ?)" + std::string(on_conflict));
    find_ = made("SELECT AS_OF, EXPIRE_ON, PAYLOAD, PAYLOAD_CLASS FROM " + read + " WHERE FAILOVER_NAME = ? AND FAILOVER_KEY = ?");
  }

  void put(std::span<const entry> entries) override {
    finish(begin_);
    for (const entry& each : entries) upsert(each);
    finish(commit_);
  }

  void put_singly(std::span<const entry> entries) override {
    for (const entry& each : entries) upsert(each);
  }

  raw_row find(std::string_view name, std::string_view key) override {
    sqlite3_stmt* const s = find_.get();
    bind(s, 1, name);
    bind(s, 2, key);
    check(sqlite3_step(s) == SQLITE_ROW);
    raw_row row{.as_of = time(s, 0), .expire_on = time(s, 1), .payload = text(s, 2), .payload_class = text(s, 3)};
    sqlite3_reset(s);
    return row;
  }

 private:
  void check(bool fine) const {
    if (!fine) throw error(errc::unavailable, std::string("SQLite failed beside the store: ") + sqlite3_errmsg(db_.get()));
  }
  prepared made(const std::string& statement) {
    sqlite3_stmt* s = nullptr;
    check(sqlite3_prepare_v3(db_.get(), statement.c_str(), -1, SQLITE_PREPARE_PERSISTENT, &s, nullptr) == SQLITE_OK);
    return prepared(s);
  }
  static void bind(sqlite3_stmt* s, int at, std::string_view words) {
    sqlite3_bind_text(s, at, words.data(), static_cast<int>(words.size()), nullptr);
  }
  static timestamp time(sqlite3_stmt* s, int at) { return timestamp(std::chrono::microseconds(sqlite3_column_int64(s, at))); }
  static std::string text(sqlite3_stmt* s, int at) {
    const auto* const data = static_cast<const char*>(sqlite3_column_blob(s, at));
    return {data, static_cast<std::size_t>(sqlite3_column_bytes(s, at))};
  }
  void finish(const prepared& s) {
    check(sqlite3_step(s.get()) == SQLITE_DONE);
    sqlite3_reset(s.get());
  }
  void upsert(const entry& e) {
    sqlite3_stmt* const s = upsert_.get();
    bind(s, 1, e.name);
    bind(s, 2, e.key);
    sqlite3_bind_int64(s, 3, e.as_of.time_since_epoch().count());
    sqlite3_bind_int64(s, 4, e.expire_on.time_since_epoch().count());
    bind(s, 5, *e.payload);
    bind(s, 6, e.payload_class);
    finish(upsert_);
  }

  std::unique_ptr<sqlite3, close_database> db_{};
  prepared begin_{};
  prepared commit_{};
  prepared upsert_{};
  prepared find_{};
};

}  // namespace

std::unique_ptr<store_floor> sqlite_floor(const store_place& place) { return std::make_unique<floor_of_sqlite>(place); }

}  // namespace holdfast::bench
