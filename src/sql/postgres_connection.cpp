#include "sql/postgres_connection.hpp"

#include "sql/answer_limits.hpp"
#include "sql/checked_limit.hpp"
#include "sql/postgres_binary.hpp"
#include "sql/postgres_conninfo.hpp"
#include "sql/postgres_session.hpp"
#include "sql/postgres_statements.hpp"

#include <libpq-fe.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>

namespace HOLDFAST_NAMESPACE::sql {

namespace {

using postgres::bindings;
using postgres::column_reader;
using postgres::deadline;
using postgres::effect;

constexpr auto longest_postgres_limit = std::chrono::milliseconds(std::numeric_limits<int>::max()) - postgres::server_margin;

postgres_options with_checked_limits(postgres_options options) {
  options.connect_timeout = checked_limit(options.connect_timeout, longest_postgres_limit);
  options.statement_timeout = checked_limit(options.statement_timeout, longest_postgres_limit);
  return options;
}

void check_text(std::string_view text) {
  // libpq takes text up to its first NUL.
  if (text.find('\0') != std::string_view::npos) throw error(errc::invalid_argument, "the text of a statement contains a NUL byte");
}

/// COMMIT, END and PREPARE TRANSACTION can be prepared like any statement.
bool ends_transaction(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t\r\n"), text.size()));
  // A statement that begins with a comment is not looked into: better in doubt than wrong.
  if (text.starts_with("--") || text.starts_with("/*")) return true;
  for (const std::string_view word : {"COMMIT", "END", "PREPARE"}) {
    const auto same = [](char a, char b) { return (a >= 'a' && a <= 'z' ? static_cast<char>(a - 'a' + 'A') : a) == b; };
    if (text.size() >= word.size() && std::equal(word.begin(), word.end(), text.begin(), [&](char b, char a) { return same(a, b); }))
      return true;
  }
  return false;
}

outcome read_binary_rows(const PGresult* done, const std::vector<type>& wanted) {
  outcome result{.rows = rows(wanted.size()), .affected = postgres::affected_rows(done)};
  if (wanted.empty()) return result;  // whoever wants no columns may run what returns some
  const auto columns = static_cast<std::size_t>(PQnfields(done));
  if (columns != wanted.size())
    throw error(errc::invalid_argument,
                "the statement returns " + std::to_string(columns) + " columns, but " + std::to_string(wanted.size()) + " are expected");
  std::vector<column_reader> readers;
  readers.reserve(columns);
  for (std::size_t i = 0; i < columns; ++i)
    readers.emplace_back(wanted[i], PQftype(done, static_cast<int>(i)), PQfname(done, static_cast<int>(i)));
  const int count = PQntuples(done);
  // A NULL has four bytes on the wire, and is a whole value here.
  if (static_cast<std::size_t>(count) > largest_result / (columns * sizeof(value))) throw postgres::answer_too_large(largest_result, false);
  result.rows.reserve(static_cast<std::size_t>(count));
  for (int row = 0; row < count; ++row) {
    for (int column = 0; column < static_cast<int>(columns); ++column) {
      std::optional<std::string_view> bytes;
      if (PQgetisnull(done, row, column) == 0)
        bytes.emplace(PQgetvalue(done, row, column), static_cast<std::size_t>(PQgetlength(done, row, column)));
      result.rows.add(readers[static_cast<std::size_t>(column)].read(bytes));
    }
  }
  return result;
}

class postgres_connection final : public connection {
 public:
  explicit postgres_connection(const postgres_options& options)
      : session_(options), limit_(options.statement_timeout), server_limit_(limit_ + postgres::server_margin), dialect_(ask_dialect()) {}

  [[nodiscard]] dialect_id dialect() const noexcept override { return dialect_; }
  [[nodiscard]] transport_kind transport() const noexcept override { return session_.transport(); }
  [[nodiscard]] bool broken() const noexcept override { return session_.broken(); }
  void limit(std::chrono::milliseconds longest) override { limit_ = checked_limit(longest, longest_postgres_limit); }

  outcome execute(const statement& s, std::span<const parameter> parameters) override {
    if (parameters.size() != s.parameters.size())
      throw error(errc::invalid_argument, "the statement has " + std::to_string(s.parameters.size()) + " parameters, but " +
                                              std::to_string(parameters.size()) + " values are given");
    bound_.clear();
    for (std::size_t i = 0; i < parameters.size(); ++i) bound_.add(s.parameters[i], parameters[i]);
    bound_.finish();
    return run_prepared(s.text, s.results);
  }

