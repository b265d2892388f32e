#include "sequence/sql/block_store.hpp"

#include <holdfast/join/transaction.hpp>
#include <holdfast/sequence.hpp>

#include "base/first_use.hpp"
#include "base/fork_detector.hpp"
#include "sequence/definition.hpp"
#include "sequence/process_check.hpp"
#include "sequence/sql/schema.hpp"
#include "sequence/sql/statements.hpp"
#include "sequence/sql/unsafe_settings.hpp"
#include "sql/retry.hpp"
#include "sql/schema_version.hpp"
#include "sql/table_access.hpp"
#if HOLDFAST_HAS_SQLITE
#include "sql/sqlite/connection.hpp"
#endif

#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>
#include <mutex>
#include <type_traits>
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

/// Another transaction may be faster with the same counter, on Galera several times in a row. The
/// pauses of a refill are for servers that are down, and too long for that.
constexpr sql::retry_limits conflict_limits{.attempts = 20,
                                            .time = std::chrono::seconds(2),
                                            .shortest_pause = std::chrono::microseconds(100),
                                            .first_pause = std::chrono::milliseconds(1),
                                            .longest_pause = std::chrono::milliseconds(16)};

/// Two processes can create the same counter at the same moment. The one that loses gets a
/// transient error: the next attempt finds the counter.
template <class Work>
void create_or_retry(Work work) {
  try {
    sql::with_retries(conflict_limits, work, sql::is_write_conflict);
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

bool replaced_file([[maybe_unused]] sql::connection& connection) noexcept {
#if HOLDFAST_HAS_SQLITE
  return sql::file_was_replaced(connection);
#else
  return false;
#endif
}

/// Where the rows of counters are (see statements::grant_at_address). An address is good until
/// another process changes the row, so it is used only for a counter of which this process was
/// granted two blocks in a row. Thread-safe.
class row_addresses {
 public:
  /// Returns the address to try, or an empty text.
  [[nodiscard]] std::string find(std::string_view name) const {
    const std::scoped_lock lock(mutex_);
    const auto it = rows_.find(name);
    return it != rows_.end() && it->second.alone ? it->second.address : std::string();
  }
  void remember(std::string_view name, const sequence_block& granted, std::string address) {
    const std::scoped_lock lock(mutex_);
    auto it = rows_.find(name);
    if (it == rows_.end()) {
      if (rows_.size() >= most_rows) rows_.clear();
      it = rows_.emplace(std::string(name), row{}).first;
    }
    const bool alone = it->second.last == granted.first() - 1;
    it->second = {.address = std::move(address), .last = granted.last(), .alone = alone};
  }

 private:
  struct row {
    std::string address{};
    std::int64_t last = -1;
    bool alone = false;
  };
  static constexpr std::size_t most_rows = 4096;  // a program may use any number of names

  mutable std::mutex mutex_{};
  std::map<std::string, row, std::less<>> rows_{};
};

class sql_block_store final : public block_store {
  /// Connects at the first use: the database tells its dialect, and the table is created if the
  /// options say so.
  void open() {
    check_process(fork_detector_);
    first_use_.run([this] {
      dialect_ = context_->dialect();
      (void)make_statements(dialect_, options_);  // refuses what the dialect cannot do
      const bool defined = open_schema() >= definitions_since;
      statements_ = make_statements(dialect_, options_, defined);
      undefined_statements_ = make_statements(dialect_, options_, false);
      if (defined) return;
      context_->options.log->write(
          log_level::warning,
          "the table " + table_name(options_) +
              " was created by an earlier version: it cannot keep what all users of a sequence "
              "must "
              "agree on (start, increment, limits, fence), so nothing checks it; run: holdfast "
              "schema upgrade");
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
    return with_table_hint([&] { return allocate_all(requests); });
  }

  std::vector<block_grant> allocate_all(std::span<const block_request> requests) {
    std::vector<block_grant> grants(requests.size());
    // One statement for all requests that cycle, or have a definition, or both, or neither.
    std::vector<std::size_t> groups[4];
    for (std::size_t i = 0; i < requests.size(); ++i)
      groups[(requests[i].cycle ? 1U : 0U) + (requests[i].definition.empty() ? 2U : 0U)].push_back(
          i);
    for (auto& group : groups) {
      if (group.empty()) continue;
      // Ordered by name, as all statements that lock several rows do.
      std::ranges::sort(group, {}, [&](std::size_t i) { return requests[i].name; });
      create_or_retry([&] { allocate_group(requests, group, grants); });
    }
    for (std::size_t i = 0; i < requests.size(); ++i) {
      if (!grants[i].busy || requests[i].accepts_busy) continue;
      grants[i] = {};
      create_or_retry([&] { allocate_group(requests, {i}, grants); });
    }
    explain_empty_grants(requests, grants);
    return grants;
  }

  /// A database that cannot skip a locked row serves every counter by itself.
  std::string failure_domain(std::string_view name) const noexcept override {
    const bool by_itself = first_use_.done() && (statements_.mode == grant_mode::one_by_one ||
                                                 !skips_locked_.load(std::memory_order_relaxed));
    return by_itself ? std::string(name) : std::string();
  }

  block_grant allocate_in(join::transaction& transaction, const block_request& request) override {
    check_block_request(request);
    open();
    if (transaction.dialect() != dialect_)
      throw error(errc::invalid_argument, "the transaction is on another kind of database (" +
                                              std::string(sql::to_string(transaction.dialect())) +
                                              ") than the sequence (" +
                                              std::string(sql::to_string(dialect_)) + ")");
    const auto definition = complete_definition(request.definition);
    const auto parameters = parameters_of(request, definition);
    const auto& texts = statements_for(request);
    const auto& grant = request.cycle ? texts.grant_one_cycling : texts.grant_one;
    auto rows = with_table_hint([&] { return transaction.execute(grant, parameters).rows; });
    if (grant.results.empty()) {
      // MySQL returns no rows. The transaction has locked the row, and FOR UPDATE reads its current
      // version instead of that of an older snapshot.
      const auto& read = statements_.read_granted;
      rows = transaction
                 .execute({.text = read.text + read.row + read.tail + " FOR UPDATE",
                           .parameters = read.columns,
                           .results = read.results},
                          std::span(parameters).first(1))
                 .rows;
    }
    auto granted = rows.empty() ? block_grant{} : grant_of(rows, 0);
    if (!granted.block.has_next() && checks_definition(request)) {
      const auto stored =
          transaction.execute(statements_.definition, std::span(parameters).first(1)).rows;
      check_definition(request.name, definition_in(stored), definition);
    }
    return granted;
  }

  std::optional<counter_state> peek(std::string_view name) override {
    check_sequence_name(name);
    return with_table_hint([&] { return read_counter(*reader(), name); });
  }

  counter_state ensure_at_least(std::string_view name, std::int64_t ordinal) override {
    check_sequence_name(name);
    check_ordinal(ordinal);
    const auto connection = writer();
    const sql::parameter parameters[]{name, ordinal};
    return with_table_hint([&] {
      create_or_retry([&] { connection->execute(statements_.ensure_at_least, parameters); });
      return read_counter(*connection, name).value_or(counter_state{});
    });
  }

  bool reset(std::string_view name, std::int64_t ordinal, counter_state expected) override {
    check_sequence_name(name);
    check_ordinal(ordinal);
    const sql::parameter parameters[]{ordinal, name, expected.last, expected.epoch};
    return with_table_hint(
        [&] { return writer()->execute(statements_.reset, parameters).affected > 0; });
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
    const auto rows =
        with_table_hint([&] { return reader()->execute(statements_.list, parameters).rows; });
    std::vector<named_counter> counters;
    counters.reserve(rows.size());
    for (std::size_t i = 0; i < rows.size(); ++i)
      counters.push_back(
          {.name = text_of(rows.at(i, 0)),
           .state = {.last = integer_of(rows.at(i, 1)), .epoch = integer_of(rows.at(i, 2))}});
    return counters;
  }

  std::string complete_definition(std::string_view definition) const override {
    if (definition.empty()) return {};
    std::string complete(definition);
    if (options_.failover_skip != 0)
      complete += " failover_skip=" + std::to_string(options_.failover_skip);
    return complete;
  }

  std::optional<std::string> definition(std::string_view name) override {
    check_sequence_name(name);
    const auto connection = reader();  // before statements_ is read, which the first use sets
    if (!statements_.defined) return std::nullopt;
    auto stored = with_table_hint([&] { return read_definition_of(*connection, name); });
    return stored.empty() ? std::nullopt : std::optional(std::move(stored));
  }

  bool redefine(std::string_view name, std::string_view definition, std::int64_t ordinal,
                counter_state expected, std::string_view expected_definition) override {
    check_sequence_name(name);
    if (ordinal < expected.last)
      throw error(errc::invalid_argument, "a new definition cannot set the counter back");
    const auto connection = writer();
    if (!statements_.defined)
      throw error(errc::unsupported_type,
                  "the table of sequences has no column DEFINITION; run: holdfast schema upgrade");
    const auto complete = complete_definition(definition);
    const sql::parameter parameters[]{
        std::string_view(complete), ordinal, name, expected.last, expected.epoch,
        expected_definition};
    const bool fenced = definition_field(expected_definition, "failover_skip").has_value();
    const auto& change = fenced ? statements_.redefine_fenced : statements_.redefine;
    return connection->execute(change, parameters).affected > 0;
  }

  std::vector<std::string> missing_objects() override {
    const auto connection = writer();
    const sql::table_need need{
        .table = table_name(options_),
        .columns = {"NAME", "LAST_SEQ", "GRANTED", "LIMIT_SEQ", "EPOCH", "INCARNATION"},
        .privileges = {"INSERT", "UPDATE"}};
    const auto lack = sql::examine_table(*connection, need);
    const std::string advice = schema_command();
    if (!lack.exists)
      return {"there is no table " + need.table +
              "; create it (--create-schema), or see: " + advice};
    if (!lack.columns.empty())
      return {"the table " + need.table + " is not a table of sequences, it lacks " +
              sql::enumerated(lack.columns) + "; choose another --prefix, or see: " + advice};
    if (lack.privileges.empty()) return {};
    const auto grant = sql::grant_statement(*connection, dialect_, need);
    return {"the user lacks " + sql::enumerated(lack.privileges) + " on " + need.table + "; " +
            (grant.empty() ? "grant these privileges to the user" : "run: " + grant)};
  }

  std::vector<std::string> unsafe_settings() override {
    const auto connection = writer();  // before dialect_ is read, which the first use sets
    return unsafe_sql_settings(*connection, dialect_, options_.failover_skip != 0);
  }

 private:
  /// Runs an action. The driver does not know which table a statement is about; the hint of its
  /// error names that of the store of entries.
  template <class Action>
  std::invoke_result_t<Action&> with_table_hint(Action action) const {
    try {
      return action();
    } catch (const error& e) {
      if (e.code() != errc::missing_object) throw;
      throw error(errc::missing_object,
                  "the table " + table_name(options_) +
                      " is missing, or is not a table of sequences; create it with "
                      "--create-schema (in C++: .create_schema), or see: " +
                      schema_command(),
                  {.path = e.path(), .backend_code = e.backend_code()});
    }
  }
  [[nodiscard]] std::string schema_command() const {
    return "holdfast seq schema --dialect " + std::string(sql::to_string(dialect_));
  }

  [[nodiscard]] std::vector<sql::parameter> parameters_of(const block_request& request,
                                                          const std::string& definition) const {
    std::vector<sql::parameter> parameters{request.name, std::min(request.count, request.limit),
                                           request.limit};
    if (checks_definition(request)) parameters.emplace_back(std::string_view(definition));
    return parameters;
  }
  /// A request without a definition is not checked, and does not change that of the counter.
  [[nodiscard]] const statements& statements_for(const block_request& request) const {
    return request.definition.empty() ? undefined_statements_ : statements_;
  }

  [[nodiscard]] bool checks_definition(const block_request& request) const {
    return statements_.defined && !request.definition.empty();
  }
  /// The definition in the result of its statement; empty if the counter has none.
  [[nodiscard]] static std::string definition_in(const sql::rows& rows) {
    const auto* text = rows.empty() ? nullptr : std::get_if<std::string>(&rows.at(0, 0));
    return text == nullptr ? std::string() : *text;
  }
  [[nodiscard]] std::string read_definition_of(sql::connection& connection,
                                               std::string_view name) const {
    const sql::parameter parameters[]{name};
    return definition_in(connection.execute(statements_.definition, parameters).rows);
  }
  static void check_definition(std::string_view name, const std::string& stored,
                               const std::string& requested) {
    if (!stored.empty() && stored != requested) throw definition_mismatch(name, stored, requested);
  }

  /// A counter that grants nothing is at its limit, or has another definition.
  void explain_empty_grants(std::span<const block_request> requests,
                            std::vector<block_grant>& grants) {
    for (std::size_t i = 0; i < requests.size(); ++i) {
      auto& grant = grants[i];
      if (grant.busy || grant.problem || grant.block.has_next() || !checks_definition(requests[i]))
        continue;
      try {
        check_definition(requests[i].name, read_definition_of(*reader(), requests[i].name),
                         complete_definition(requests[i].definition));
      } catch (const error& mismatch) {
        if (requests.size() == 1) throw;
        grant.problem = mismatch;
      }
    }
  }

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
    if (statements_.mode == grant_mode::one_by_one ||
        (group.size() > 1 && !skips_locked_.load(std::memory_order_relaxed))) {
      // The others are requested alone, and do not wait for this one.
      for (const std::size_t i : group) grants[i].busy = i != first;
      if (statements_.mode == grant_mode::one_by_one)
        grant_one(*connection, requests[first], grants[first]);
      else grant_batch(*connection, requests, {first}, grants);
    } else if (group.size() == 1 && dialect_ == dialect_id::postgresql) {
      grant_one(*connection, requests[first], grants[first]);
    } else {
      grant_batch(*connection, requests, group, grants);
    }
    // After the commit: then no grant that is used can be in a file that was replaced before it.
    if (replaced_file(*connection))
      throw error(errc::tampered,
                  "the file of the sequences was replaced or deleted while it was open, so its "
                  "counters are not those that other processes use; raise the counters in the new "
                  "file above every id in use (holdfast seq ensure), and start this process again");
  }

  /// Grants several blocks with one commit. With more than one request, counters that are locked or
  /// do not exist are left out (see `statements`), and so are those at their limit: `busy`.
  void grant_batch(sql::connection& connection, std::span<const block_request> requests,
                   const std::vector<std::size_t>& group, std::vector<block_grant>& grants) {
    std::vector<std::string> definitions(requests.size());
    const auto& texts = statements_for(requests[group.front()]);
    std::vector<std::vector<sql::parameter>> columns(texts.grant.columns.size());
    std::map<std::string, std::size_t, std::less<>> index_of_name;
    const auto add_request = [&](std::size_t i) {
      definitions[i] = complete_definition(requests[i].definition);
      const auto parameters = parameters_of(requests[i], definitions[i]);
      for (std::size_t column = 0; column < columns.size(); ++column)
        columns[column].push_back(parameters[column]);
    };
    for (const std::size_t i : group) index_of_name.emplace(requests[i].name, i);
    const auto index_of = [&](const std::string& name) {
      const auto it = index_of_name.find(name);
      if (it == index_of_name.end())
        throw error(errc::malformed,
                    "the database granted a block to a counter that was not requested; check the "
                    "triggers and collations of the table");
      return it->second;
    };
    const auto& grant = requests[group.front()].cycle ? texts.grant_cycling : texts.grant;
    const bool several = group.size() > 1;
    sql::rows rows;
    if (several && !statements_.lock_free.text.empty()) {
      in_transaction(connection, [&] {
        for (const std::size_t i : lock_free_counters(connection, requests, group, index_of))
          add_request(i);
        if (columns.front().empty()) return;
        rows = connection.batch(grant, columns, {}).rows;
        if (statements_.mode == grant_mode::batch_then_read)
          rows = connection.batch(statements_.read_granted, std::span(columns).first(1), {}).rows;
      });
    } else {
      for (const std::size_t i : group) add_request(i);
      if (statements_.mode == grant_mode::batch) {
        rows = connection.batch(grant, columns, {}).rows;
      } else {
        in_transaction(connection, [&] {
          connection.batch(grant, columns, {});
          rows = connection.batch(statements_.read_granted, std::span(columns).first(1), {}).rows;
        });
      }
    }
    const bool leaves_out = several && dialect_ != dialect_id::sqlite;
    for (const std::size_t i : group) grants[i].busy = leaves_out;
    // The rows come in any order. An exhausted counter has no row, or a row with nothing granted.
    for (std::size_t row = 0; row < rows.size(); ++row) {
      auto& granted = grants[index_of(text_of(rows.at(row, 0)))];
      granted = grant_of(rows, row);
      remember_address(text_of(rows.at(row, 0)), granted, rows, row);
    }
  }

  /// Locks the counters of a batch that no other transaction has locked, and returns their indices.
  /// If the server is too old for that, counters are requested alone from now on.
  template <class IndexOf>
  [[nodiscard]] std::vector<std::size_t> lock_free_counters(sql::connection& connection,
                                                            std::span<const block_request> requests,
                                                            const std::vector<std::size_t>& group,
                                                            const IndexOf& index_of) {
    std::vector<std::vector<sql::parameter>> names(1);
    for (const std::size_t i : group) names.front().emplace_back(requests[i].name);
    std::vector<std::size_t> unlocked;
    try {
      const auto rows = connection.batch(statements_.lock_free, names, {}).rows;
      for (std::size_t row = 0; row < rows.size(); ++row)
        unlocked.push_back(index_of(text_of(rows.at(row, 0))));
    } catch (const error& e) {
      if (e.code() != errc::grammar) throw;
      skips_locked_.store(false, std::memory_order_relaxed);
    }
    std::ranges::sort(unlocked, {}, [&](std::size_t i) { return requests[i].name; });
    return unlocked;
  }

  /// One round trip on MySQL. Returns false if the dialect has no such statement, or if the counter
  /// is at its limit or near it.
  [[nodiscard]] bool grant_by_insert_id(sql::connection& connection, const block_request& request,
                                        block_grant& grant) const {
    const auto& texts = statements_for(request);
    if (texts.grant_by_insert_id.text.empty() || !has_insert_id_.load(std::memory_order_relaxed))
      return false;
    const std::int64_t count = std::min(request.count, request.limit);
    const auto definition = complete_definition(request.definition);
    std::vector<sql::parameter> parameters{request.name, count, request.limit};
    if (texts.defined) parameters.emplace_back(std::string_view(definition));
    parameters.insert(parameters.end(), {request.limit, count});
    if (texts.defined) parameters.emplace_back(std::string_view(definition));
    parameters.emplace_back(count);
    const auto result = connection.execute(texts.grant_by_insert_id, parameters);
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

  void grant_one(sql::connection& connection, const block_request& request, block_grant& grant) {
    const auto definition = complete_definition(request.definition);
    const auto& texts = statements_for(request);
    const auto& statement = request.cycle ? texts.grant_one_cycling : texts.grant_one;
    auto parameters = parameters_of(request, definition);
    sql::rows rows;
    if (const auto address = request.cycle ? std::string() : addresses_.find(request.name);
        !address.empty()) {
      parameters.emplace_back(std::string_view(address));
      rows = connection.execute(texts.grant_at_address, parameters).rows;
      parameters.pop_back();
    }
    if (rows.empty()) rows = connection.execute(statement, parameters).rows;
    if (rows.empty()) return;
    grant = grant_of(rows, 0);
    remember_address(request.name, grant, rows, 0);
  }

  /// Only PostgreSQL returns an address.
  void remember_address(std::string_view name, const block_grant& grant, const sql::rows& rows,
                        std::size_t row) {
    if (!statements_.grant_at_address.text.empty() && grant.block.has_next())
      addresses_.remember(name, grant.block, text_of(rows.at(row, 4)));
  }

  const std::shared_ptr<sql::context> context_;
  const sequence_store_options options_;
  const fork_detector fork_detector_{};
  first_use first_use_{};
  dialect_id dialect_ = dialect_id::unknown;  // set at the first use
  statements statements_{};                   // set at the first use
  statements undefined_statements_{};         // for requests without a definition
  mutable std::atomic<bool> has_insert_id_{true};
  std::atomic<bool> skips_locked_{true};  // MariaDB before 10.6 cannot
  row_addresses addresses_{};
};

}  // namespace

std::shared_ptr<block_store> make_sql_block_store(std::shared_ptr<sql::context> context,
                                                  const sequence_store_options& options) {
  auto store = std::make_shared<sql_block_store>(std::move(context), options);
  store->open_file();
  return store;
}

}  // namespace HOLDFAST_NAMESPACE::detail::sequence
