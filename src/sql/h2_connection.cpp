#include "sql/h2_connection.hpp"

#include "sql/checked_limit.hpp"
#include "sql/h2_errors.hpp"
#include "sql/h2_values.hpp"
#include "sql/postgres_conninfo.hpp"
#include "sql/postgres_session.hpp"

#include <libpq-fe.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <list>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace HOLDFAST_NAMESPACE::sql {

namespace {

using postgres::deadline;
using postgres::effect;

/// Statements kept on the server by one connection.
constexpr std::size_t most_kept = 200;
/// Rows in one statement: each number of rows is a statement of its own to keep.
constexpr std::size_t most_h2_rows = 64;
constexpr std::size_t most_h2_bytes = std::size_t{8} << 20U;

/// The longest limit that H2 is given.
constexpr auto longest_h2_limit = std::chrono::hours(24);

postgres_options conversation(const h2_options& options) {
  std::string words = "sslmode=disable gssencmode=disable";
  const auto add = [&words](std::string_view name, std::string_view value) {
    words.append(" ").append(name).append("=").append(postgres::quoted_value(value));
  };
  add("host", options.host);
  add("port", std::to_string(options.port));
  add("dbname", options.database);
  add("user", options.user);
  add("password", options.password);
  return {.connection_string = words,
          .connect_timeout = checked_limit(options.connect_timeout, longest_h2_limit),
          .statement_timeout = checked_limit(options.statement_timeout, longest_h2_limit)};
}

value read_value(const PGresult* from, int row, int column, type wanted) {
  constexpr Oid bytea = 17;
  if (PQgetisnull(from, row, column) != 0) return {};
  const char* const data = PQgetvalue(from, row, column);
  return h2::read_text(data, static_cast<std::size_t>(PQgetlength(from, row, column)), wanted, PQftype(from, column) == bytea);
}

outcome read_text_rows(const PGresult* done, const std::vector<type>& wanted) {
  outcome result{.rows = rows(wanted.size()), .affected = postgres::affected_rows(done)};
  if (wanted.empty()) return result;
  const auto columns = static_cast<std::size_t>(PQnfields(done));
  if (columns != wanted.size())
    throw error(errc::invalid_argument,
                "the statement returns " + std::to_string(columns) + " columns, but " + std::to_string(wanted.size()) + " are expected");
  const int count = PQntuples(done);
  result.rows.reserve(static_cast<std::size_t>(count));
  for (int row = 0; row < count; ++row) {
    for (std::size_t column = 0; column < columns; ++column)
      result.rows.add(read_value(done, row, static_cast<int>(column), wanted[column]));
  }
  return result;
}

/// Which statement is kept under which name. A name is given to another statement, never deallocated: what is run under a name that is not
/// there runs whatever was run last.
class kept_statements {
 public:
  struct kept {
    std::string text;
    std::string name;
    std::vector<postgres::oid> types;
  };
  [[nodiscard]] const kept* find(std::string_view text) {
    const auto found = by_text_.find(text);
    if (found == by_text_.end()) return nullptr;
    by_use_.splice(by_use_.begin(), by_use_, found->second);
    return &by_use_.front();
  }
  /// A name that no statement has any more.
  [[nodiscard]] std::string free_name() {
    if (by_use_.size() < most_kept) return "hf_" + std::to_string(++named_);
    std::string name = std::move(by_use_.back().name);
    by_text_.erase(by_use_.back().text);
    by_use_.pop_back();
    return name;
  }
  const kept& add(kept one) {
    by_use_.push_front(std::move(one));
    by_text_.emplace(by_use_.front().text, by_use_.begin());
    return by_use_.front();
  }