  outcome batch(const batch_statement& s, std::span<const std::vector<parameter>> columns, std::span<const parameter> common) override {
    if (columns.size() != s.columns.size() || columns.empty() || common.size() != s.common.size())
      throw error(errc::invalid_argument, "the batch has other columns or common parameters than its statement");
    const auto rows_given = columns.front().size();
    if (std::any_of(columns.begin(), columns.end(), [=](const auto& column) { return column.size() != rows_given; }))
      throw error(errc::invalid_argument, "the columns of a batch must be of equal length");
    if (rows_given == 0) return outcome{.rows = rows(s.results.size())};
    bound_.clear();
    for (std::size_t i = 0; i < columns.size(); ++i) bound_.add_array(s.columns[i], columns[i]);
    for (std::size_t i = 0; i < common.size(); ++i) bound_.add(s.common[i], common[i]);
    bound_.finish();
    return run_prepared(s.text, s.results);
  }

  void run(const std::string& text) override {
    check_text(text);
    const deadline until(limit_);
    allow_on_server(until);
    // Nobody knows what is in it, even inside a transaction: perhaps its end.
    session_.query(text, effect::commits, until);
  }

  void listen(const std::string& channel) override {
    const bool plain = !channel.empty() &&
                       std::ranges::all_of(channel, [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'; });
    if (!plain) throw error(errc::invalid_argument, "a channel is named with lower-case letters, digits and underscores");
    session_.query("LISTEN " + channel, effect::none, deadline(limit_));
  }
  [[nodiscard]] std::optional<std::string> notice(std::chrono::milliseconds longest) override {
    return session_.notification(deadline(longest));
  }

  void begin() override {
    if (session_.in_transaction()) throw error(errc::invalid_argument, "a transaction has begun already");
    const deadline until(limit_);
    allow_on_server(until);
    server_limit_at_begin_ = server_limit_;
    session_.query("BEGIN", effect::none, until);
  }

  void commit() override {
    if (!session_.broken()) {
      if (!session_.in_transaction()) throw error(errc::invalid_argument, "there is no transaction to commit");
      // The server would answer COMMIT with a rollback, and call it a success.
      if (session_.in_failed_transaction()) {
        rollback();
        throw error(errc::invalid_argument, "a statement of the transaction had failed, so it was rolled back", {.backend_code = "25P02"});
      }
    }
    session_.query("COMMIT", effect::commits, deadline(limit_));
  }

  void rollback() noexcept override {
    if (session_.broken() || !session_.in_transaction()) return;
    try {
      session_.query("ROLLBACK", effect::none, deadline(limit_));
      server_limit_ = server_limit_at_begin_;
    } catch (...) {
      session_.abandon();
    }
  }

 private:
  /// Runs text with what is bound, prepared before if need be; all within one limit.
  outcome run_prepared(const std::string& text, const std::vector<type>& wanted) {
    const deadline until(limit_);
    allow_on_server(until);
    const std::span<const postgres::oid> types{bound_.types(), static_cast<std::size_t>(bound_.size())};
    for (;;) {
      const std::string* name = pooled_ ? nullptr : statements_.find(text, types);
      const bool fresh = name == nullptr;
      if (fresh && !pooled_) name = prepare(text, types, until);
      if (pooled_) return run_unprepared(text, wanted, until);
      try {
        return run_named(*name, text, wanted, until);
      } catch (const error& problem) {
        // The table was altered, or the session is not the one that prepared it. The refusal came before anything was done, so it may be
        // tried again; inside a transaction, though, that has failed now, and the caller will come again.
        const bool forgotten = problem.backend_code() == "26000";
        if (!forgotten && problem.backend_code() != "0A000") throw;
        if (session_.broken()) throw;
        const std::string gone = *name;
        // Prepared a moment ago, and not here: a pooler has given us another session.
        if (forgotten && fresh) pooled_ = true;
        if (session_.in_transaction()) {
          if (!forgotten) forgotten_.push_back(gone);  // it is still there
          statements_.remove(gone);
          throw;
        }
        if (!forgotten && fresh) throw;
        if (forgotten) statements_.remove(gone);
        else deallocate(gone, until);
      }
    }
  }

  outcome run_named(const std::string& name, std::string_view text, const std::vector<type>& wanted, const deadline& until) {
    const auto e = effect_of(text);
    return understood(session_.execute(name, bound_.wire(), e, until), wanted, e);
  }

  /// In one piece, which a pooler gives to one session.
  outcome run_unprepared(const std::string& text, const std::vector<type>& wanted, const deadline& until) {
    check_text(text);
    const auto e = effect_of(text);
    return understood(session_.execute_text(text, bound_.wire(), e, until), wanted, e);
  }

  [[nodiscard]] effect effect_of(std::string_view text) const {
    return session_.in_transaction() && !ends_transaction(text) ? effect::none : effect::commits;
  }

  static outcome understood(const postgres::result& done, const std::vector<type>& wanted, effect e) {
    try {
      return read_binary_rows(done.get(), wanted);
    } catch (const error& problem) {
      // Done, but we cannot say what came of it.
      throw error(problem.code(), problem.message(), {.in_doubt = e == effect::commits});
    }
  }

  const std::string* prepare(const std::string& text, std::span<const postgres::oid> types, const deadline& until) {
    check_text(text);
    // Left over from a transaction in which it could not be done.
    while (!forgotten_.empty() && !session_.in_failed_transaction()) {
      const auto name = std::move(forgotten_.back());
      forgotten_.pop_back();
      deallocate(name, until);
    }
    if (const auto* in_the_way = statements_.in_the_way_of(text)) deallocate(std::string(*in_the_way), until);
    auto name = postgres::prepared_statements::name_of(text, types);
    try {
      session_.prepare(name, text, bound_.wire(), until);
    } catch (const error& problem) {
      // There is one of this name, hence of this text: someone else's, behind a pooler that shares server sessions.
      if (problem.backend_code() != "42P05") throw;
      pooled_ = true;
      if (session_.in_transaction())
        throw error(errc::unavailable, "a pooler shares the server's sessions; try again", {.backend_code = "42P05", .transient = true});
    }
    statements_.add(text, types, std::move(name));
    return statements_.find(text, types);
  }

  void deallocate(const std::string& name, const deadline& until) {
    try {
      session_.query("DEALLOCATE " + name, effect::none, until);
    } catch (const error& problem) {
      // Gone already, which is as well; but a transaction has failed by it.
      if (problem.backend_code() != "26000") throw;
      statements_.remove(name);
      if (session_.in_transaction()) throw;
    }
    statements_.remove(name);
  }

  /// The server's limit grows with ours. It need not shrink: ours ends the wait.
  void allow_on_server(const deadline& until) {
    const auto needed = limit_ + postgres::server_margin;
    if (needed <= server_limit_ || session_.in_failed_transaction()) return;
    session_.query("SET statement_timeout = " + std::to_string(needed.count()), effect::none, until);
    server_limit_ = needed;
  }

  /// H2 speaks the protocol too, as a version of PostgreSQL that nobody runs any more. Only then is it worth a question.
  dialect_id ask_dialect() {
    if (!session_.server_setting("server_version").starts_with("8.")) return dialect_id::postgresql;
    const auto answer = session_.query("SELECT version()", effect::none, deadline(limit_));
    const std::string_view text = PQntuples(answer.get()) == 1 ? PQgetvalue(answer.get(), 0, 0) : "";
    if (text.find(" H2 ") != std::string_view::npos)
      throw error(errc::invalid_argument, "what answers there is H2, not PostgreSQL; write h2:// in the URL", {.path = "url"});
    return dialect_id::postgresql;
  }

  postgres::session session_;
  std::chrono::milliseconds limit_;
  std::chrono::milliseconds server_limit_;             // what statement_timeout is on the server
  std::chrono::milliseconds server_limit_at_begin_{};  // a rollback undoes SET as well
  dialect_id dialect_;
  postgres::prepared_statements statements_{};
  std::vector<std::string> forgotten_{};  // stale on the server, not yet deallocated
  bool pooled_ = false;                   // a pooler gives us one session after the other: what is prepared in one is not in the next
  bindings bound_{};
};

}  // namespace

std::unique_ptr<connection> connect_postgres(const postgres_options& options) {
  return std::make_unique<postgres_connection>(with_checked_limits(options));
}

}  // namespace HOLDFAST_NAMESPACE::sql
