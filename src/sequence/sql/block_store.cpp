#include "sequence/sql/block_store.hpp"

#include <holdfast/join/transaction.hpp>
#include <holdfast/sequence.hpp>

#include "base/first_use.hpp"
#include "base/fork_detector.hpp"
#include "sequence/process_check.hpp"
#include "sequence/sql/schema.hpp"
#include "sequence/sql/statements.hpp"
#include "sequence/sql/unsafe_settings.hpp"
#include "sql/schema_version.hpp"

#include <algorithm>
#include <atomic>
#include <map>
#include <utility>

namespace HOLDFAST_NAMESPACE::detail::sequence {

namespace {

using sql::dialect_id;

std::int64_t integer_of(const sql::value& value) {
  if (const auto* number = std::get_if<std::int64_t>(&value)) return *number;
  throw error(errc::malformed,
              "a row of the sequences cannot be read: a counter is not an integer");
}

const std::string& text_of(const sql::value& value) {
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  throw error(errc::malformed, "a row of the sequences cannot be read: it has no name");
}

/// The grant in a row of (name, granted, last, epoch).
block_grant grant_of(const sql::rows& rows, std::size_t row) {
  const std::int64_t count = integer_of(rows.at(row, 1));
  const std::int64_t last = integer_of(rows.at(row, 2));
  if (count < 0 || last < count)
    throw error(errc::malformed,
                "a row of the sequences is inconsistent: more was granted than was counted");
  return {.block = count == 0 ? sequence_block() : sequence_block(last - count + 1, last),
          .epoch = integer_of(rows.at(row, 3))};
}

/// Two processes can create the same counter at the same moment. The one that loses gets a
/// transient error: the next attempt finds the counter.
template <class Work>
void create_or_retry(Work work) {
  try {
    work();
  } catch (const error& e) {
    if (e.code() != errc::duplicate) throw;
    throw error(errc::unavailable,
                "another process created the counter at the same moment; try again",
                {.backend_code = e.backend_code(), .transient = true});
  }
}

/// Runs `work` in a transaction.
template <class Work>
void in_transaction(sql::connection& connection, Work work) {
  connection.begin();
  try {
    work();
    connection.commit();
  } catch (...) {
    connection.rollback();
    throw;
  }
}

void check_ordinal(std::int64_t ordinal) {
  if (ordinal < 0) throw error(errc::invalid_argument, "a counter cannot be below 0");
}

class sql_block_store final : public block_store {
  /// Connects at the first use: the database tells its dialect, and the table is created if the
  /// options say so.
  void open() {
    check_process(fork_detector_);
    first_use_.run([this] {
      dialect_ = context_->dialect();
      statements_ = make_statements(dialect_, options_);
      (void)open_schema();
    });
  }
  [[nodiscard]] auto reader() {
    open();
    return context_->pool.acquire_reader("sequence.read");
  }
  /// SQLite has one writer. On other databases a refill uses another connection than the store of
  /// entries, and does not wait for its writes.
  [[nodiscard]] auto writer() {
    open();
    return dialect_ == dialect_id::sqlite ? context_->pool.acquire_writer("sequence.allocate")
                                          : context_->pool.acquire_reader("sequence.allocate");
  }

 public:
  sql_block_store(std::shared_ptr<sql::context> context, sequence_store_options options)
      : context_(std::move(context)), options_(std::move(options)) {
    (void)table_name(options_);  // checks the prefix
    if (const auto dialect = context_->options.expected_dialect)
      (void)make_statements(*dialect, options_);  // checks failover_skip
  }

  /// Opens the database if it is a file, because the caller's transaction may lock the file when
  /// `allocate_in` would have to create the table. The first operation reports a failure.
  void open_file() {
    if (!context_->is_file()) return;
    try {
      open();
    } catch (const error&) {  // NOLINT(bugprone-empty-catch)
      // The first operation tries again.
    }
  }

  std::vector<block_grant> allocate(std::span<const block_request> requests) override {
    for (const auto& request : requests) check_block_request(request);
    std::vector<block_grant> grants(requests.size());
    std::vector<std::size_t> ascending;
    std::vector<std::size_t> cycling;
    for (std::size_t i = 0; i < requests.size(); ++i)
      (requests[i].cycle ? cycling : ascending).push_back(i);
    for (auto* group : {&ascending, &cycling}) {
      if (group->empty()) continue;
      // Ordered by name: two processes that want the same counters wait for each other instead of
      // deadlocking.
      std::ranges::sort(*group, {}, [&](std::size_t i) { return requests[i].name; });
      create_or_retry([&] { allocate_group(requests, *group, grants); });
    }
    return grants;
  }