 private:
  std::list<kept> by_use_{};
  std::unordered_map<std::string_view, std::list<kept>::iterator> by_text_{};
  std::uint64_t named_ = 0;
};

/// What one value adds to a message.
std::size_t size_of(const parameter& p) {
  if (const auto* text = std::get_if<std::string_view>(&p)) return text->size();
  if (const auto* bytes = std::get_if<std::span<const std::byte>>(&p)) return bytes->size();
  return 32;
}

class h2_connection final : public connection {
 public:
  explicit h2_connection(const h2_options& options)
      : session_(conversation(options), {.name = "H2", .explain = &h2::from_server, .acknowledge_at_once = true}),
        limit_(checked_limit(options.statement_timeout, longest_h2_limit)) {
    const deadline until(limit_);
    const auto version = session_.query("SELECT version()", effect::none, until);
    if (PQntuples(version.get()) != 1 || std::string_view(PQgetvalue(version.get(), 0, 0)).find(" H2 ") == std::string_view::npos)
      throw error(errc::invalid_argument, "what answers there is not H2; write postgresql:// for PostgreSQL", {.path = "url"});
    // H2 ends what we gave up waiting for, and waits for rows that others write almost as long as we do.
    const auto patience = std::max<std::int64_t>(50, limit_.count() - limit_.count() / 10);
    session_.query("SET TIME ZONE 'UTC'; SET QUERY_TIMEOUT " + std::to_string(limit_.count() + postgres_margin) + "; SET LOCK_TIMEOUT " +
                       std::to_string(std::min<std::int64_t>(patience, std::numeric_limits<int>::max())),
                   effect::none, until);
    set_write_delay(options.write_delay, until);
  }

  [[nodiscard]] dialect_id dialect() const noexcept override { return dialect_id::h2; }
  [[nodiscard]] transport_kind transport() const noexcept override { return session_.transport(); }
  [[nodiscard]] bool broken() const noexcept override { return session_.broken(); }
  void limit(std::chrono::milliseconds longest) override { limit_ = checked_limit(longest, longest_h2_limit); }

  outcome execute(const statement& s, std::span<const parameter> parameters) override {
    if (parameters.size() != s.parameters.size())
      throw error(errc::invalid_argument, "the statement has " + std::to_string(s.parameters.size()) + " parameters, but " +
                                              std::to_string(parameters.size()) + " values are given");
    bound_.clear();
    for (std::size_t i = 0; i < parameters.size(); ++i) bound_.add(s.parameters[i], parameters[i]);
    return run_prepared(s.text, s.results, deadline(limit_));
  }

  outcome batch(const batch_statement& s, std::span<const std::vector<parameter>> columns, std::span<const parameter> common) override {
    if (columns.size() != s.columns.size() || columns.empty() || common.size() != s.common.size())
      throw error(errc::invalid_argument, "the batch has other columns or common parameters than its statement");
    const auto count = columns.front().size();
    if (std::any_of(columns.begin(), columns.end(), [=](const auto& column) { return column.size() != count; }))
      throw error(errc::invalid_argument, "the columns of a batch must be of equal length");
    outcome result{.rows = rows(s.results.size())};
    const deadline until(limit_);
    std::size_t first = 0;
    std::size_t last = fitting(columns, 0, count);
    const bool own = last < count && !session_.in_transaction();
    if (own) session_.query("BEGIN", effect::none, until);
    try {
      for (; first < count; first = last) {
        last = fitting(columns, first, count);
        run_part(s, columns, common, first, last, until, result);
      }
      if (own) session_.query("COMMIT", effect::commits, until);
    } catch (...) {
      if (own) rollback();
      throw;
    }
    return result;
  }

  void run(const std::string& text) override {
    check_text(text);
    session_.query(text, effect::commits, deadline(limit_));
  }

  void begin() override {
    if (session_.in_transaction()) throw error(errc::invalid_argument, "a transaction has begun already");
    session_.query("BEGIN", effect::none, deadline(limit_));
  }
  void commit() override {
    if (!session_.broken() && !session_.in_transaction()) throw error(errc::invalid_argument, "there is no transaction to commit");
    session_.query("COMMIT", effect::commits, deadline(limit_));
  }
  void rollback() noexcept override {
    if (session_.broken() || !session_.in_transaction()) return;
    try {
      session_.query("ROLLBACK", effect::none, deadline(limit_));
    } catch (...) {
      session_.abandon();
    }
  }

