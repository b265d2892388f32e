#include "sql/odbc_link.hpp"

#include "base/aes_gcm.hpp"
#include "sql/odbc_string.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <mutex>
#include <span>
#include <utility>

namespace HOLDFAST_NAMESPACE::sql::odbc {

namespace {

/// Statements that one connection keeps prepared.
constexpr std::size_t most_kept = 64;

std::vector<diagnostic> diagnostics(SQLSMALLINT kind, SQLHANDLE of) {
  std::vector<diagnostic> all;
  for (SQLSMALLINT i = 1; i <= 8; ++i) {
    std::array<SQLWCHAR, 6> state{};
    std::array<SQLWCHAR, 1'024> text{};
    SQLINTEGER native = 0;
    SQLSMALLINT length = 0;
    const auto got = SQLGetDiagRecW(kind, of, i, state.data(), &native, text.data(), static_cast<SQLSMALLINT>(text.size()), &length);
    if (!SQL_SUCCEEDED(got)) break;
    const auto shown = std::min<std::size_t>(static_cast<std::size_t>(std::max<SQLSMALLINT>(length, 0)), text.size() - 1);
    all.push_back({.state = from_wide(std::span(state).first(5)), .native = native, .text = from_wide(std::span(text).first(shown))});
  }
  return all;
}

/// The driver's name for its database, in any case.
dialect_id dialect_of(std::string name) {
  std::transform(name.begin(), name.end(), name.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  static constexpr std::array<std::pair<std::string_view, dialect_id>, 6> names{{{"postgresql", dialect_id::postgresql},
                                                                                 {"mariadb", dialect_id::mariadb},
                                                                                 {"mysql", dialect_id::mysql},
                                                                                 {"sqlite", dialect_id::sqlite},
                                                                                 {"sql server", dialect_id::sqlserver},
                                                                                 {"oracle", dialect_id::oracle}}};
  const auto* const found =
      std::find_if(names.begin(), names.end(), [&](const auto& each) { return name.find(each.first) != std::string::npos; });
  return found == names.end() ? dialect_id::unknown : found->second;
}

SQLUINTEGER whole_seconds(std::chrono::milliseconds limit) {
  return static_cast<SQLUINTEGER>(std::clamp<std::int64_t>(std::chrono::ceil<std::chrono::seconds>(limit).count(), 1, 86'400));
}

/// ODBC wants numbers as pointers.
SQLPOINTER as_pointer(SQLULEN number) { return reinterpret_cast<SQLPOINTER>(number); }  // NOLINT(performance-no-int-to-ptr)

/// Drivers connect one after the other: psqlODBC asks `setlocale` for its encoding and reads the name after another thread's connect may
/// have freed it. Whoever waited half of its time goes on without its turn, so that a server that hangs does not hold up the others.
std::unique_lock<std::timed_mutex> turn_to_connect(std::chrono::milliseconds limit) {
  static std::timed_mutex one_at_a_time;
  return {one_at_a_time, limit / 2};
}

}  // namespace

marked_text with_marks(std::string_view text) {
  marked_text made;
  bool numbered = false;
  char quote = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    made.text += c;
    if (quote != 0) {
      if (c == quote) quote = 0;
    } else if (c == '\'' || c == '"') {
      quote = c;
    } else if (c == '?') {
      made.order.push_back(static_cast<std::uint8_t>(made.order.size()));
    } else if (c == '$' && i + 1 < text.size() && text[i + 1] >= '1' && text[i + 1] <= '9') {
      unsigned number = 0;
      const auto [end, wrong] = std::from_chars(text.data() + i + 1, text.data() + text.size(), number);
      if (wrong != std::errc() || number > 255) throw error(errc::invalid_argument, "a statement has more parameters than ODBC can carry");
      numbered = true;
      made.text.back() = '?';
      made.order.push_back(static_cast<std::uint8_t>(number - 1));
      i = static_cast<std::size_t>(end - text.data()) - 1;
    }
  }
  if (!numbered) made.order.clear();
  return made;
}

link::link(const odbc_options& options) : secret_(options.password), limit_(options.statement_timeout) {
  auto wide = complete_connection_string(options);
  const auto release = [this] {
    if (connection_ != SQL_NULL_HDBC) SQLFreeHandle(SQL_HANDLE_DBC, connection_);
    if (environment_ != SQL_NULL_HENV) SQLFreeHandle(SQL_HANDLE_ENV, environment_);
  };
  // An environment each: the driver manager may let only one call at a time into an environment, and this one may hang.
  if (!SQL_SUCCEEDED(SQLAllocHandle(SQL_HANDLE_ENV, SQL_NULL_HANDLE, &environment_))) throw std::bad_alloc();
  SQLSetEnvAttr(environment_, SQL_ATTR_ODBC_VERSION, as_pointer(SQL_OV_ODBC3), 0);
  if (!SQL_SUCCEEDED(SQLAllocHandle(SQL_HANDLE_DBC, environment_, &connection_))) {
    release();
    throw std::bad_alloc();
  }
  SQLSetConnectAttrW(connection_, SQL_ATTR_LOGIN_TIMEOUT, as_pointer(whole_seconds(options.connect_timeout)), 0);
  auto turn = turn_to_connect(options.connect_timeout);
  const auto connected =
      SQLDriverConnectW(connection_, nullptr, wide.data(), static_cast<SQLSMALLINT>(wide.size()), nullptr, 0, nullptr, SQL_DRIVER_NOPROMPT);
  if (turn) turn.unlock();
  wipe(std::as_writable_bytes(std::span(wide)));
  if (!SQL_SUCCEEDED(connected)) {
    const auto said = diagnostics(SQL_HANDLE_DBC, connection_);
    release();
    throw could_not_connect(said, secret_);
  }
  try {
    settle();
  } catch (...) {
    by_text_.clear();
    by_use_.clear();
    SQLDisconnect(connection_);
    release();
    throw;
  }
}

link::~link() {
  by_text_.clear();
  by_use_.clear();
  if (!SQL_SUCCEEDED(SQLDisconnect(connection_))) {
    SQLEndTran(SQL_HANDLE_DBC, connection_, SQL_ROLLBACK);
    SQLDisconnect(connection_);
  }
  SQLFreeHandle(SQL_HANDLE_DBC, connection_);
  SQLFreeHandle(SQL_HANDLE_ENV, environment_);
}

/// Who it is, and what its session must be like.
void link::settle() {
  std::array<SQLWCHAR, 128> name{};
  SQLSMALLINT length = 0;
  if (SQL_SUCCEEDED(SQLGetInfoW(connection_, SQL_DBMS_NAME, name.data(), static_cast<SQLSMALLINT>(sizeof name), &length)))
    dialect_ = dialect_of(
        from_wide(std::span(name).first(std::min<std::size_t>(static_cast<std::size_t>(length) / sizeof(SQLWCHAR), name.size()))));
  how_ = {.times_as_numbers = dialect_ == dialect_id::sqlite, .numbers_as_text = dialect_ == dialect_id::oracle};
  SQLUINTEGER counts = 0;
  takes_arrays_ = SQL_SUCCEEDED(SQLGetInfoW(connection_, SQL_PARAM_ARRAY_ROW_COUNTS, &counts, sizeof counts, nullptr)) && counts != 0;
  const auto patience = std::to_string(std::max<std::int64_t>(1, std::chrono::floor<std::chrono::seconds>(limit_).count() - 1));
  switch (dialect_) {
    case dialect_id::postgresql:
      // A time without a zone is one of the session's zone. And the server ends what we gave up waiting for.
      run("SET TIME ZONE 'UTC'", false);
      run("SET statement_timeout = " + std::to_string(std::min<std::int64_t>(limit_.count() + 1'000, 2'000'000'000)), false);
      break;
    case dialect_id::mysql:
    case dialect_id::mariadb:
      run("SET time_zone='+00:00', sql_mode=CONCAT(@@sql_mode,',STRICT_ALL_TABLES')", false);
      run("SET innodb_lock_wait_timeout=LEAST(@@innodb_lock_wait_timeout," + patience + ")", false);
      run("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED", false);
      break;
    case dialect_id::sqlite:
      run("PRAGMA journal_mode=WAL", false);
      run("PRAGMA synchronous=FULL", false);
      run("PRAGMA busy_timeout=" + std::to_string(std::min<std::int64_t>(limit_.count(), 60'000)), false);
      break;
    case dialect_id::oracle:
      run("ALTER SESSION SET TIME_ZONE = '+00:00'", false);
      break;
    case dialect_id::sqlserver:
      run("SET LOCK_TIMEOUT " + std::to_string(std::min<std::int64_t>(limit_.count(), 2'000'000'000)), false);
      break;
    default:
      break;
  }
}

void link::fail(SQLSMALLINT kind, SQLHANDLE handle, bool in_doubt) {
  const auto said = diagnostics(kind, handle);
  SQLUINTEGER dead = SQL_CD_FALSE;
  if (SQL_SUCCEEDED(SQLGetConnectAttrW(connection_, SQL_ATTR_CONNECTION_DEAD, &dead, sizeof dead, nullptr)) && dead == SQL_CD_TRUE)
    dead_ = true;
  const bool timed_out =
      std::any_of(said.begin(), said.end(), [](const diagnostic& each) { return each.state == "HYT00" || each.state == "HYT01"; });
  const bool lost = std::any_of(said.begin(), said.end(), [](const diagnostic& each) { return each.state.starts_with("08"); });
  if (timed_out || lost) dead_ = true;
  throw to_error(said, {.dialect = dialect_, .lost = dead_ && !timed_out, .in_doubt = in_doubt, .secret = secret_});
}

link::statement_handle link::new_statement() {
  SQLHSTMT made = SQL_NULL_HSTMT;
  if (!SQL_SUCCEEDED(SQLAllocHandle(SQL_HANDLE_STMT, connection_, &made))) fail(SQL_HANDLE_DBC, connection_, false);
  return statement_handle(made);
}

SQLHSTMT link::prepared(const std::string& text) {
  if (const auto found = by_text_.find(text); found != by_text_.end()) {
    by_use_.splice(by_use_.begin(), by_use_, found->second);
    return by_use_.front().handle.get();
  }
  auto made = new_statement();
  // Where the server cannot be told to end a statement, the driver may be able to.
  if (dialect_ == dialect_id::sqlserver || dialect_ == dialect_id::oracle || dialect_ == dialect_id::unknown)
    SQLSetStmtAttrW(made.get(), SQL_ATTR_QUERY_TIMEOUT, as_pointer(whole_seconds(limit_)), 0);
  auto wide = to_wide(text);
  if (!SQL_SUCCEEDED(SQLPrepareW(made.get(), wide.data(), static_cast<SQLINTEGER>(wide.size())))) fail(SQL_HANDLE_STMT, made.get(), false);
  if (by_use_.size() == most_kept) {
    by_text_.erase(by_use_.back().text);
    by_use_.pop_back();
  }
  by_use_.push_front({text, std::move(made)});
  by_text_.emplace(by_use_.front().text, by_use_.begin());
  return by_use_.front().handle.get();
}

void link::forget(const std::string& text) noexcept {
  const auto found = by_text_.find(text);
  if (found == by_text_.end()) return;
  const auto place = found->second;
  by_text_.erase(found);
  by_use_.erase(place);
}

outcome link::execute(request& what) {
  SQLHSTMT const statement = prepared(what.statement.text);
  try {
    auto result = run_prepared(statement, what);
    SQLFreeStmt(statement, SQL_CLOSE);
    SQLFreeStmt(statement, SQL_RESET_PARAMS);
    // SQLite's driver loses a row of the next result when the one before was not read to its end.
    if (what.most_rows != 0) forget(what.statement.text);
    return result;
  } catch (...) {
    // Whatever state it is in, nobody needs it any more.
    forget(what.statement.text);
    throw;
  }
}

outcome link::run_prepared(SQLHSTMT statement, request& what) {
  outcome result{.rows = rows(what.results.size())};
  const auto count = what.statement.order.empty() ? what.parameters.size() : what.statement.order.size();
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t which = what.statement.order.empty() ? i : what.statement.order[i];
    if (which >= what.parameters.size()) throw error(errc::invalid_argument, "the statement has more parameters than values are given");
    if (!SQL_SUCCEEDED(what.parameters[which].bind(statement, static_cast<SQLUSMALLINT>(i + 1)))) fail(SQL_HANDLE_STMT, statement, false);
  }
  std::vector<SQLUSMALLINT> states(what.rows, SQL_PARAM_UNUSED);
  SQLULEN processed = 0;
  SQLSetStmtAttrW(statement, SQL_ATTR_PARAMSET_SIZE, as_pointer(what.rows), 0);
  if (what.rows > 1) {
    SQLSetStmtAttrW(statement, SQL_ATTR_PARAM_STATUS_PTR, states.data(), 0);
    SQLSetStmtAttrW(statement, SQL_ATTR_PARAMS_PROCESSED_PTR, &processed, 0);
  } else {
    SQLSetStmtAttrW(statement, SQL_ATTR_PARAM_STATUS_PTR, nullptr, 0);
    SQLSetStmtAttrW(statement, SQL_ATTR_PARAMS_PROCESSED_PTR, nullptr, 0);
  }
  // Drivers that read all rows at once are asked to leave the rest; the others are not asked for it.
  SQLSetStmtAttrW(statement, SQL_ATTR_MAX_ROWS, as_pointer(what.most_rows), 0);
  auto done = SQLExecute(statement);
  while (done == SQL_NEED_DATA) {
    SQLPOINTER token = nullptr;
    done = SQLParamData(statement, &token);
    if (done != SQL_NEED_DATA) break;
    const auto asked =
        std::find_if(what.parameters.begin(), what.parameters.end(), [token](const column& each) { return each.is_asked_for(token); });
    if (asked == what.parameters.end()) throw error(errc::internal, "the driver asked for a parameter that nobody has");
    if (const auto put = asked->put(statement); !SQL_SUCCEEDED(put)) fail(SQL_HANDLE_STMT, statement, false);
  }
  // SQL_NO_DATA: it was done, and touched nothing.
  if (!SQL_SUCCEEDED(done) && done != SQL_NO_DATA) fail(SQL_HANDLE_STMT, statement, what.in_doubt);
  const auto bad = std::any_of(states.begin(), states.end(), [](SQLUSMALLINT s) { return s == SQL_PARAM_ERROR; });
  if (bad) fail(SQL_HANDLE_STMT, statement, what.in_doubt);
  read_results(statement, what, result);
  return result;
}

void link::read_results(SQLHSTMT statement, const request& what, outcome& into) {
  for (;;) {
    SQLSMALLINT columns = 0;
    if (!SQL_SUCCEEDED(SQLNumResultCols(statement, &columns))) fail(SQL_HANDLE_STMT, statement, what.in_doubt);
    if (columns == 0) {
      SQLLEN count = 0;
      if (SQL_SUCCEEDED(SQLRowCount(statement, &count)) && count > 0) into.affected += static_cast<std::uint64_t>(count);
    } else if (!what.results.empty()) {
      if (static_cast<std::size_t>(columns) != what.results.size())
        throw error(errc::invalid_argument, "the statement returns " + std::to_string(columns) + " columns, but " +
                                                std::to_string(what.results.size()) + " are expected");
      while (what.most_rows == 0 || into.rows.size() < what.most_rows) {
        const auto fetched = SQLFetch(statement);
        if (fetched == SQL_NO_DATA) break;
        if (!SQL_SUCCEEDED(fetched)) fail(SQL_HANDLE_STMT, statement, what.in_doubt);
        for (std::size_t i = 0; i < what.results.size(); ++i) {
          SQLRETURN failed = SQL_SUCCESS;
          auto each = read(statement, static_cast<SQLUSMALLINT>(i + 1), what.results[i], how_, failed);
          if (failed != SQL_SUCCESS) fail(SQL_HANDLE_STMT, statement, what.in_doubt);
          into.rows.add(std::move(each));
        }
      }
    }
    // Failures of later parts are told only here.
    const auto more = SQLMoreResults(statement);
    if (more == SQL_NO_DATA) return;
    if (!SQL_SUCCEEDED(more)) fail(SQL_HANDLE_STMT, statement, what.in_doubt);
  }
}

void link::run(const std::string& text, bool in_doubt) {
  const auto statement = new_statement();
  auto wide = to_wide(text);
  const auto done = SQLExecDirectW(statement.get(), wide.data(), static_cast<SQLINTEGER>(wide.size()));
  if (!SQL_SUCCEEDED(done) && done != SQL_NO_DATA) fail(SQL_HANDLE_STMT, statement.get(), in_doubt);
  for (;;) {
    const auto more = SQLMoreResults(statement.get());
    if (more == SQL_NO_DATA) return;
    if (!SQL_SUCCEEDED(more)) fail(SQL_HANDLE_STMT, statement.get(), in_doubt);
  }
}

void link::begin() {
  if (!SQL_SUCCEEDED(SQLSetConnectAttrW(connection_, SQL_ATTR_AUTOCOMMIT, as_pointer(SQL_AUTOCOMMIT_OFF), 0)))
    fail(SQL_HANDLE_DBC, connection_, false);
}

void link::end(bool commit) {
  if (!SQL_SUCCEEDED(SQLEndTran(SQL_HANDLE_DBC, connection_, commit ? SQL_COMMIT : SQL_ROLLBACK)))
    fail(SQL_HANDLE_DBC, connection_, commit);
  if (!SQL_SUCCEEDED(SQLSetConnectAttrW(connection_, SQL_ATTR_AUTOCOMMIT, as_pointer(SQL_AUTOCOMMIT_ON), 0)))
    dead_ = true;  // done, but no use any more
}

}  // namespace HOLDFAST_NAMESPACE::sql::odbc