  block_grant allocate_in(join::transaction& transaction, const block_request& request) override {
    check_block_request(request);
    open();
    if (transaction.dialect() != dialect_)
      throw error(errc::invalid_argument, "the transaction is on another kind of database (" +
                                              std::string(sql::to_string(transaction.dialect())) +
                                              ") than the sequence (" +
                                              std::string(sql::to_string(dialect_)) + ")");
    const sql::parameter parameters[]{request.name, std::min(request.count, request.limit),
                                      request.limit};
    const auto& grant = request.cycle ? statements_.grant_one_cycling : statements_.grant_one;
    auto rows = transaction.execute(grant, parameters).rows;
    if (grant.results.empty()) {
      // MySQL returns no rows. The transaction has locked the row, and FOR UPDATE reads its current
      // version instead of that of an older snapshot.
      const auto& read = statements_.read_granted;
      rows = transaction
                 .execute({.text = read.text + read.row + read.tail + " FOR UPDATE",
                           .parameters = read.columns,
                           .results = read.results},
                          {parameters, 1})
                 .rows;
    }
    return rows.empty() ? block_grant{} : grant_of(rows, 0);
  }

  std::optional<counter_state> peek(std::string_view name) override {
    check_sequence_name(name);
    return read_counter(*reader(), name);
  }

  counter_state ensure_at_least(std::string_view name, std::int64_t ordinal) override {
    check_sequence_name(name);
    check_ordinal(ordinal);
    const auto connection = writer();
    const sql::parameter parameters[]{name, ordinal};
    create_or_retry([&] { connection->execute(statements_.ensure_at_least, parameters); });
    return read_counter(*connection, name).value_or(counter_state{});
  }

  bool reset(std::string_view name, std::int64_t ordinal, counter_state expected) override {
    check_sequence_name(name);
    check_ordinal(ordinal);
    const sql::parameter parameters[]{ordinal, name, expected.last, expected.epoch};
    return writer()->execute(statements_.reset, parameters).affected > 0;
  }

  bool give_back(std::string_view name, std::int64_t last_used, counter_state granted) override {
    check_sequence_name(name);
    if (last_used < 0 || last_used > granted.last)
      throw error(errc::invalid_argument, "what is given back must have been granted");
    const sql::parameter parameters[]{last_used, name, granted.last, granted.epoch};
    return writer()->execute(statements_.give_back, parameters).affected > 0;
  }

  std::vector<named_counter> list(std::size_t limit, std::string_view after) override {
    const sql::parameter parameters[]{after, static_cast<std::int64_t>(limit)};
    const auto rows = reader()->execute(statements_.list, parameters).rows;
    std::vector<named_counter> counters;
    counters.reserve(rows.size());
    for (std::size_t i = 0; i < rows.size(); ++i)
      counters.push_back(
          {.name = text_of(rows.at(i, 0)),
           .state = {.last = integer_of(rows.at(i, 1)), .epoch = integer_of(rows.at(i, 2))}});
    return counters;
  }

  std::vector<std::string> unsafe_settings() override {
    const auto connection = writer();  // before dialect_ is read, which the first use sets
    return unsafe_sql_settings(*connection, dialect_, options_.failover_skip != 0);
  }

 private:
  /// Creates the table if the options say so. Returns its version.
  [[nodiscard]] int open_schema() const {
    const auto set = counter_schema(options_);
    if (options_.create_schema)
      return sql::create_schema(*context_->pool.acquire_writer("sequence.create_schema"), dialect_,
                                set);
    return sql::read_schema_version(*context_->pool.acquire_reader("sequence.schema_version"),
                                    dialect_, set);
  }

  [[nodiscard]] std::optional<counter_state> read_counter(sql::connection& connection,
                                                          std::string_view name) const {
    const sql::parameter parameters[]{name};
    const auto rows = connection.execute(statements_.peek, parameters).rows;
    if (rows.empty()) return std::nullopt;
    return counter_state{.last = integer_of(rows.at(0, 0)), .epoch = integer_of(rows.at(0, 1))};
  }

