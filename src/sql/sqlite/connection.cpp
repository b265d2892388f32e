#include "sql/sqlite/connection.hpp"

#include "base/duration_limit.hpp"
#include "base/fork_detector.hpp"
#include "base/hex.hpp"
#include "sql/driver_support.hpp"
#include "sql/sqlite/errors.hpp"
#include "sql/sqlite/values.hpp"
#include "sql/statement_cache.hpp"

#include <fcntl.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <mutex>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>

namespace HOLDFAST_NAMESPACE::detail::sql::sqlite {

namespace {

using steady = std::chrono::steady_clock;

/// Statements that a connection keeps prepared.
constexpr std::size_t statement_limit = 128;

/// The longest text, blob or row. The largest values that the library writes are events: 16 MiB,
/// and a byte takes up to 6 bytes in JSON.
constexpr int value_limit = 128 << 20;
/// The bytes of all rows of a result, so that many large values do not take all memory either.
constexpr std::size_t result_limit = std::size_t{1} << 30U;

struct finalize {
  void operator()(sqlite3_stmt* statement) const noexcept { sqlite3_finalize(statement); }
};
using statement_handle = std::unique_ptr<sqlite3_stmt, finalize>;

/// Creates the file with access for its owner only; SQLite would let every user read it, and gives
/// its log files the mode of the database file. An existing file keeps its mode. Ignores failures,
/// which SQLite reports better. An empty file is an empty database.
void create_private_file(const std::string& file) {
  // close() drops the POSIX locks of this process on the file, so only a file that no connection
  // has open may be opened here. The mutex ensures that for the target of a dangling link: it is
  // still missing when it is created.
  static std::mutex mutex;
  const std::scoped_lock lock(mutex);
  int descriptor = ::open(file.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  struct stat target{};
  if (descriptor < 0 && errno == EEXIST && ::stat(file.c_str(), &target) != 0 && errno == ENOENT)
    descriptor = ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (descriptor >= 0) ::close(descriptor);
}

void refuse_missing(const std::string& file) {
  std::error_code ignored;
  if (std::filesystem::exists(file, ignored) || ignored) return;
  throw error(errc::not_found,
              "there is no database file '" + file +
                  "'; check its path, or create it (--create-schema, mode=rwc)",
              {.backend_code = std::to_string(SQLITE_CANTOPEN)});
}

/// The result code without the details of the extended code.
int primary(int code) { return code & 0xFF; }

class sqlite_connection final : public connection {
 public:
  explicit sqlite_connection(const sqlite_options& options)
      : file_(options.file), limit_(limit_duration(options.statement_timeout)) {
    if (options.create && options.vfs.empty()) create_private_file(options.file);
    const int access = options.read_only ? SQLITE_OPEN_READONLY
                       : options.create  ? SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE
                                         : SQLITE_OPEN_READWRITE;
    const int opened = open_file(options.file, access, options);
    try {
      if (opened != SQLITE_OK && !options.create) refuse_missing(options.file);
      check(opened);
      // SQLite opens a file for reading if it may not be written.
      const bool read_only = sqlite3_db_readonly(db_, "main") == 1;
      if (read_only && !can_read_schema()) open_unchanging(options);
      configure(options, read_only);
    } catch (...) {
      sqlite3_close_v2(db_);
      throw;
    }
  }
  sqlite_connection(const sqlite_connection&) = delete;
  sqlite_connection& operator=(const sqlite_connection&) = delete;
  ~sqlite_connection() override {
    statements_.clear();
    // In a forked child, closing would touch the file, the locks and the log of the parent. The
    // child leaks the handle instead.
    if (!process_.inherited_by_fork()) sqlite3_close_v2(db_);
  }

  [[nodiscard]] dialect_id dialect() const noexcept override { return dialect_id::sqlite; }
  [[nodiscard]] transport_kind transport() const noexcept override { return transport_kind::local; }
  [[nodiscard]] bool file_was_replaced() const noexcept {
    int moved = 0;
    return sqlite3_file_control(db_, "main", SQLITE_FCNTL_HAS_MOVED, &moved) == SQLITE_OK &&
           moved != 0;
  }

  outcome execute(const statement& s, std::span<const parameter> parameters) override {
    start_call();
    sqlite3_stmt* prepared = prepare(s.text);
    bind_all(prepared, 1, parameters);
    outcome result{.rows = rows(s.results.size())};
    step_all(prepared, s.results, result);
    return result;
  }

  outcome batch(const batch_statement& s, std::span<const std::vector<parameter>> columns,
                std::span<const parameter> common) override {
    outcome result{.rows = rows(s.results.size())};
    if (columns.empty() || columns.front().empty()) return result;
    start_call();
    const bool own_transaction = sqlite3_get_autocommit(db_) != 0;
    if (own_transaction) run_simple("BEGIN IMMEDIATE");
    try {
      sqlite3_stmt* prepared = prepare(s.text + s.row + s.tail);
      for (std::size_t row = 0; row < columns.front().size(); ++row) {
        int number = 1;
        for (const auto& column : columns) check(bind_parameter(prepared, number++, column[row]));
        bind_all(prepared, number, common);
        step_all(prepared, s.results, result);
      }
      if (own_transaction) commit_transaction();
    } catch (...) {
      if (own_transaction) rollback();
      throw;
    }
    return result;
  }

  void run(const std::string& text) override {
    start_call();
    check(sqlite3_exec(db_, text.c_str(), nullptr, nullptr, nullptr));
  }

  /// IMMEDIATE takes the write lock: a transaction that starts with a read cannot write after
  /// another connection wrote.
  void begin() override {
    start_call();
    run_simple("BEGIN IMMEDIATE");
  }
  void commit() override {
    start_call();
    commit_transaction();
  }
  void rollback() noexcept override {
    try {
      start_call();
      if (sqlite3_get_autocommit(db_) == 0) run_simple("ROLLBACK");
    } catch (...) {
      broken_ = true;
    }
  }

  void limit(std::chrono::milliseconds longest) override { limit_ = limit_duration(longest); }
  [[nodiscard]] bool broken() const noexcept override { return broken_; }

 private:
  void start_call() {
    check_process(process_);
    deadline_.reset();
  }
  /// Most statements end before anything asks for their deadline, so it is determined late: when
  /// SQLite first waits, or after the first 10,000 instructions.
  steady::time_point deadline() noexcept {
    if (!deadline_) deadline_ = steady::now() + limit_;
    return *deadline_;
  }

  [[nodiscard]] int open_file(const std::string& file, int flags, const sqlite_options& options) {
    return sqlite3_open_v2(file.c_str(), &db_, flags | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE,
                           options.vfs.empty() ? nullptr : options.vfs.c_str());
  }

  [[nodiscard]] bool can_read_schema() {
    const int code = primary(sqlite3_exec(db_, "PRAGMA schema_version", nullptr, nullptr, nullptr));
    return code != SQLITE_CANTOPEN && code != SQLITE_READONLY;
  }

  /// For a file in WAL mode in a directory that cannot be written: SQLite cannot create the index
  /// of the log. Without a log the file has everything.
  void open_unchanging(const sqlite_options& options) {
    std::error_code ignored;
    if (std::filesystem::exists(options.file + "-wal", ignored)) fail(SQLITE_CANTOPEN);
    std::string uri = "file:";
    for (const char c : options.file) {
      if (c == '%' || c == '?' || c == '#') {
        uri += '%';
        append_hex(uri, {&c, 1});
      } else {
        uri += c;
      }
    }
    sqlite3_close_v2(std::exchange(db_, nullptr));
    check(open_file(uri + "?immutable=1", SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, options));
  }

  void configure(const sqlite_options& options, bool read_only) {
    distrust_schema();
    sqlite3_busy_handler(db_, &sqlite_connection::wait_for_lock, this);
    sqlite3_progress_handler(db_, 10'000, &sqlite_connection::is_late, this);
    if (!read_only) use_write_ahead_log();
    // 16 MiB hold the upper pages of a table with some million entries. With SQLite's default of
    // 2 MB they evict each other.
    run("PRAGMA cache_size=-16384");
    if (options.mapped_mebibytes != 0)
      run("PRAGMA mmap_size=" + std::to_string(std::uint64_t{options.mapped_mebibytes} << 20U));
    static constexpr const char* levels[] = {"FULL", "NORMAL", "OFF"};
    run(std::string("PRAGMA synchronous=") + levels[static_cast<std::size_t>(options.synchronous)]);
  }

  /// Everyone who can write the file can put triggers, views and column defaults into it, and these
  /// run with our statements. They must not reach functions and virtual tables with side effects,
  /// and statements must not corrupt the file.
  void distrust_schema() {
    check(sqlite3_db_config(db_, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr));
    check(sqlite3_db_config(db_, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr));
    // A view can compute values of any size.
    (void)sqlite3_limit(db_, SQLITE_LIMIT_LENGTH, value_limit);
  }

  /// Two connections that switch a new file to WAL at the same time block each other. SQLite does
  /// not call the busy handler then, so the retry is here.
  void use_write_ahead_log() {
    start_call();
    for (int tries = 0;; ++tries) {
      const int code = sqlite3_exec(db_, "PRAGMA journal_mode=WAL", nullptr, nullptr, nullptr);
      if (code == SQLITE_OK) return;
      if (primary(code) != SQLITE_BUSY || wait_for_lock(this, tries) == 0) fail(code);
    }
  }

  void check(int code) {
    if (code != SQLITE_OK) fail(code);
  }

  [[noreturn]] void fail(int code, bool in_doubt = false) {
    const std::string message = db_ != nullptr ? sqlite3_errmsg(db_) : "out of memory";
    // After an I/O failure the pages in memory cannot be trusted.
    if (primary(code) == SQLITE_IOERR || primary(code) == SQLITE_CORRUPT) broken_ = true;
    const error failure = to_error(code, message);
    // What is wrong with the file, rather than with a statement.
    const int kind = primary(code);
    const bool of_file = kind == SQLITE_NOTADB || kind == SQLITE_CORRUPT ||
                         kind == SQLITE_CANTOPEN || kind == SQLITE_READONLY;
    const std::string path = of_file ? file_ : std::string();
    if (!in_doubt)
      throw error(failure.code(), failure.message(),
                  {.path = path,
                   .backend_code = failure.backend_code(),
                   .transient = failure.transient(),
                   .not_null_column = failure.not_null_column()});
    throw error(failure.code(), failure.message(),
                {.path = path,
                 .backend_code = failure.backend_code(),
                 .transient = failure.transient(),
                 .in_doubt = true});
  }

  /// SQLite's busy handler: another process writes. Waits a little longer each time, until the
  /// deadline.
  static int wait_for_lock(void* self, int tries) noexcept {
    const auto remaining = static_cast<sqlite_connection*>(self)->deadline() - steady::now();
    if (remaining <= steady::duration::zero()) return 0;
    const auto pause = std::min<steady::duration>(
        std::chrono::microseconds(100) * (1 + std::min(tries, 100)), remaining);
    std::this_thread::sleep_for(pause);
    return 1;
  }
  /// SQLite's progress handler: interrupts the statement by returning 1.
  static int is_late(void* self) noexcept {
    return steady::now() > static_cast<sqlite_connection*>(self)->deadline() ? 1 : 0;
  }

  /// Runs a statement without parameters and results.
  void run_simple(const char* text) {
    if (const int code = step_once(text); code != SQLITE_DONE) fail(code);
  }
  /// A commit that fails on the disk may or may not have happened after a restart.
  void commit_transaction() {
    if (const int code = step_once("COMMIT"); code != SQLITE_DONE)
      fail(code, primary(code) == SQLITE_IOERR);
  }
  int step_once(const char* text) {
    sqlite3_stmt* prepared = prepare(text);
    const int code = sqlite3_step(prepared);
    sqlite3_reset(prepared);
    return code;
  }

  sqlite3_stmt* prepare(std::string_view text) {
    if (const auto* cached = statements_.find(text)) return cached->get();
    sqlite3_stmt* prepared = nullptr;
    check(sqlite3_prepare_v3(db_, text.data(), static_cast<int>(text.size()),
                             SQLITE_PREPARE_PERSISTENT, &prepared, nullptr));
    statement_handle handle(prepared);
    if (statements_.size() == statement_limit) (void)statements_.remove_oldest();
    return statements_.add(std::string(text), std::move(handle)).get();
  }

  void bind_all(sqlite3_stmt* prepared, int first, std::span<const parameter> parameters) {
    for (const parameter& p : parameters) check(bind_parameter(prepared, first++, p));
  }

  void step_all(sqlite3_stmt* prepared, std::span<const type> results, outcome& result) {
    // A statement that is not reset keeps its lock.
    struct reset_guard {
      sqlite3_stmt* statement;
      ~reset_guard() { sqlite3_reset(statement); }
    } guard{prepared};
    const auto changes_before = sqlite3_total_changes64(db_);
    std::size_t bytes = 0;
    for (;;) {
      const int code = sqlite3_step(prepared);
      if (code == SQLITE_DONE) break;
      if (code != SQLITE_ROW) fail(code);
      for (std::size_t i = 0; i < results.size(); ++i) {
        const value& cell = result.rows.add(read_value(prepared, static_cast<int>(i), results[i]));
        if (const auto* text = std::get_if<std::string>(&cell)) bytes += text->size();
      }
      if (bytes > result_limit) {
        throw error(errc::too_large,
                    "the rows take more than " + std::to_string(result_limit >> 20U) +
                        " MiB; read fewer at once, and look for views among the tables of the "
                        "file");
      }
    }
    result.affected += static_cast<std::uint64_t>(sqlite3_total_changes64(db_) - changes_before);
  }

  std::string file_;
  sqlite3* db_ = nullptr;
  statement_cache<statement_handle> statements_{};
  std::chrono::milliseconds limit_;
  std::optional<steady::time_point> deadline_{};  // of the current call, once it is needed
  bool broken_ = false;
  fork_detector process_{};  // that opened the connection
};

}  // namespace

}  // namespace HOLDFAST_NAMESPACE::detail::sql::sqlite

namespace HOLDFAST_NAMESPACE::detail::sql {

std::unique_ptr<connection> connect_sqlite(const sqlite_options& options) {
  return std::make_unique<sqlite::sqlite_connection>(options);
}

bool file_was_replaced(connection& connection) noexcept {
  const auto* file = dynamic_cast<const sqlite::sqlite_connection*>(&connection);
  return file != nullptr && file->file_was_replaced();
}

}  // namespace HOLDFAST_NAMESPACE::detail::sql
