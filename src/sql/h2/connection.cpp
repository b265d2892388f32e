#include "sql/h2/connection.hpp"

#include "base/duration_limit.hpp"
#include "sql/driver_support.hpp"
#include "sql/h2/errors.hpp"
#include "sql/h2/statements.hpp"
#include "sql/h2/values.hpp"
#include "sql/postgres/login.hpp"
#include "sql/postgres/result.hpp"
#include "sql/postgres/session.hpp"

#include <libpq-fe.h>

#include <algorithm>
#include <limits>
#include <string_view>
#include <utility>

namespace HOLDFAST_NAMESPACE::detail::sql::h2 {

namespace {

/// The limits of one statement of a batch. Each number of rows is a prepared statement of its own.
constexpr std::size_t row_limit = 64;
constexpr std::size_t byte_limit = std::size_t{8} << 20U;

constexpr auto longest_limit = std::chrono::hours(24);

postgres_options login_options(const h2_options& options) {
  std::string conninfo = "sslmode=disable gssencmode=disable";
  const auto add = [&conninfo](std::string_view keyword, std::string_view value) {
    conninfo.append(" ").append(keyword).append("=").append(postgres::quoted_value(value));
  };
  add("host", options.host);
  add("port", std::to_string(options.port));
  add("dbname", options.database);
  add("user", options.user);
  add("password", options.password);
  return {.connection_string = conninfo,
          .connect_timeout =
              positive_duration("connect_timeout", options.connect_timeout, longest_limit),
          .statement_timeout =
              positive_duration("statement_timeout", options.statement_timeout, longest_limit),
          .keepalive = options.keepalive};
}

constexpr postgres::server_kind server{
    .name = "H2",
    .to_error = &to_error,
    .acknowledge_at_once = true,
    .closed_at_login =
        "closed the connection: either it is stopping, or it refused the user, the password or the "
        "database without saying so; check them"};

/// The bytes that a value adds to a message.
std::size_t size_of(const parameter& p) {
  const auto characters = characters_of(p);
  return characters ? characters->size() : 32;
}

/// The end of the rows from `first` on that fit into one statement.
std::size_t end_of_part(std::span<const std::vector<parameter>> columns, std::size_t first) {
  const std::size_t count = columns.front().size();
  std::size_t bytes = 0;
  std::size_t last = first;
  for (; last < count && last - first < row_limit; ++last) {
    for (const auto& column : columns) bytes += size_of(column[last]);
    if (last > first && bytes > byte_limit) break;
  }
  return last;
}

class h2_connection final : public connection {
 public:
  explicit h2_connection(const h2_options& options)
      : session_(login_options(options), server),
        limit_(limit_duration(options.statement_timeout, longest_limit)) {
    const call_deadline deadline(limit_);
    check_server(deadline);
    // H2 ends statements that we gave up. It waits for locks a little shorter than we do, so that
    // a lock timeout is an answer.
    const auto lock_timeout = std::max<std::int64_t>(50, limit_.count() - limit_.count() / 10);
    session_.query(
        "SET TIME ZONE 'UTC'; SET QUERY_TIMEOUT " +
            std::to_string((limit_ + postgres::server_margin).count()) + "; SET LOCK_TIMEOUT " +
            std::to_string(std::min<std::int64_t>(lock_timeout, std::numeric_limits<int>::max())),
        loss::harmless, deadline);
    set_write_delay(options.write_delay, deadline);
  }

  [[nodiscard]] dialect_id dialect() const noexcept override { return dialect_id::h2; }
  [[nodiscard]] transport_kind transport() const noexcept override { return session_.transport(); }
  [[nodiscard]] bool broken() const noexcept override { return session_.broken(); }
  [[nodiscard]] bool responds(std::chrono::milliseconds longest) noexcept override {
    return session_.responds("SELECT 1", longest);
  }
  void limit(std::chrono::milliseconds longest) override {
    limit_ = positive_duration("the time limit", longest, longest_limit);
  }

  outcome execute(const statement& s, std::span<const parameter> parameters) override {
    check_parameter_count(s, parameters);
    bindings_.clear();
    for (std::size_t i = 0; i < parameters.size(); ++i)
      bindings_.add(s.parameters[i], parameters[i]);
    return run_prepared(s.text, s.results, call_deadline(limit_));
  }

  outcome batch(const batch_statement& s, std::span<const std::vector<parameter>> columns,
                std::span<const parameter> common) override {
    const auto count = check_batch(s, columns, common);
    outcome result{.rows = rows(s.results.size())};
    const call_deadline deadline(limit_);
    const bool own_transaction = end_of_part(columns, 0) < count && !session_.in_transaction();
    if (own_transaction) session_.query("BEGIN", loss::harmless, deadline);
    try {
      for (std::size_t first = 0; first < count;) {
        const std::size_t last = end_of_part(columns, first);
        append_result(result, run_part(s, columns, common, first, last, deadline),
                      s.results.size());
        first = last;
      }
      if (own_transaction) session_.query("COMMIT", loss::in_doubt, deadline);
    } catch (...) {
      if (own_transaction) rollback();
      throw;
    }
    return result;
  }

