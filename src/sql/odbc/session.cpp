#include "sql/odbc/session.hpp"

#include "base/aes_gcm.hpp"
#include "sql/driver_support.hpp"
#include "sql/odbc/login.hpp"
#include "sql/read_only_server.hpp"

#include <algorithm>
#include <array>
#include <mutex>
#include <new>
#include <span>
#include <string_view>
#include <utility>

namespace HOLDFAST_NAMESPACE::detail::sql::odbc {

namespace {

/// Statements that a connection keeps prepared.
constexpr std::size_t statement_limit = 64;

std::vector<diagnostic> read_diagnostics(SQLSMALLINT kind, SQLHANDLE handle) {
  std::vector<diagnostic> records;
  for (SQLSMALLINT i = 1; i <= 8; ++i) {
    std::array<SQLWCHAR, 6> state{};
    std::array<SQLWCHAR, 1'024> text{};
    SQLINTEGER native = 0;
    SQLSMALLINT length = 0;
    const auto code = SQLGetDiagRecW(kind, handle, i, state.data(), &native, text.data(),
                                     static_cast<SQLSMALLINT>(text.size()), &length);
    if (!SQL_SUCCEEDED(code)) break;
    const auto text_length = std::min<std::size_t>(
        static_cast<std::size_t>(std::max<SQLSMALLINT>(length, 0)), text.size() - 1);
    records.push_back({.state = from_wide(std::span(state).first(5)),
                       .native = native,
                       .text = from_wide(std::span(text).first(text_length))});
  }
  return records;
}

/// From the name that the driver gives to its database.
dialect_id dialect_of(std::string name) {
  std::ranges::transform(name, name.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  static constexpr std::array<std::pair<std::string_view, dialect_id>, 6> names{
      {{"postgresql", dialect_id::postgresql},
       {"mariadb", dialect_id::mariadb},
       {"mysql", dialect_id::mysql},
       {"sqlite", dialect_id::sqlite},
       {"sql server", dialect_id::sqlserver},
       {"oracle", dialect_id::oracle}}};
  const auto* const row = std::ranges::find_if(
      names, [&](const auto& each) { return name.find(each.first) != std::string::npos; });
  return row == names.end() ? dialect_id::unknown : row->second;
}

SQLUINTEGER whole_seconds(std::chrono::milliseconds limit) {
  return static_cast<SQLUINTEGER>(
      std::clamp<std::int64_t>(std::chrono::ceil<std::chrono::seconds>(limit).count(), 1, 86'400));
}

/// ODBC passes numbers as pointers.
SQLPOINTER as_pointer(SQLULEN number) {
  return reinterpret_cast<SQLPOINTER>(number);  // NOLINT(performance-no-int-to-ptr)
}

/// Drivers connect one at a time: unixODBC keeps the paths of its files in variables that all
/// threads write when they allocate handles, and psqlODBC calls `setlocale` and uses the name that
/// it returns after another thread's connect may have freed it. After half of its time a caller
/// goes on without the lock, so that a server that hangs does not block the others.
std::unique_lock<std::timed_mutex> connect_lock(std::chrono::milliseconds limit) {
  static std::timed_mutex mutex;
  return {mutex, limit / 2};
}

}  // namespace

session::session(const odbc_options& options)
    : secret_(options.password), limit_(options.statement_timeout) {
  connect(options);
  try {
    examine_server();
    apply_settings();
  } catch (...) {
    statements_.clear();
    SQLDisconnect(connection_);
    free_handles();
    throw;
  }
}

session::~session() {
  statements_.clear();
  if (!SQL_SUCCEEDED(SQLDisconnect(connection_))) {
    SQLEndTran(SQL_HANDLE_DBC, connection_, SQL_ROLLBACK);
    SQLDisconnect(connection_);
  }
  free_handles();
}

void session::free_handles() noexcept {
  if (connection_ != SQL_NULL_HDBC) SQLFreeHandle(SQL_HANDLE_DBC, connection_);
  if (environment_ != SQL_NULL_HENV) SQLFreeHandle(SQL_HANDLE_ENV, environment_);
}

void session::connect(const odbc_options& options) {
  auto connection_string = complete_connection_string(options);
  auto lock = connect_lock(options.connect_timeout);
  // Each connection has its own environment: the driver manager may allow one call at a time in an
  // environment, and this one may hang.
  if (!SQL_SUCCEEDED(SQLAllocHandle(SQL_HANDLE_ENV, SQL_NULL_HANDLE, &environment_)))
    throw std::bad_alloc();
  SQLSetEnvAttr(environment_, SQL_ATTR_ODBC_VERSION, as_pointer(SQL_OV_ODBC3), 0);
  if (!SQL_SUCCEEDED(SQLAllocHandle(SQL_HANDLE_DBC, environment_, &connection_))) {
    free_handles();
    throw std::bad_alloc();
  }
  SQLSetConnectAttrW(connection_, SQL_ATTR_LOGIN_TIMEOUT,
                     as_pointer(whole_seconds(options.connect_timeout)), 0);
  const auto code = SQLDriverConnectW(connection_, nullptr, connection_string.data(),
                                      static_cast<SQLSMALLINT>(connection_string.size()), nullptr,
                                      0, nullptr, SQL_DRIVER_NOPROMPT);
  if (lock) lock.unlock();
  wipe(std::as_writable_bytes(std::span(connection_string)));
  if (!SQL_SUCCEEDED(code)) {
    const auto records = read_diagnostics(SQL_HANDLE_DBC, connection_);
    free_handles();
    throw could_not_connect(records, secret_);
  }
}

void session::examine_server() {
  std::array<SQLWCHAR, 128> name{};
  SQLSMALLINT length = 0;
  if (SQL_SUCCEEDED(SQLGetInfoW(connection_, SQL_DBMS_NAME, name.data(),
                                static_cast<SQLSMALLINT>(sizeof name), &length)))
    dialect_ = dialect_of(from_wide(std::span(name).first(
        std::min<std::size_t>(static_cast<std::size_t>(length) / sizeof(SQLWCHAR), name.size()))));
  format_ = {.times_as_numbers = dialect_ == dialect_id::sqlite,
             .numbers_as_text = dialect_ == dialect_id::oracle};
  SQLUINTEGER row_counts = 0;
  takes_arrays_ = SQL_SUCCEEDED(SQLGetInfoW(connection_, SQL_PARAM_ARRAY_ROW_COUNTS, &row_counts,
                                            sizeof row_counts, nullptr)) &&
                  row_counts != 0;
}

/// Gives the session the settings that our own drivers use.
void session::apply_settings() {
  const auto limit_up_to = [this](std::int64_t longest) {
    return std::to_string(std::min<std::int64_t>(limit_.count(), longest));
  };
  const auto lock_seconds = std::to_string(
      std::max<std::int64_t>(1, std::chrono::floor<std::chrono::seconds>(limit_).count() - 1));
  const auto set = [this](const std::string& text) { run(text, loss::harmless); };
  switch (dialect_) {
    case dialect_id::postgresql:
      // A time without a zone is read in the time zone of the session. The server ends statements
      // that we gave up.
      set("SET TIME ZONE 'UTC'");
      set("SET statement_timeout = " +
          std::to_string(std::min<std::int64_t>(limit_.count() + 1'000, 2'000'000'000)));
      break;
    case dialect_id::mysql:
    case dialect_id::mariadb:
      set("SET time_zone='+00:00', sql_mode=CONCAT(@@sql_mode,',STRICT_ALL_TABLES')");
      set("SET innodb_lock_wait_timeout=LEAST(@@innodb_lock_wait_timeout," + lock_seconds + ")");
      set("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED");
      break;
    case dialect_id::sqlite:
      set("PRAGMA journal_mode=WAL");
      set("PRAGMA synchronous=FULL");
      set("PRAGMA busy_timeout=" + limit_up_to(60'000));
      break;
    case dialect_id::oracle:
      set("ALTER SESSION SET TIME_ZONE = '+00:00'");
      break;
    case dialect_id::sqlserver:
      set("SET LOCK_TIMEOUT " + limit_up_to(2'000'000'000));
      break;
    default:
      break;
  }
}

void session::fail(SQLSMALLINT kind, SQLHANDLE handle, loss on_loss) {
  const auto records = read_diagnostics(kind, handle);
  SQLUINTEGER dead = SQL_CD_FALSE;
  if (SQL_SUCCEEDED(
          SQLGetConnectAttrW(connection_, SQL_ATTR_CONNECTION_DEAD, &dead, sizeof dead, nullptr)) &&
      dead == SQL_CD_TRUE)
    dead_ = true;
  const bool late = std::ranges::any_of(records, [](const diagnostic& record) {
    return record.state == "HYT00" || record.state == "HYT01";
  });
  const bool lost = std::ranges::any_of(
      records, [](const diagnostic& record) { return record.state.starts_with("08"); });
  if (late || lost) dead_ = true;
  const auto problem = to_error(
      records,
      {.dialect = dialect_, .lost = dead_ && !late, .on_loss = on_loss, .secret = secret_});
  if (is_read_only_server(problem)) read_only_ = true;
  throw error(problem);
}

session::statement_handle session::new_statement() {
  SQLHSTMT statement = SQL_NULL_HSTMT;
  if (!SQL_SUCCEEDED(SQLAllocHandle(SQL_HANDLE_STMT, connection_, &statement)))
    fail(SQL_HANDLE_DBC, connection_, loss::harmless);
  return statement_handle(statement);
}

SQLHSTMT session::prepare(const std::string& text) {
  if (const auto* cached = statements_.find(text)) return cached->get();
  auto statement = new_statement();
  // For databases without such a setting, the driver may be able to end a statement.
  if (dialect_ == dialect_id::sqlserver || dialect_ == dialect_id::oracle ||
      dialect_ == dialect_id::unknown)
    SQLSetStmtAttrW(statement.get(), SQL_ATTR_QUERY_TIMEOUT, as_pointer(whole_seconds(limit_)), 0);
  auto wide = to_wide(text);
  if (!SQL_SUCCEEDED(
          SQLPrepareW(statement.get(), wide.data(), static_cast<SQLINTEGER>(wide.size()))))
    fail(statement.get(), loss::harmless);
  if (statements_.size() == statement_limit) (void)statements_.remove_oldest();
  return statements_.add(text, std::move(statement)).get();
}

outcome session::execute(request& r) {
  const auto& text = r.statement.text;
  SQLHSTMT const statement = prepare(text);
  try {
    auto result = run_prepared(statement, r);
    SQLFreeStmt(statement, SQL_CLOSE);
    SQLFreeStmt(statement, SQL_RESET_PARAMS);
    // The driver of SQLite loses a row of the next result if the last one was not read completely.
    if (r.most_rows != 0) (void)statements_.remove(text);
    return result;
  } catch (...) {
    (void)statements_.remove(text);  // its state is unknown
    throw;
  }
}

outcome session::run_prepared(SQLHSTMT statement, request& r) {
  outcome result{.rows = rows(r.results.size())};
  bind(statement, r);
  std::vector<SQLUSMALLINT> row_states(r.rows, SQL_PARAM_UNUSED);
  SQLULEN processed = 0;
  const bool many = r.rows > 1;
  SQLSetStmtAttrW(statement, SQL_ATTR_PARAMSET_SIZE, as_pointer(r.rows), 0);
  SQLSetStmtAttrW(statement, SQL_ATTR_PARAM_STATUS_PTR, many ? row_states.data() : nullptr, 0);
  SQLSetStmtAttrW(statement, SQL_ATTR_PARAMS_PROCESSED_PTR, many ? &processed : nullptr, 0);
  // For drivers that read all rows at once. The others are simply not asked for more.
  SQLSetStmtAttrW(statement, SQL_ATTR_MAX_ROWS, as_pointer(r.most_rows), 0);
  auto code = SQLExecute(statement);
  if (code == SQL_NEED_DATA) code = send_requested_parameters(statement, r);
  // SQL_NO_DATA: success, but no row was affected.
  if (!SQL_SUCCEEDED(code) && code != SQL_NO_DATA) fail(statement, r.on_loss);
  if (std::ranges::find(row_states, SQL_PARAM_ERROR) != row_states.end())
    fail(statement, r.on_loss);
  read_results(statement, r, code != SQL_NO_DATA, result);
  return result;
}

void session::bind(SQLHSTMT statement, request& r) {
  const auto& order = r.statement.order;
  const auto count = order.empty() ? r.parameters.size() : order.size();
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t index = order.empty() ? i : order[i];
    if (index >= r.parameters.size())
      throw error(errc::invalid_argument,
                  "the statement has more parameters than values are given");
    if (!SQL_SUCCEEDED(r.parameters[index].bind(statement, static_cast<SQLUSMALLINT>(i + 1))))
      fail(statement, loss::harmless);
  }
}

/// Sends the parameters that the driver requests while it executes. Returns the result of the
/// execution.
SQLRETURN session::send_requested_parameters(SQLHSTMT statement, request& r) {
  for (;;) {
    SQLPOINTER token = nullptr;
    const auto code = SQLParamData(statement, &token);
    if (code != SQL_NEED_DATA) return code;
    const auto requested = std::ranges::find_if(
        r.parameters, [token](const bound_parameter& p) { return p.is_requested_by(token); });
    if (requested == r.parameters.end())
      throw error(errc::internal, "the ODBC driver asked for a parameter that does not exist");
    if (!SQL_SUCCEEDED(requested->send_pieces(statement))) fail(statement, loss::harmless);
  }
}

/// `has_cursor`: whether the first result can be fetched from. psqlODBC has no cursor for an UPDATE
/// that returns columns and affected no row.
void session::read_results(SQLHSTMT statement, const request& r, bool has_cursor, outcome& result) {
  for (;; has_cursor = true) {
    SQLSMALLINT columns = 0;
    if (!SQL_SUCCEEDED(SQLNumResultCols(statement, &columns))) fail(statement, r.on_loss);
    if (columns == 0) {
      SQLLEN affected = 0;
      if (SQL_SUCCEEDED(SQLRowCount(statement, &affected)) && affected > 0)
        result.affected += static_cast<std::uint64_t>(affected);
    } else if (!r.results.empty()) {
      check_column_count(static_cast<std::size_t>(columns), r.results.size());
      if (has_cursor) read_rows(statement, r, result.rows);
    }
    // Failures of later results are reported only here.
    const auto code = SQLMoreResults(statement);
    if (code == SQL_NO_DATA) return;
    if (!SQL_SUCCEEDED(code)) fail(statement, r.on_loss);
  }
}

void session::read_rows(SQLHSTMT statement, const request& r, rows& result) {
  while (r.most_rows == 0 || result.size() < r.most_rows) {
    const auto code = SQLFetch(statement);
    if (code == SQL_NO_DATA) return;
    if (!SQL_SUCCEEDED(code)) fail(statement, r.on_loss);
    for (std::size_t i = 0; i < r.results.size(); ++i) {
      SQLRETURN failure = SQL_SUCCESS;
      auto value =
          read_value(statement, static_cast<SQLUSMALLINT>(i + 1), r.results[i], format_, failure);
      if (failure != SQL_SUCCESS) fail(statement, r.on_loss);
      result.add(std::move(value));
    }
  }
}

void session::run(const std::string& text, loss on_loss) {
  const auto statement = new_statement();
  auto wide = to_wide(text);
  const auto executed =
      SQLExecDirectW(statement.get(), wide.data(), static_cast<SQLINTEGER>(wide.size()));
  if (!SQL_SUCCEEDED(executed) && executed != SQL_NO_DATA) fail(statement.get(), on_loss);
  for (;;) {
    const auto code = SQLMoreResults(statement.get());
    if (code == SQL_NO_DATA) return;
    if (!SQL_SUCCEEDED(code)) fail(statement.get(), on_loss);
  }
}

void session::begin() {
  if (!SQL_SUCCEEDED(
          SQLSetConnectAttrW(connection_, SQL_ATTR_AUTOCOMMIT, as_pointer(SQL_AUTOCOMMIT_OFF), 0)))
    fail(SQL_HANDLE_DBC, connection_, loss::harmless);
}

void session::commit() { end_transaction(SQL_COMMIT, loss::in_doubt); }
void session::rollback() { end_transaction(SQL_ROLLBACK, loss::harmless); }

void session::end_transaction(SQLSMALLINT completion, loss on_loss) {
  if (!SQL_SUCCEEDED(SQLEndTran(SQL_HANDLE_DBC, connection_, completion)))
    fail(SQL_HANDLE_DBC, connection_, on_loss);
  if (!SQL_SUCCEEDED(
          SQLSetConnectAttrW(connection_, SQL_ATTR_AUTOCOMMIT, as_pointer(SQL_AUTOCOMMIT_ON), 0)))
    dead_ = true;  // the transaction ended, but the connection cannot be used any more
}

}  // namespace HOLDFAST_NAMESPACE::detail::sql::odbc
