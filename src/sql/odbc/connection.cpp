#include "sql/odbc/connection.hpp"

#include "base/duration_limit.hpp"
#include "sql/driver_support.hpp"
#include "sql/keyword.hpp"
#include "sql/odbc/call_thread.hpp"
#include "sql/odbc/session.hpp"

#include <unistd.h>

#include <algorithm>
#include <new>
#include <utility>

namespace HOLDFAST_NAMESPACE::detail::sql::odbc {

namespace {

/// The limits of one statement of a batch.
constexpr std::size_t row_limit = 256;
constexpr std::size_t byte_limit = std::size_t{4} << 20U;

constexpr auto longest_limit = std::chrono::hours(24);

odbc_options checked(odbc_options options) {
  options.connect_timeout =
      positive_duration("connect_timeout", options.connect_timeout, longest_limit);
  options.statement_timeout =
      positive_duration("statement_timeout", options.statement_timeout, longest_limit);
  return options;
}

/// Every statement but a SELECT may change something.
bool may_change(std::string_view text) {
  return !starts_with_keyword(from_first_keyword(text, " \t\r\n("), "SELECT");
}

class odbc_connection final : public connection {
 public:
  explicit odbc_connection(const odbc_options& options)
      : limit_(options.statement_timeout), owner_(getpid()) {
    const auto connected = std::make_shared<std::shared_ptr<session>>();
    if (!thread_.run([connected, options] { *connected = std::make_shared<session>(options); },
                     call_deadline(options.connect_timeout).expires)) {
      throw error(errc::timeout,
                  "the ODBC driver did not connect within " +
                      std::to_string(options.connect_timeout.count()) + " ms",
                  {.transient = true});
    }
    session_ = std::move(*connected);
    dialect_ = session_->dialect();
  }
  odbc_connection(const odbc_connection&) = delete;
  odbc_connection& operator=(const odbc_connection&) = delete;
  ~odbc_connection() override {
    if (getpid() != owner_) {
      // In a forked child, closing would use the socket of the parent, and the driver's threads do
      // not exist. The child leaks the session.
      thread_.forget();
      (void)new (std::nothrow) std::shared_ptr<session>(std::move(session_));
      return;
    }
    try {
      // Disconnecting may hang.
      const call_deadline deadline(std::min(limit_, std::chrono::milliseconds(1'000)));
      if (session_ && !thread_.lost())
        (void)thread_.run([last = std::exchange(session_, nullptr)]() mutable { last.reset(); },
                          deadline.expires);
    } catch (...) {  // NOLINT(bugprone-empty-catch): a destructor must not throw
    }
  }

  [[nodiscard]] dialect_id dialect() const noexcept override { return dialect_; }
  [[nodiscard]] bool broken() const noexcept override { return thread_.lost() || broken_; }
  [[nodiscard]] bool read_only() const noexcept override { return read_only_; }
  [[nodiscard]] bool responds(std::chrono::milliseconds longest) noexcept override {
    // SQLite has no server, and an unknown database may not understand the statement.
    if (dialect_ == dialect_id::sqlite || dialect_ == dialect_id::unknown) return !broken();
    try {
      start_call();
      const std::string text = dialect_ == dialect_id::oracle ? "SELECT 1 FROM DUAL" : "SELECT 1";
      call([session = session_, text] { session->run(text, loss::harmless); },
           call_deadline(longest), loss::harmless);
    } catch (...) {
      broken_ = true;
    }
    return !broken();
  }
  void limit(std::chrono::milliseconds longest) override {
    limit_ = positive_duration("the time limit", longest, longest_limit);
  }

  outcome execute(const statement& s, std::span<const parameter> parameters) override {
    check_parameter_count(s, parameters);
    start_call();
    request r{.statement = use_question_marks(s.text),
              .results = s.results,
              .most_rows = s.most_rows,
              .on_loss = may_change(s.text) ? loss_of_change() : loss::harmless};
    r.parameters.reserve(parameters.size());
    for (std::size_t i = 0; i < parameters.size(); ++i)
      r.parameters.emplace_back(s.parameters[i], parameters.subspan(i, 1), session_->format());
    return send(std::move(r), call_deadline(limit_));
  }

  outcome batch(const batch_statement& s, std::span<const std::vector<parameter>> columns,
                std::span<const parameter> common) override {
    const auto count = check_batch(s, columns, common);
    outcome result{.rows = rows(s.results.size())};
    if (count == 0) return result;
    start_call();
    const call_deadline deadline(limit_);
    if (dialect_ == dialect_id::postgresql && s.row.empty())
      return send_as_arrays(s, columns, common, deadline);
    const auto text = use_question_marks(s.text + s.row + s.tail);
    const bool own_transaction = count > 1 && !in_transaction_;
    if (own_transaction) begin_until(deadline);
    try {
      for (std::size_t first = 0; first < count;) {
        const auto part_size = rows_that_fit(columns, first);
        append_result(result, send(part_of(s, text, columns, common, first, part_size), deadline),
                      s.results.size());
        first += part_size;
      }
      if (own_transaction) commit_until(deadline);
    } catch (...) {
      if (own_transaction) rollback();
      throw;
    }
    return result;
  }

  void run(const std::string& text) override {
    start_call();
    call([session = session_, text] { session->run(text, loss::in_doubt); }, call_deadline(limit_),
         loss::in_doubt);
  }

  void begin() override {
    start_call();
    if (in_transaction_) throw error(errc::invalid_argument, "a transaction is open already");
    begin_until(call_deadline(limit_));
  }
  void commit() override {
    start_call();
    if (!in_transaction_) throw error(errc::invalid_argument, "no transaction is open");
    commit_until(call_deadline(limit_));
  }
  void rollback() noexcept override {
    if (!in_transaction_) return;
    in_transaction_ = false;
    if (broken()) return;
    try {
      call([session = session_] { session->rollback(); }, call_deadline(limit_), loss::harmless);
    } catch (...) {
      broken_ = true;
    }
  }

 private:
  void start_call() const {
    check_process(owner_);
    if (broken())
      throw error(errc::unavailable, "the connection to the database is lost; nothing was changed",
                  {.transient = true});
  }

  /// The server rolls back an open transaction if the connection is lost.
  [[nodiscard]] loss loss_of_change() const {
    return in_transaction_ ? loss::harmless : loss::in_doubt;
  }

  /// Runs `work`, which must own everything that it refers to, on the driver's thread.
  void call(std::function<void()> work, const call_deadline& deadline, loss on_loss) {
    bool returned = false;
    try {
      returned = thread_.run(std::move(work), deadline.expires);
    } catch (...) {
      if (session_->dead()) broken_ = true;
      if (session_->read_only()) read_only_ = true;
      throw;
    }
    if (!returned) throw timed_out(deadline.limit, on_loss);
    if (session_->dead()) broken_ = true;
  }

  outcome send(request r, const call_deadline& deadline) {
    struct exchange {
      request sent;
      outcome received{};
    };
    const loss on_loss = r.on_loss;
    const auto shared = std::make_shared<exchange>(exchange{std::move(r)});
    call([session = session_, shared] { shared->received = session->execute(shared->sent); },
         deadline, on_loss);
    return std::move(shared->received);
  }

  /// For PostgreSQL: each column is one array, and all rows are one statement.
  outcome send_as_arrays(const batch_statement& s, std::span<const std::vector<parameter>> columns,
                         std::span<const parameter> common, const call_deadline& deadline) {
    request r{
        .statement = use_question_marks(s.text), .results = s.results, .on_loss = loss_of_change()};
    r.parameters.reserve(columns.size() + common.size());
    for (std::size_t i = 0; i < columns.size(); ++i) {
      const auto text = array_text(s.columns[i], columns[i]);
      const parameter array[]{std::string_view(text)};
      r.parameters.emplace_back(type::text, array, session_->format());
    }
    for (std::size_t i = 0; i < common.size(); ++i)
      r.parameters.emplace_back(s.common[i], common.subspan(i, 1), session_->format());
    return send(std::move(r), deadline);
  }

  /// The request for `count` rows of a batch, from `first` on.
  request part_of(const batch_statement& s, const question_mark_text& text,
                  std::span<const std::vector<parameter>> columns,
                  std::span<const parameter> common, std::size_t first, std::size_t count) const {
    request r{.statement = text, .rows = count, .results = s.results, .on_loss = loss_of_change()};
    if (!s.order.empty()) r.statement.order = s.order;
    r.parameters.reserve(columns.size() + common.size());
    for (std::size_t i = 0; i < columns.size(); ++i)
      r.parameters.emplace_back(s.columns[i], std::span(columns[i]).subspan(first, count),
                                session_->format());
    for (std::size_t i = 0; i < common.size(); ++i)
      r.parameters.emplace_back(s.common[i], std::vector<parameter>(count, common[i]),
                                session_->format());
    return r;
  }

  /// How many rows from `first` on fit into one statement. All elements of an array are as large as
  /// the largest, so a row with a large value is sent alone.
  [[nodiscard]] std::size_t rows_that_fit(std::span<const std::vector<parameter>> columns,
                                          std::size_t first) const {
    if (!session_->takes_arrays()) return 1;
    const std::size_t remaining = columns.front().size() - first;
    std::size_t widest = 0;
    std::size_t count = 0;
    for (; count < remaining && count < row_limit; ++count) {
      std::size_t width = 0;
      for (const auto& column : columns) width += size_of(column[first + count]);
      widest = std::max(widest, width);
      if (count > 0 && (width > large_value || widest * (count + 1) > byte_limit)) break;
      if (width > large_value) return 1;
    }
    return count;
  }

  void begin_until(const call_deadline& deadline) {
    call([session = session_] { session->begin(); }, deadline, loss::harmless);
    in_transaction_ = true;
  }
  void commit_until(const call_deadline& deadline) {
    try {
      call([session = session_] { session->commit(); }, deadline, loss::in_doubt);
    } catch (...) {
      rollback();
      throw;
    }
    in_transaction_ = false;
  }

  call_thread thread_{};
  std::shared_ptr<session> session_{};
  std::chrono::milliseconds limit_;
  dialect_id dialect_ = dialect_id::unknown;
  bool in_transaction_ = false;
  bool broken_ = false;
  bool read_only_ = false;
  pid_t owner_;  // the process that opened the connection
};

}  // namespace

}  // namespace HOLDFAST_NAMESPACE::detail::sql::odbc

namespace HOLDFAST_NAMESPACE::detail::sql {

std::unique_ptr<connection> connect_odbc(const odbc_options& options) {
  return std::make_unique<odbc::odbc_connection>(odbc::checked(options));
}

}  // namespace HOLDFAST_NAMESPACE::detail::sql