  void run(const std::string& text) override {
    check_statement_text(text);
    session_.query(text, loss::in_doubt, call_deadline(limit_));
  }

  void begin() override {
    if (session_.in_transaction())
      throw error(errc::invalid_argument, "a transaction is open already");
    session_.query("BEGIN", loss::harmless, call_deadline(limit_));
  }
  void commit() override {
    if (!session_.broken() && !session_.in_transaction())
      throw error(errc::invalid_argument, "no transaction is open");
    session_.query("COMMIT", loss::in_doubt, call_deadline(limit_));
  }
  void rollback() noexcept override {
    if (session_.broken() || !session_.in_transaction()) return;
    try {
      session_.query("ROLLBACK", loss::harmless, call_deadline(limit_));
    } catch (...) {
      session_.abandon();
    }
  }

 private:
  void check_server(const call_deadline& deadline) {
    const auto version = session_.query("SELECT version()", loss::harmless, deadline);
    if (PQntuples(version.get()) != 1 ||
        std::string_view(PQgetvalue(version.get(), 0, 0)).find(" H2 ") == std::string_view::npos)
      throw error(errc::invalid_argument,
                  "the server is not H2; write postgresql:// for PostgreSQL", {.path = "url"});
  }

  /// Sets it on every connection: a database that was reopened shows the setting, but follows it
  /// only after it was set again.
  void set_write_delay(std::chrono::milliseconds delay, const call_deadline& deadline) {
    try {
      session_.query("SET WRITE_DELAY " + std::to_string(delay.count()), loss::harmless, deadline);
    } catch (const error& e) {
      if (e.code() != errc::permission) throw;
    }
  }

  /// Runs the rows [first, last) of a batch as one statement.
  outcome run_part(const batch_statement& s, std::span<const std::vector<parameter>> columns,
                   std::span<const parameter> common, std::size_t first, std::size_t last,
                   const call_deadline& deadline) {
    bindings_.clear();
    std::string text = s.text;
    for (std::size_t row = first; row < last; ++row) {
      text.append(row == first ? "" : ", ").append(s.row);
      for (std::size_t i = 0; i < columns.size(); ++i) bindings_.add(s.columns[i], columns[i][row]);
    }
    text.append(s.tail);
    for (std::size_t i = 0; i < common.size(); ++i) bindings_.add(s.common[i], common[i]);
    return run_prepared(text, s.results, deadline);
  }

  outcome run_prepared(const std::string& text, const std::vector<type>& results,
                       const call_deadline& deadline) {
    const auto parameters = bindings_.finish();
    const auto* name = statements_.find(text, parameters.type_oids());
    if (name == nullptr) name = &prepare(text, parameters, deadline);
    const auto on_loss = session_.in_transaction() ? loss::harmless : loss::in_doubt;
    const auto result = session_.execute(*name, parameters, on_loss, deadline);
    try {
      return postgres::read_result(
          result.get(), results.size(),
          [&](std::size_t column, std::optional<std::string_view> text_value) -> value {
            if (!text_value) return {};
            const bool is_bytea =
                PQftype(result.get(), static_cast<int>(column)) == postgres::oid_of(type::bytes);
            return read_text(text_value->data(), text_value->size(), results[column], is_bytea);
          });
    } catch (const error& failure) {
      // The statement ran, but its result cannot be read.
      throw error(failure.code(), failure.message(), {.in_doubt = on_loss == loss::in_doubt});
    }
  }

  const std::string& prepare(const std::string& text, const postgres::wire_parameters& parameters,
                             const call_deadline& deadline) {
    check_statement_text(text);
    const auto marks = std::ranges::count(text, '?');
    if (marks != parameters.count)
      throw error(errc::invalid_argument, "the statement has " + std::to_string(marks) +
                                              " question marks and " +
                                              std::to_string(parameters.count) + " parameters");
    auto name = statements_.name_for(text);
    session_.prepare(name, text, parameters, deadline);
    return statements_.add(text, parameters.type_oids(), std::move(name));
  }

  postgres::session session_;
  std::chrono::milliseconds limit_;
  prepared_statements statements_{};
  text_bindings bindings_{};
};

}  // namespace

}  // namespace HOLDFAST_NAMESPACE::detail::sql::h2

namespace HOLDFAST_NAMESPACE::detail::sql {

std::unique_ptr<connection> connect_h2(const h2_options& options) {
  return std::make_unique<h2::h2_connection>(options);
}

}  // namespace HOLDFAST_NAMESPACE::detail::sql
