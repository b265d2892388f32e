#include "sql/odbc_connection.hpp"

#include "sql/checked_limit.hpp"
#include "sql/odbc_link.hpp"
#include "sql/odbc_thread.hpp"

#include <unistd.h>

#include <algorithm>
#include <utility>

namespace HOLDFAST_NAMESPACE::sql {

namespace {

using steady = std::chrono::steady_clock;
using odbc::request;

/// What one statement carries at most.
constexpr std::size_t most_odbc_rows = 256;
constexpr std::size_t most_odbc_bytes = std::size_t{4} << 20U;

/// The longest limit that a driver is given.
constexpr auto longest_odbc_limit = std::chrono::hours(24);

/// Reading changes nothing; anything else may.
bool changes(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t\r\n("), text.size()));
  static constexpr std::string_view word = "SELECT";
  return !(text.size() > word.size() &&
           std::equal(word.begin(), word.end(), text.begin(), [](char a, char b) { return a == (b & ~0x20); }));
}

class odbc_connection final : public connection {
 public:
  explicit odbc_connection(const odbc_options& options)
      : limit_(checked_limit(options.statement_timeout, longest_odbc_limit)), owner_(getpid()) {
    const auto made = std::make_shared<std::shared_ptr<odbc::link>>();
    if (!thread_.run([made, options] { *made = std::make_shared<odbc::link>(options); },
                     steady::now() + checked_limit(options.connect_timeout, longest_odbc_limit))) {
      throw error(errc::timeout, "the ODBC driver did not connect within " + std::to_string(options.connect_timeout.count()) + " ms",
                  {.transient = true});
    }
    link_ = std::move(*made);
    dialect_ = link_->dialect();
  }
  odbc_connection(const odbc_connection&) = delete;
  odbc_connection& operator=(const odbc_connection&) = delete;
  ~odbc_connection() override {
    if (getpid() != owner_) {
      // The driver's socket and threads are the parent's: nothing is closed here, and the memory is let go.
      thread_.forget();
      (void)new (std::nothrow) std::shared_ptr<odbc::link>(std::move(link_));
      return;
    }
    try {
      // Saying goodbye may hang as well as anything.
      if (link_ && !thread_.lost())
        (void)thread_.run([last = std::exchange(link_, nullptr)]() mutable { last.reset(); },
                          steady::now() + std::min(limit_, std::chrono::milliseconds(1'000)));
    } catch (...) {  // NOLINT(bugprone-empty-catch): no thread, no goodbye
    }
  }

  [[nodiscard]] dialect_id dialect() const noexcept override { return dialect_; }
  [[nodiscard]] bool broken() const noexcept override { return thread_.lost() || broken_; }
  void limit(std::chrono::milliseconds longest) override { limit_ = checked_limit(longest, longest_odbc_limit); }

  outcome execute(const statement& s, std::span<const parameter> parameters) override {
    if (parameters.size() != s.parameters.size())
      throw error(errc::invalid_argument, "the statement has " + std::to_string(s.parameters.size()) + " parameters, but " +
                                              std::to_string(parameters.size()) + " values are given");
    start_call();
    request what{
        .statement = odbc::with_marks(s.text), .results = s.results, .most_rows = s.most_rows, .in_doubt = !open_ && changes(s.text)};
    what.parameters.reserve(parameters.size());
    for (std::size_t i = 0; i < parameters.size(); ++i)
      what.parameters.emplace_back(s.parameters[i], parameters.subspan(i, 1), link_->how());
    return send(std::move(what), steady::now() + limit_);
  }

  outcome batch(const batch_statement& s, std::span<const std::vector<parameter>> columns, std::span<const parameter> common) override {
    if (columns.size() != s.columns.size() || columns.empty() || common.size() != s.common.size())
      throw error(errc::invalid_argument, "the batch has other columns or common parameters than its statement");
    const auto count = columns.front().size();
    if (std::any_of(columns.begin(), columns.end(), [=](const auto& column) { return column.size() != count; }))
      throw error(errc::invalid_argument, "the columns of a batch must be of equal length");
    if (count == 0) return outcome{.rows = rows(s.results.size())};
    start_call();
    const auto until = steady::now() + limit_;
    if (dialect_ == dialect_id::postgresql && s.row.empty()) return send_as_arrays(s, columns, common, until);

    outcome result{.rows = rows(s.results.size())};
    const auto whole = odbc::with_marks(s.text + s.row + s.tail);
    const bool own = count > 1 && !open_;
    if (own) begin_until(until);
    try {
      for (std::size_t first = 0; first < count;) {
        const auto last = first + fitting(columns, first, count);
        request what{.statement = whole, .rows = last - first, .results = s.results, .in_doubt = !open_};
        if (!s.order.empty()) what.statement.order = s.order;
        what.parameters.reserve(columns.size() + common.size());
        for (std::size_t i = 0; i < columns.size(); ++i)
          what.parameters.emplace_back(s.columns[i], std::span(columns[i]).subspan(first, last - first), link_->how());
        for (std::size_t i = 0; i < common.size(); ++i)
          what.parameters.emplace_back(s.common[i], std::vector<parameter>(last - first, common[i]), link_->how());
        auto part = send(std::move(what), until);
        result.affected += part.affected;
        for (std::size_t row = 0; row < part.rows.size(); ++row)
          for (std::size_t i = 0; i < s.results.size(); ++i) result.rows.add(std::move(part.rows.at(row, i)));
        first = last;
      }
      if (own) end_until(true, until);
    } catch (...) {
      if (own) rollback();
      throw;
    }
    return result;
  }

  void run(const std::string& text) override {
    start_call();
    call([link = link_, text] { link->run(text, true); }, steady::now() + limit_, true);
  }

  void begin() override {
    start_call();
    if (open_) throw error(errc::invalid_argument, "a transaction has begun already");
    begin_until(steady::now() + limit_);
  }
  void commit() override {
    start_call();
    if (!open_) throw error(errc::invalid_argument, "there is no transaction to commit");
    end_until(true, steady::now() + limit_);
  }
  void rollback() noexcept override {
    if (!open_) return;
    open_ = false;
    if (broken()) return;
    try {
      call([link = link_] { link->end(false); }, steady::now() + limit_, false);
    } catch (...) {
      broken_ = true;
    }
  }

 private:
  void start_call() const {
    if (getpid() != owner_)
      throw error(errc::invalid_argument, "the connection was opened by the parent process; open one in this process");
    if (broken()) throw error(errc::unavailable, "the connection to the database is lost; nothing was changed", {.transient = true});
  }

  /// On the driver's thread. `work` owns all it touches.
  void call(std::function<void()> work, steady::time_point until, bool in_doubt) {
    bool done = false;
    try {
      done = thread_.run(std::move(work), until);
    } catch (...) {
      if (link_->dead()) broken_ = true;
      throw;
    }
    if (!done) throw odbc::out_of_time(limit_, in_doubt);
    if (link_->dead()) broken_ = true;
  }

  outcome send(request what, steady::time_point until) {
    struct exchange {
      request what;
      outcome result{};
    };
    const bool in_doubt = what.in_doubt;
    const auto shared = std::make_shared<exchange>(exchange{std::move(what)});
    call([link = link_, shared] { shared->result = link->execute(shared->what); }, until, in_doubt);
    return std::move(shared->result);
  }

  /// PostgreSQL's own form: every column one array, all rows in one statement.
  outcome send_as_arrays(const batch_statement& s, std::span<const std::vector<parameter>> columns, std::span<const parameter> common,
                         steady::time_point until) {
    request what{.statement = odbc::with_marks(s.text), .results = s.results, .in_doubt = !open_};
    what.parameters.reserve(columns.size() + common.size());
    for (std::size_t i = 0; i < columns.size(); ++i) {
      const auto text = odbc::array_text(s.columns[i], columns[i]);
      const parameter whole[]{std::string_view(text)};
      what.parameters.emplace_back(type::text, whole, link_->how());
    }
    for (std::size_t i = 0; i < common.size(); ++i) what.parameters.emplace_back(s.common[i], common.subspan(i, 1), link_->how());
    return send(std::move(what), until);
  }

  /// Elements of an array are as large as the largest, and a large value travels alone.
  [[nodiscard]] std::size_t fitting(std::span<const std::vector<parameter>> columns, std::size_t first, std::size_t count) const {
    if (!link_->takes_arrays()) return 1;
    std::size_t widest = 0;
    std::size_t rows_fitting = 0;
    for (; first + rows_fitting < count && rows_fitting < most_odbc_rows; ++rows_fitting) {
      std::size_t width = 0;
      for (const auto& column : columns) width += odbc::size_of(column[first + rows_fitting]);
      widest = std::max(widest, width);
      if (rows_fitting > 0 && (width > odbc::large_value || widest * (rows_fitting + 1) > most_odbc_bytes)) break;
      if (width > odbc::large_value) return 1;
    }
    return rows_fitting;
  }

  void begin_until(steady::time_point until) {
    call([link = link_] { link->begin(); }, until, false);
    open_ = true;
  }
  void end_until(bool commit, steady::time_point until) {
    try {
      call([link = link_, commit] { link->end(commit); }, until, true);
    } catch (...) {
      rollback();
      throw;
    }
    open_ = false;
  }

  odbc::call_thread thread_{};
  std::shared_ptr<odbc::link> link_{};
  std::chrono::milliseconds limit_;
  dialect_id dialect_ = dialect_id::unknown;
  bool open_ = false;
  bool broken_ = false;
  pid_t owner_;
};

}  // namespace

std::unique_ptr<connection> connect_odbc(const odbc_options& options) { return std::make_unique<odbc_connection>(options); }

}  // namespace HOLDFAST_NAMESPACE::sql
