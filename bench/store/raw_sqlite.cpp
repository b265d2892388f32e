#include <holdfast/error.hpp>

#include "bench/store/raw_client.hpp"

#include <sqlite3.h>

#include <utility>

namespace holdfast::bench {

namespace {

struct finalize_statement {
  void operator()(sqlite3_stmt* statement) const noexcept { sqlite3_finalize(statement); }
};
using prepared_statement = std::unique_ptr<sqlite3_stmt, finalize_statement>;

struct close_database {
  void operator()(sqlite3* database) const noexcept { sqlite3_close_v2(database); }
};

/// A batch is one transaction that runs one prepared upsert for each row.
class raw_sqlite final : public raw_client {
 public:
  explicit raw_sqlite(const raw_client_settings& settings) {
    const std::string path = (settings.parts.has_authority ? "/" : "") + settings.parts.path;
    const std::string vfs = settings.parameter("vfs");
    sqlite3* opened = nullptr;
    const int status = sqlite3_open_v2(
        path.c_str(), &opened, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX,
        vfs.empty() ? nullptr : vfs.c_str());
    database_.reset(opened);
    check(status == SQLITE_OK);
    sqlite3_busy_timeout(database_.get(), 10'000);
    run("PRAGMA journal_mode=WAL");
    const std::string synchronous = settings.parameter("synchronous");
    run("PRAGMA synchronous=" + (synchronous.empty() ? "full" : synchronous));
  }

  void run(const std::string& text) override {
    check(sqlite3_exec(database_.get(), text.c_str(), nullptr, nullptr, nullptr) == SQLITE_OK);
  }

  void prepare(const std::string& written_table, const std::string& read_table) override {
    begin_ = prepared("BEGIN IMMEDIATE");
    commit_ = prepared("COMMIT");
    upsert_ = prepared("INSERT INTO " + written_table + " (" + std::string(store_columns) +
                       ") VALUES (?, ?, ?, ?, ?, ?)" + std::string(on_conflict));
    find_ = prepared("SELECT AS_OF, EXPIRE_ON, PAYLOAD, PAYLOAD_CLASS FROM " + read_table +
                     " WHERE FAILOVER_NAME = ? AND FAILOVER_KEY = ?");
  }

  void put(std::span<const entry> entries) override {
    step_to_end(begin_);
    for (const entry& written : entries) upsert(written);
    step_to_end(commit_);
  }

  void put_singly(std::span<const entry> entries) override {
    for (const entry& written : entries) upsert(written);
  }

  raw_row find(std::string_view name, std::string_view key) override {
    sqlite3_stmt* const statement = find_.get();
    bind(statement, 1, name);
    bind(statement, 2, key);
    check(sqlite3_step(statement) == SQLITE_ROW);
    raw_row row{.as_of = time_column(statement, 0),
                .expire_on = time_column(statement, 1),
                .payload = text_column(statement, 2),
                .payload_class = text_column(statement, 3)};
    sqlite3_reset(statement);
    return row;
  }

 private:
  void check(bool succeeded) const {
    if (!succeeded)
      throw error(errc::unavailable,
                  std::string("SQLite, used by hand, failed: ") + sqlite3_errmsg(database_.get()));
  }
  prepared_statement prepared(const std::string& text) {
    sqlite3_stmt* statement = nullptr;
    check(sqlite3_prepare_v3(database_.get(), text.c_str(), -1, SQLITE_PREPARE_PERSISTENT,
                             &statement, nullptr) == SQLITE_OK);
    return prepared_statement(statement);
  }
  static void bind(sqlite3_stmt* statement, int parameter, std::string_view text) {
    sqlite3_bind_text(statement, parameter, text.data(), static_cast<int>(text.size()), nullptr);
  }
  static timestamp time_column(sqlite3_stmt* statement, int column) {
    return timestamp(std::chrono::microseconds(sqlite3_column_int64(statement, column)));
  }
  static std::string text_column(sqlite3_stmt* statement, int column) {
    const auto* const data = static_cast<const char*>(sqlite3_column_blob(statement, column));
    return {data, static_cast<std::size_t>(sqlite3_column_bytes(statement, column))};
  }
  void step_to_end(const prepared_statement& statement) {
    check(sqlite3_step(statement.get()) == SQLITE_DONE);
    sqlite3_reset(statement.get());
  }
  void upsert(const entry& written) {
    sqlite3_stmt* const statement = upsert_.get();
    bind(statement, 1, written.name);
    bind(statement, 2, written.key);
    sqlite3_bind_int64(statement, 3, written.as_of.time_since_epoch().count());
    sqlite3_bind_int64(statement, 4, written.expire_on.time_since_epoch().count());
    bind(statement, 5, *written.payload);
    bind(statement, 6, written.payload_class);
    step_to_end(upsert_);
  }

  std::unique_ptr<sqlite3, close_database> database_{};
  prepared_statement begin_{};
  prepared_statement commit_{};
  prepared_statement upsert_{};
  prepared_statement find_{};
};

}  // namespace

std::unique_ptr<raw_client> connect_sqlite(const raw_client_settings& settings) {
  return std::make_unique<raw_sqlite>(settings);
}

}  // namespace holdfast::bench