 private:
  static constexpr std::int64_t postgres_margin = 1'000;

  static void check_text(std::string_view text) {
    if (text.find('\0') != std::string_view::npos) throw error(errc::invalid_argument, "the text of a statement contains a NUL byte");
  }

  /// Every time: H2 keeps the setting, and shows it, but a database that was opened again does not follow it until it is set again.
  void set_write_delay(std::chrono::milliseconds wanted, const deadline& until) {
    try {
      session_.query("SET WRITE_DELAY " + std::to_string(wanted.count()), effect::none, until);
    } catch (const error& e) {
      if (e.code() != errc::permission) throw;
    }
  }

  static std::size_t fitting(std::span<const std::vector<parameter>> columns, std::size_t first, std::size_t count) {
    std::size_t bytes = 0;
    std::size_t last = first;
    for (; last < count && last - first < most_h2_rows; ++last) {
      for (const auto& column : columns) bytes += size_of(column[last]);
      if (last > first && bytes > most_h2_bytes) break;
    }
    return last;
  }

  void run_part(const batch_statement& s, std::span<const std::vector<parameter>> columns, std::span<const parameter> common,
                std::size_t first, std::size_t last, const deadline& until, outcome& into) {
    bound_.clear();
    std::string text = s.text;
    for (std::size_t row = first; row < last; ++row) {
      text.append(row == first ? "" : ", ").append(s.row);
      for (std::size_t i = 0; i < columns.size(); ++i) bound_.add(s.columns[i], columns[i][row]);
    }
    text.append(s.tail);
    for (std::size_t i = 0; i < common.size(); ++i) bound_.add(s.common[i], common[i]);
    auto part = run_prepared(text, s.results, until);
    into.affected += part.affected;
    for (std::size_t row = 0; row < part.rows.size(); ++row)
      for (std::size_t i = 0; i < s.results.size(); ++i) into.rows.add(std::move(part.rows.at(row, i)));
  }

  outcome run_prepared(const std::string& text, const std::vector<type>& wanted, const deadline& until) {
    const auto parameters = bound_.wire();
    const std::span<const postgres::oid> types{parameters.types, static_cast<std::size_t>(parameters.count)};
    const auto* known = kept_.find(text);
    if (known == nullptr || !std::equal(types.begin(), types.end(), known->types.begin(), known->types.end())) {
      check_text(text);
      const auto marks = static_cast<int>(std::count(text.begin(), text.end(), '?'));
      if (marks != parameters.count)
        throw error(errc::invalid_argument, "the statement has " + std::to_string(marks) + " question marks and " +
                                                std::to_string(parameters.count) + " parameters");
      auto name = kept_.free_name();
      session_.prepare(name, text, parameters, until);  // throws: then nothing is kept under it
      known = &kept_.add({.text = text, .name = std::move(name), .types = {types.begin(), types.end()}});
    }
    const auto e = session_.in_transaction() ? effect::none : effect::commits;
    const auto done = session_.execute(known->name, parameters, e, until);
    try {
      return read_text_rows(done.get(), wanted);
    } catch (const error& problem) {
      throw error(problem.code(), problem.message(), {.in_doubt = e == effect::commits});
    }
  }

  postgres::session session_;
  std::chrono::milliseconds limit_;
  kept_statements kept_{};
  h2::text_bindings bound_{};
};

}  // namespace

std::unique_ptr<connection> connect_h2(const h2_options& options) {
  try {
    return std::make_unique<h2_connection>(options);
  } catch (const error& e) {
    // It hangs up on whoever it does not want, without a word.
    if (e.code() != errc::unavailable || !e.backend_code().empty() || e.message().find("closed") == std::string::npos) throw;
    throw error(errc::unavailable,
                "H2 at " + options.host + ":" + std::to_string(options.port) +
                    " hung up: either it is stopping, or it refused the user, the password or the database without saying so; check them",
                {.transient = true});
  }
}

}  // namespace HOLDFAST_NAMESPACE::sql