  /// Grants the requests with the indices of `group`, which either all cycle or all do not.
  void allocate_group(std::span<const block_request> requests,
                      const std::vector<std::size_t>& group, std::vector<block_grant>& grants) {
    const auto connection = writer();
    const std::size_t first = group.front();
    if (group.size() == 1 && !requests[first].cycle &&
        grant_by_insert_id(*connection, requests[first], grants[first]))
      return;
    if (statements_.mode == grant_mode::one_by_one)
      grant_one_by_one(*connection, requests, group, grants);
    else grant_batch(*connection, requests, group, grants);
  }

  void grant_batch(sql::connection& connection, std::span<const block_request> requests,
                   const std::vector<std::size_t>& group, std::vector<block_grant>& grants) const {
    std::vector<std::vector<sql::parameter>> columns(3);
    std::map<std::string_view, std::size_t> index_of_name;
    for (const std::size_t i : group) {
      columns[0].emplace_back(requests[i].name);
      columns[1].emplace_back(std::min(requests[i].count, requests[i].limit));
      columns[2].emplace_back(requests[i].limit);
      index_of_name.emplace(requests[i].name, i);
    }
    const auto& grant =
        requests[group.front()].cycle ? statements_.grant_cycling : statements_.grant;
    sql::rows rows;
    if (statements_.mode == grant_mode::batch) {
      rows = connection.batch(grant, columns, {}).rows;
    } else {
      in_transaction(connection, [&] {
        connection.batch(grant, columns, {});
        rows = connection.batch(statements_.read_granted, std::span(columns).first(1), {}).rows;
      });
    }
    // The rows come in any order. An exhausted counter has no row, or a row with nothing granted.
    for (std::size_t row = 0; row < rows.size(); ++row) {
      const auto it = index_of_name.find(text_of(rows.at(row, 0)));
      if (it == index_of_name.end())
        throw error(errc::malformed,
                    "the database granted a block to a counter that was not requested; check the "
                    "triggers and collations of the table");
      grants[it->second] = grant_of(rows, row);
    }
  }

  /// One round trip on MySQL. Returns false if the dialect has no such statement, or if the counter
  /// is at its limit or near it.
  [[nodiscard]] bool grant_by_insert_id(sql::connection& connection, const block_request& request,
                                        block_grant& grant) const {
    if (statements_.grant_by_insert_id.text.empty() ||
        !has_insert_id_.load(std::memory_order_relaxed))
      return false;
    const std::int64_t count = std::min(request.count, request.limit);
    const sql::parameter parameters[]{request.name,  count, request.limit,
                                      request.limit, count, count};
    const auto result = connection.execute(statements_.grant_by_insert_id, parameters);
    if (result.affected == 0) return false;
    // A driver without insert ids (ODBC). The block that was just granted is a gap, once.
    if (result.insert_id == 0) {
      has_insert_id_.store(false, std::memory_order_relaxed);
      return false;
    }
    const auto last = static_cast<std::int64_t>(result.insert_id);
    grant = {.block = sequence_block(last - count + 1, last), .epoch = 0};
    return true;
  }

  void grant_one_by_one(sql::connection& connection, std::span<const block_request> requests,
                        const std::vector<std::size_t>& group,
                        std::vector<block_grant>& grants) const {
    const auto grant_all = [&] {
      for (const std::size_t i : group) {
        const auto& request = requests[i];
        const sql::parameter parameters[]{request.name, std::min(request.count, request.limit),
                                          request.limit};
        const auto& grant = request.cycle ? statements_.grant_one_cycling : statements_.grant_one;
        const auto rows = connection.execute(grant, parameters).rows;
        if (!rows.empty()) grants[i] = grant_of(rows, 0);
      }
    };
    if (group.size() > 1) in_transaction(connection, grant_all);
    else grant_all();
  }

  const std::shared_ptr<sql::context> context_;
  const sequence_store_options options_;
  const fork_detector fork_detector_{};
  first_use first_use_{};
  dialect_id dialect_ = dialect_id::unknown;  // set at the first use
  statements statements_{};                   // set at the first use
  mutable std::atomic<bool> has_insert_id_{true};
};

}  // namespace

std::shared_ptr<block_store> make_sql_block_store(std::shared_ptr<sql::context> context,
                                                  const sequence_store_options& options) {
  auto store = std::make_shared<sql_block_store>(std::move(context), options);
  store->open_file();
  return store;
}

}  // namespace HOLDFAST_NAMESPACE::detail::sequence
