#include "sql/sqlite_connection.hpp"

#include "sql/sqlite_errors.hpp"
#include "sql/within_reach.hpp"

#include <fcntl.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <list>
#include <mutex>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <utility>

namespace HOLDFAST_NAMESPACE::sql {

namespace {

using steady = std::chrono::steady_clock;

struct finalize {
  void operator()(sqlite3_stmt* s) const noexcept { sqlite3_finalize(s); }
};
using prepared = std::unique_ptr<sqlite3_stmt, finalize>;

/// The longest text, blob or row. The largest that the library writes are events: 16 MiB, of which each byte takes up to 6 as JSON.
constexpr int largest_value = 128 << 20;
/// Of all rows of a result, so that a page of large values does not take all memory either.
constexpr std::size_t largest_result = std::size_t{1} << 30U;

/// Creates the file for its owner only; SQLite would let every user read it, and gives its log files the mode of the database. A file that
/// exists keeps its mode. What goes wrong is left to SQLite, which reports it better. An empty file is an empty database.
void create_private_file(const std::string& file) {
  // Closing a file drops the locks that this process has on it, so only a file that no connection has open yet may be opened here. With
  // the mutex, a link that leads nowhere still does when its target is created.
  static std::mutex creating;
  const std::scoped_lock lock(creating);
  int created = ::open(file.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  struct stat target{};
  if (created < 0 && errno == EEXIST && ::stat(file.c_str(), &target) != 0 && errno == ENOENT)
    created = ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (created >= 0) ::close(created);
}

class sqlite_connection final : public connection {
 public:
  explicit sqlite_connection(const sqlite_options& options) : longest_(within_reach(options.statement_timeout)), owner_(getpid()) {
    if (options.create && options.vfs.empty()) create_private_file(options.file);
    const int opened =
        sqlite3_open_v2(options.file.c_str(), &db_,
                        SQLITE_OPEN_READWRITE | (options.create ? SQLITE_OPEN_CREATE : 0) | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE,
                        options.vfs.empty() ? nullptr : options.vfs.c_str());
    try {
      if (opened != SQLITE_OK && !options.create) refuse_missing(options.file);
      if (opened != SQLITE_OK) fail(opened);
      distrust_the_file();
      sqlite3_busy_handler(db_, &sqlite_connection::wait_for_lock, this);
      sqlite3_progress_handler(db_, 10'000, &sqlite_connection::out_of_time, this);
      use_write_ahead_log();
      // Room for the upper pages of a table of some million entries; with SQLite's own 2 MB they push each other out.
      run("PRAGMA cache_size=-16384");
      if (options.mapped_mebibytes != 0) run("PRAGMA mmap_size=" + std::to_string(std::uint64_t{options.mapped_mebibytes} << 20U));
      static constexpr const char* levels[] = {"FULL", "NORMAL", "OFF"};
      run(std::string("PRAGMA synchronous=") + levels[static_cast<std::size_t>(options.synchronous)]);
    } catch (...) {
      sqlite3_close_v2(db_);
      throw;
    }
  }
  sqlite_connection(const sqlite_connection&) = delete;
  sqlite_connection& operator=(const sqlite_connection&) = delete;
  ~sqlite_connection() override {
    kept_.clear();
    by_text_.clear();
    // In a child process the file, its locks and its log are the parent's: closing would touch them. The memory is let go.
    if (getpid() == owner_) sqlite3_close_v2(db_);
  }

  [[nodiscard]] dialect_id dialect() const noexcept override { return dialect_id::sqlite; }
  [[nodiscard]] transport_kind transport() const noexcept override { return transport_kind::local; }

  outcome execute(const statement& s, std::span<const parameter> parameters) override {
    start_clock();
    sqlite3_stmt* ready = prepare(s.text);
    bind(ready, 1, parameters);
    outcome result{.rows = rows(s.results.size())};
    step_all(ready, s.results, result);
    return result;
  }

  outcome batch(const batch_statement& s, std::span<const std::vector<parameter>> columns, std::span<const parameter> common) override {
    outcome result{.rows = rows(s.results.size())};
    if (columns.empty() || columns.front().empty()) return result;
    start_clock();
    const bool own = sqlite3_get_autocommit(db_) != 0;
    // IMMEDIATE: a transaction that begins by reading and then wants to write can only fail when another one wrote meanwhile.
    if (own) simple("BEGIN IMMEDIATE");
    try {
      sqlite3_stmt* ready = prepare(s.text + s.row + s.tail);
      for (std::size_t i = 0; i < columns.front().size(); ++i) {
        int at = 1;
        for (const auto& column : columns) bind_one(ready, at++, column[i]);
        bind(ready, at, common);
        step_all(ready, s.results, result);
      }
      if (own) finish_transaction();
    } catch (...) {
      if (own) rollback();
      throw;
    }
    return result;
  }

  void run(const std::string& text) override {
    start_clock();
    const int done = sqlite3_exec(db_, text.c_str(), nullptr, nullptr, nullptr);
    if (done != SQLITE_OK) fail(done);
  }

  void begin() override {
    start_clock();
    simple("BEGIN IMMEDIATE");
  }
  void commit() override {
    start_clock();
    finish_transaction();
  }
  void rollback() noexcept override {
    try {
      start_clock();
      if (sqlite3_get_autocommit(db_) == 0) simple("ROLLBACK");
    } catch (...) {
      broken_ = true;
    }
  }

  void limit(std::chrono::milliseconds longest) override { longest_ = within_reach(longest); }
  [[nodiscard]] bool broken() const noexcept override { return broken_; }

 private:
  static constexpr std::size_t most_kept = 128;

  /// Every call begins here.
  void start_clock() {
    if (getpid() != owner_)
      throw error(errc::invalid_argument, "the connection was opened by the parent process; open one in this process");
    deadline_ = steady::now() + longest_;
  }

  /// Anyone who can write the file can put triggers, views and column defaults into it, which run with our statements. They must not reach
  /// functions and virtual tables with side effects, and statements must not change the file behind SQLite's back.
  void distrust_the_file() {
    for (const auto& [setting, value] : {std::pair{SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0}, {SQLITE_DBCONFIG_DEFENSIVE, 1}}) {
      const int done = sqlite3_db_config(db_, setting, value, nullptr);
      if (done != SQLITE_OK) fail(done);
    }
    // A view can compute values of any size.
    (void)sqlite3_limit(db_, SQLITE_LIMIT_LENGTH, largest_value);
  }

  static void refuse_missing(const std::string& file) {
    std::error_code unknown;
    if (std::filesystem::exists(file, unknown) || unknown) return;
    throw error(errc::not_found, "there is no database file '" + file + "'; check its path, or let it be made (--create-schema, mode=rwc)");
  }

  [[noreturn]] void fail(int code, bool in_doubt = false) {
    const std::string message = db_ != nullptr ? sqlite3_errmsg(db_) : "out of memory";
    const error e = sqlite_error(code, message);
    // After an I/O failure nothing that this connection has in memory can be trusted.
    if ((code & 0xFF) == SQLITE_IOERR || (code & 0xFF) == SQLITE_CORRUPT) broken_ = true;
    throw error(e.code(), e.message(), {.backend_code = e.backend_code(), .transient = e.transient(), .in_doubt = in_doubt});
  }

  /// Another process writes: wait a little, and longer each time, until our time is up.
  static int wait_for_lock(void* self, int tries) noexcept {
    const auto& me = *static_cast<sqlite_connection*>(self);
    const auto left = me.deadline_ - steady::now();
    if (left <= steady::duration::zero()) return 0;
    const auto pause = std::min<steady::duration>(std::chrono::microseconds(100) * (1 + std::min(tries, 100)), left);
    std::this_thread::sleep_for(pause);
    return 1;
  }
  static int out_of_time(void* self) noexcept { return steady::now() > static_cast<sqlite_connection*>(self)->deadline_ ? 1 : 0; }

  /// Two who turn it on in a new file at once each hold what the other needs. SQLite then asks nobody to wait, so it is tried again here.
  void use_write_ahead_log() {
    start_clock();
    for (int tries = 0;; ++tries) {
      const int done = sqlite3_exec(db_, "PRAGMA journal_mode=WAL", nullptr, nullptr, nullptr);
      if (done == SQLITE_OK) return;
      if ((done & 0xFF) != SQLITE_BUSY || wait_for_lock(this, tries) == 0) fail(done);
    }
  }

  void simple(const char* text) {
    sqlite3_stmt* ready = prepare(text);
    const int done = sqlite3_step(ready);
    sqlite3_reset(ready);
    if (done != SQLITE_DONE) fail(done);
  }

  /// A commit that fails at the disk may or may not be there after a restart.
  void finish_transaction() {
    sqlite3_stmt* ready = prepare("COMMIT");
    const int done = sqlite3_step(ready);
    sqlite3_reset(ready);
    if (done != SQLITE_DONE) fail(done, (done & 0xFF) == SQLITE_IOERR);
  }

  sqlite3_stmt* prepare(std::string_view text) {
    if (const auto found = by_text_.find(text); found != by_text_.end()) {
      kept_.splice(kept_.begin(), kept_, found->second);
      return found->second->ready.get();
    }
    sqlite3_stmt* made = nullptr;
    const int done = sqlite3_prepare_v3(db_, text.data(), static_cast<int>(text.size()), SQLITE_PREPARE_PERSISTENT, &made, nullptr);
    if (done != SQLITE_OK) fail(done);
    if (kept_.size() == most_kept) {
      by_text_.erase(kept_.back().text);
      kept_.pop_back();
    }
    kept_.push_front({std::string(text), prepared(made)});
    by_text_.emplace(kept_.front().text, kept_.begin());
    return made;
  }

  void bind(sqlite3_stmt* to, int first, std::span<const parameter> parameters) {
    for (const parameter& each : parameters) bind_one(to, first++, each);
  }

  /// The caller's memory outlives the call, so nothing is copied.
  void bind_one(sqlite3_stmt* to, int at, const parameter& p) {
    struct binder {
      sqlite3_stmt* to;
      int at;
      int operator()(std::monostate) const { return sqlite3_bind_null(to, at); }
      int operator()(std::int64_t v) const { return sqlite3_bind_int64(to, at, v); }
      int operator()(std::string_view v) const {
        return sqlite3_bind_text64(to, at, v.data() != nullptr ? v.data() : "", v.size(), SQLITE_STATIC, SQLITE_UTF8);
      }
      int operator()(std::span<const std::byte> v) const {
        return v.empty() ? sqlite3_bind_zeroblob(to, at, 0) : sqlite3_bind_blob64(to, at, v.data(), v.size(), SQLITE_STATIC);
      }
      int operator()(timestamp v) const { return sqlite3_bind_int64(to, at, v.time_since_epoch().count()); }
    };
    const int done = std::visit(binder{to, at}, p);
    if (done != SQLITE_OK) fail(done);
  }

  void step_all(sqlite3_stmt* ready, std::span<const type> results, outcome& result) {
    // Whatever happens, the statement must not stay open: an open one keeps its lock.
    struct reset {
      sqlite3_stmt* s;
      ~reset() { sqlite3_reset(s); }
    } guard{ready};
    const auto changes_before = sqlite3_total_changes64(db_);
    std::size_t bytes = 0;
    for (;;) {
      const int done = sqlite3_step(ready);
      if (done == SQLITE_DONE) break;
      if (done != SQLITE_ROW) fail(done);
      for (std::size_t i = 0; i < results.size(); ++i) {
        auto cell = read(ready, static_cast<int>(i), results[i]);
        if (const auto* text = std::get_if<std::string>(&cell)) bytes += text->size();
        result.rows.add(std::move(cell));
      }
      if (bytes > largest_result) {
        throw error(errc::too_large, "the rows take more than " + std::to_string(largest_result >> 20U) +
                                         " MiB; read fewer at once, and look for views among the tables of the file");
      }
    }
    result.affected += static_cast<std::uint64_t>(sqlite3_total_changes64(db_) - changes_before);
  }

  static value read(sqlite3_stmt* from, int at, type wanted) {
    const int held = sqlite3_column_type(from, at);
    if (held == SQLITE_NULL) return {};
    // SQLite keeps anything in any column: a moment that is not a number is not one, and the caller sees that nothing is there.
    if ((wanted == type::time || wanted == type::integer) && held != SQLITE_INTEGER) return {};
    switch (wanted) {
      case type::integer:
        return std::int64_t{sqlite3_column_int64(from, at)};
      case type::time:
        return timestamp(std::chrono::microseconds(sqlite3_column_int64(from, at)));
      case type::text:
      case type::bytes:
        break;
    }
    const auto* data = static_cast<const char*>(sqlite3_column_blob(from, at));
    const auto size = static_cast<std::size_t>(sqlite3_column_bytes(from, at));
    return data == nullptr ? std::string() : std::string(data, size);
  }

  struct kept_statement {
    std::string text;
    prepared ready;
  };

  sqlite3* db_ = nullptr;
  std::list<kept_statement> kept_{};  // the latest used first
  std::unordered_map<std::string_view, std::list<kept_statement>::iterator> by_text_{};
  std::chrono::milliseconds longest_;
  steady::time_point deadline_{};
  bool broken_ = false;
  pid_t owner_;
};

}  // namespace

std::unique_ptr<connection> connect_sqlite(const sqlite_options& options) { return std::make_unique<sqlite_connection>(options); }

}  // namespace HOLDFAST_NAMESPACE::sql
