#include "store/sql/store.hpp"

#include <holdfast/store/sealed.hpp>

#include "base/duration_limit.hpp"
#include "base/utf8.hpp"
#include "sql/dialect.hpp"
#include "sql/retry.hpp"
#include "sql/schema_version.hpp"
#include "store/checks.hpp"
#include "store/doctor/probe.hpp"
#include "store/java_peer.hpp"
#include "store/sql/first_contact.hpp"
#include "store/sql/put_combiner.hpp"
#include "store/sql/realm_statements.hpp"
#include "store/sql/schema.hpp"

#include <algorithm>
#include <atomic>
#include <functional>
#include <limits>
#include <utility>

namespace HOLDFAST_NAMESPACE::detail::store {

namespace {

using namespace std::chrono_literals;

constexpr std::size_t max_page_entries = 10'000;
/// Connections that write beside the reserved one, where the server can commit several at once.
constexpr std::size_t extra_writers = 3;
/// A refused upsert is tried again after this time: the database may have been upgraded or
/// repaired.
constexpr auto native_refusal_duration = 60s;

/// The end of the microsecond of a version. Other programs store nanoseconds; all times within one
/// microsecond are the same version to us.
timestamp next_microsecond(timestamp time) { return time == timestamp::max() ? time : time + 1us; }

std::string path_of(const entry& e) { return e.name + "/" + e.key; }

/// A store on an SQL database. The differences between databases are in store_statements.
class sql_store final : public holdfast::store, public rewritable_store {
 public:
  sql_store(std::shared_ptr<sql::context> database, store_options options)
      : database_(std::move(database)),
        options_(std::move(options)),
        dialect_(database_->dialect()),
        statements_(dialect_, options_,
                    [this](const sql::statement& s, std::span<const sql::parameter> parameters) {
                      return read("store.columns", s, parameters);
                    }) {
    check_peer(dialect_, options_);
    if (options_.create_schema) create_schema();
    else check_versions();
    probe_at_start(*database_, options_);
  }

  void put(std::span<const entry> all_entries) override {
    const auto now = database_->options.clock->now();
    const timestamp horizon = skew_horizon(now, options_.max_skew);
    const auto entries = entries_to_write(all_entries, now, horizon);
    for (const entry* e : entries) {
      (void)statements_.for_realm(e->realm);
      if (options_.peer == holdfast::peer::java) check_for_java(*e);
      if (e->payload) check_payload(*e, *e->payload);
      check_dialect_limits(*e);
    }
    if (entries.empty()) return;
    try {
      puts_.put(entries, combining_limits());
    } catch (const error& e) {
      const auto unfilled =
          std::ranges::find_if(entries, [this](const entry* each) { return leaves_null(*each); });
      if (unfilled == entries.end() || !wants_a_payload(e)) throw;
      throw error(
          errc::invalid_argument,
          (*unfilled)->tombstone()
              ? "the table takes no tombstones; let PAYLOAD and PAYLOAD_CLASS be NULL"
              : "an empty payload or class is NULL to Oracle; let PAYLOAD and PAYLOAD_CLASS be "
                "NULL",
          {.path = (*unfilled)->name + "/" + (*unfilled)->key, .backend_code = e.backend_code()});
    }
  }

  std::optional<entry> find(place location, std::string_view key) override {
    check_name(location.name);
    check_key(key);
    const auto& statements = statements_.for_realm(location.realm);
    if (has_ignored_space(location.name) || has_ignored_space(key)) return std::nullopt;
    const sql::parameter parameters[]{location.name, key};
    auto rows = read("store.find", statements.find, parameters).rows;
    if (rows.empty()) return std::nullopt;
    auto result = read_entry(rows, 0, 0, location, key);
    if (!result) fail_unreadable(location, key);
    return result;
  }

  std::vector<std::optional<entry>> find_many(place location,
                                              std::span<const std::string> keys) override {
    check_name(location.name);
    for (const auto& key : keys) check_key(key);
    const auto& statements = statements_.for_realm(location.realm);
    if (statements.find_many.empty() || has_ignored_space(location.name))
      return holdfast::store::find_many(location, keys);
    std::vector<std::string_view> distinct(keys.begin(), keys.end());
    std::ranges::sort(distinct);
    distinct.erase(std::ranges::unique(distinct).begin(), distinct.end());
    std::vector<std::optional<entry>> rows(distinct.size());
    constexpr std::size_t largest = find_many_sizes.back();
    for (std::size_t first = 0; first < distinct.size(); first += largest) {
      const auto count = std::min(largest, distinct.size() - first);
      find_sorted(statements, location, std::span(distinct).subspan(first, count),
                  std::span(rows).subspan(first, count));
    }
    std::vector<std::optional<entry>> result;
    result.reserve(keys.size());
    for (const auto& key : keys) {
      auto& row = rows[static_cast<std::size_t>(
          std::ranges::lower_bound(distinct, std::string_view(key)) - distinct.begin())];
      result.push_back(keys.size() == distinct.size() ? std::move(row) : row);
    }
    return result;
  }

  entry_page find_all(place location, std::size_t limit, std::string_view after) override {
    check_name(location.name);
    const auto& statements = statements_.for_realm(location.realm);
    if (limit == 0) return {};
    limit = std::min(limit, max_page_entries);
    auto statement = after.empty() ? statements.find_first : statements.find_after;
    std::vector<sql::parameter> parameters{location.name};
    if (!after.empty()) parameters.emplace_back(after);
    // One row more than requested shows whether another page follows.
    if (parameters.size() < statement.parameters.size())
      parameters.emplace_back(static_cast<std::int64_t>(limit) + 1);
    else statement.most_rows = limit + 1;
    auto rows = read("store.find_all", statement, parameters).rows;
    entry_page page;
    const auto count = std::min(rows.size(), limit);
    page.entries.reserve(count);
    for (std::size_t i = 0; i < count; ++i) {
      const auto* key = std::get_if<std::string>(&rows.at(i, 0));
      auto e = key != nullptr ? read_entry(rows, i, 1, location, *key) : std::nullopt;
      if (e) page.entries.push_back(*std::move(e));
      else ++page.unreadable;
      if (i + 1 == count && rows.size() > limit && key != nullptr) page.next = *key;
    }
    unreadable_ += page.unreadable;
    return page;
  }

  bool erase(place location, std::string_view key, timestamp as_of) override {
    check_name(location.name);
    check_key(key);
    const auto& statements = statements_.for_realm(location.realm);
    if (has_ignored_space(location.name) || has_ignored_space(key)) return false;
    const sql::parameter parameters[]{location.name, key, as_of, next_microsecond(as_of)};
    const auto erase_row = [&] {
      return database_->pool.acquire_writer("store.erase")
          ->execute(statements.erase, parameters)
          .affected;
    };
    return with_retry(erase_row, when_in_doubt::give_up) > 0;
  }

  std::size_t expire(timestamp before, std::size_t limit) override {
    std::size_t removed = 0;
    std::optional<error> first_failure;
    // Connects once before the loop: a refused login fails here, not once for every tenant.
    if (limit > 0) with_retry([&] { (void)database_->pool.acquire_writer("store.expire"); });
    for (const auto& realm : statements_.realms()) {
      if (removed == limit) break;
      try {
        removed += expire_rows(statements_.for_realm(realm), before, limit - removed);
      } catch (const error& e) {
        // A transient failure concerns the whole database. A failure of one table must not keep the
        // other tables from being cleaned.
        if (e.transient() || e.in_doubt()) throw;
        if (!first_failure) first_failure = with_tenant(realm, e);
      }
    }
    // If rows were removed, report them. The caller calls again and then sees the failure.
    if (first_failure && removed == 0) throw error(*first_failure);
    return removed;
  }

  std::uint64_t count(place location) override {
    check_name(location.name);
    const sql::parameter parameters[]{location.name};
    const auto rows =
        read("store.count", statements_.for_realm(location.realm).count, parameters).rows;
    return static_cast<std::uint64_t>(std::get<std::int64_t>(rows.at(0, 0)));
  }

  expiry_profile expiring(place location, std::span<const timestamp> times) override {
    // A name with more rows is counted in part: such a question must not keep the database busy.
    constexpr std::int64_t most_rows = 200'000;
    check_name(location.name);
    check_expiry_times(times);
    const auto& statement = statements_.for_realm(location.realm).expiring;
    if (statement.text.empty() || times.empty()) return holdfast::store::expiring(location, times);
    // Unused parameters repeat the last time.
    std::vector<sql::parameter> parameters(max_expiry_times, times.back());
    std::ranges::copy(times, parameters.begin());
    parameters.emplace_back(location.name);
    parameters.emplace_back(most_rows);
    const auto rows = read("store.expiring", statement, parameters).rows;
    const auto count_at = [&](std::size_t column) {
      return static_cast<std::uint64_t>(std::get<std::int64_t>(rows.at(0, column)));
    };
    expiry_profile profile{.entries = count_at(0)};
    profile.at_least = profile.entries >= most_rows;
    for (std::size_t i = 0; i < times.size(); ++i) profile.counts.push_back(count_at(1 + i));
    return profile;
  }

  [[nodiscard]] holdfast::peer peer() const noexcept override { return options_.peer; }

  std::size_t rewrite(std::span<const rewriting> entries) override {
    if (entries.empty()) return 0;
    for (const auto& r : entries) check_payload(r.stored, r.payload);
    // Safe to repeat: a replaced payload does not match again. The caller then sees a lower count
    // and reads these entries again.
    return with_retry([&] {
      const auto connection = database_->pool.acquire_writer("store.rewrite");
      std::size_t replaced = 0;
      connection->begin();
      try {
        for (const auto& [stored, payload] : entries) {
          const sql::parameter parameters[]{
              payload_parameter(payload),     std::string_view(stored.name),
              std::string_view(stored.key),   stored.as_of,
              next_microsecond(stored.as_of), payload_parameter(stored)};
          replaced +=
              connection->execute(statements_.for_realm(stored.realm).rewrite, parameters).affected;
        }
        connection->commit();
      } catch (...) {
        connection->rollback();
        throw;
      }
      return replaced;
    });
  }

  std::optional<std::string> name_after(std::string_view name, std::string_view realm) override {
    const sql::parameter parameters[]{name};
    auto rows = read("store.name_after", statements_.for_realm(realm).name_after, parameters).rows;
    if (rows.empty()) return std::nullopt;
    auto* next = std::get_if<std::string>(&rows.at(0, 0));
    return next != nullptr ? std::optional(std::move(*next)) : std::nullopt;
  }

  store_health health() noexcept override {
    store_health result;
    try {
      result.native_upsert = native();
      result.abandoned = abandoned_.load();
      result.unreadable = unreadable_.load();
      result.retried = retried_.load();
      query_health(result);
    } catch (const std::exception& e) {
      try {
        result.problem = e.what();
      } catch (...) {  // NOLINT(bugprone-empty-catch)
        // Out of memory: `available` is false, without a reason.
      }
    }
    return result;
  }

 private:
  using when_in_doubt = sql::when_in_doubt;

  /// Repeats an operation after transient failures, with growing random pauses, for at most the
  /// time that one statement may take.
  template <class Operation>
  auto with_retry(Operation operation, when_in_doubt policy = when_in_doubt::retry)
      -> decltype(operation()) {
    const sql::retry_limits limits{.attempts = 6,
                                   .time = database_->options.statement_timeout,
                                   .shortest_pause = 1ms,
                                   .first_pause = 10ms,
                                   .longest_pause = 160ms};
    return sql::with_retries(limits, std::move(operation), [&](const error& problem) {
      if (!sql::is_retryable(problem)) return false;
      if (problem.in_doubt() && policy == when_in_doubt::give_up) return false;
      ++retried_;
      return true;
    });
  }

  sql::outcome read(const char* operation, const sql::statement& s,
                    std::span<const sql::parameter> parameters) {
    return with_retry(
        [&] { return database_->pool.acquire_reader(operation)->execute(s, parameters); });
  }

  /// Finds the rows of keys that are sorted and distinct, with one statement.
  void find_sorted(const store_statements& statements, place location,
                   std::span<const std::string_view> keys,
                   std::span<std::optional<entry>> results) {
    if (keys.size() == 1) {
      results.front() = find(location, keys.front());
      return;
    }
    const auto size = *std::ranges::lower_bound(find_many_sizes, keys.size());
    // Unused parameters repeat the last key.
    std::vector<sql::parameter> parameters(1 + size, keys.back());
    parameters.front() = location.name;
    std::ranges::copy(keys, parameters.begin() + 1);
    sql::rows rows;
    try {
      rows = read("store.find_many", statements.find_many.at(size), parameters).rows;
    } catch (const error& e) {
      if (e.code() != errc::too_large) throw;
      const auto half = keys.size() / 2;
      find_sorted(statements, location, keys.first(half), results.first(half));
      find_sorted(statements, location, keys.subspan(half), results.subspan(half));
      return;
    }
    bool has_other_keys = false;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const auto* key = std::get_if<std::string>(&rows.at(i, 0));
      const std::string_view text = key != nullptr ? std::string_view(*key) : std::string_view();
      const auto position = std::ranges::lower_bound(keys, text);
      if (position == keys.end() || *position != text) {
        has_other_keys = true;
        continue;
      }
      auto& row = results[static_cast<std::size_t>(position - keys.begin())];
      row = read_entry(rows, i, 1, location, text);
      if (!row) fail_unreadable(location, text);
    }
    // The database takes other texts for equal, for example because it ignores case. Then only the
    // database knows which row belongs to which key.
    for (std::size_t i = 0; has_other_keys && i < keys.size(); ++i) {
      if (!results[i]) results[i] = find(location, keys[i]);
    }
  }

  void create_schema() {
    with_retry([&] {
      const auto connection = database_->pool.acquire_writer("store.create_schema");
      for (const auto& set : schema_sets(options_))
        (void)sql::create_schema(*connection, dialect_, set);
    });
  }

  /// Throws if the tables have a version that this code does not know.
  void check_versions() {
    const auto sets = schema_sets(options_);
    with_retry([&] {
      (void)sql::read_schema_versions(*database_->pool.acquire_reader("store.schema_version"),
                                      dialect_, sets);
    });
  }

  /// Adds the tenant to the message of a failure in its table.
  static error with_tenant(const std::string& realm, const error& e) {
    if (realm.empty()) return e;
    return {e.code(),
            "tenant " + realm + ": " + e.message(),
            {.path = e.path(),
             .backend_code = e.backend_code(),
             .transient = e.transient(),
             .in_doubt = e.in_doubt()}};
  }

  /// Queries the table of one realm for each call, since there may be hundreds. A broken table is
  /// queried again until it is repaired; the store is available if the next realm answers.
  void query_health(store_health& result) {
    const auto query = [this](const std::string& realm) {
      const sql::parameter parameters[]{std::string_view("holdfast"), std::string_view("health")};
      (void)database_->pool.acquire_reader("store.health")
          ->execute(statements_.for_realm(realm).find, parameters);
    };
    const auto realms = statements_.realms();
    const auto turn = next_health_realm_.load();
    try {
      query(realms[turn % realms.size()]);
      ++next_health_realm_;
    } catch (const error& e) {
      result.problem = with_tenant(realms[turn % realms.size()], e).what();
      if (realms.size() == 1 || e.transient()) return;
      query(realms[(turn + 1) % realms.size()]);
    }
    result.available = true;
  }

  std::size_t expire_rows(const store_statements& statements, timestamp before, std::size_t limit) {
    std::size_t removed = 0;
    while (removed < limit) {
      const std::size_t step = std::min(limit - removed, expire_step_.load());
      const sql::parameter parameters[]{before, static_cast<std::int64_t>(step)};
      const auto remove_step = [&] {
        const auto connection = database_->pool.acquire_writer("store.expire");
        const auto start = std::chrono::steady_clock::now();
        const auto count = statements.expired.text.empty()
                               ? connection->execute(statements.expire, parameters).affected
                               : expire_one_by_one(*connection, statements, before, step);
        adapt_expire_step(step, std::chrono::steady_clock::now() - start);
        return count;
      };
      // Not repeated if in doubt: a second attempt would find no rows and report 0.
      const auto count = with_retry(remove_step, when_in_doubt::give_up);
      removed += count;
      if (count < step) break;
    }
    return removed;
  }

  /// For a dialect without a known syntax for row limits: selects expired rows, then deletes each
  /// if it is still expired.
  static std::uint64_t expire_one_by_one(sql::connection& connection,
                                         const store_statements& statements, timestamp before,
                                         std::size_t limit) {
    auto select = statements.expired;
    select.most_rows = limit;
    const auto rows =
        connection.execute(select, std::initializer_list<sql::parameter>{before}).rows;
    std::uint64_t removed = 0;
    for (std::size_t i = 0; i < std::min(rows.size(), limit); ++i) {
      const auto* name = std::get_if<std::string>(&rows.at(i, 0));
      const auto* key = std::get_if<std::string>(&rows.at(i, 1));
      if (name == nullptr || key == nullptr) continue;
      const sql::parameter row[]{std::string_view(*name), std::string_view(*key), before};
      removed += connection.execute(statements.expire, row).affected;
    }
    return removed;
  }

  /// Other writers wait for a step, so a step should take only a few milliseconds.
  void adapt_expire_step(std::size_t step, std::chrono::steady_clock::duration duration) {
    if (duration > 10ms) expire_step_ = std::max<std::size_t>(step / 2, 20);
    else if (duration < 3ms && step == expire_step_)
      expire_step_ = std::min<std::size_t>(step * 2, 1000);
  }

  /// SQL Server ignores trailing spaces when it compares text, so such names and keys are never
  /// stored.
  [[nodiscard]] bool has_ignored_space(std::string_view text) const {
    return dialect_ == sql::dialect_id::sqlserver && text.ends_with(' ');
  }

  void check_dialect_limits(const entry& e) const {
    if (has_ignored_space(e.name) || has_ignored_space(e.key))
      throw error(
          errc::invalid_argument,
          "SQL Server ignores trailing spaces; choose a name and a key that do not end with "
          "a space",
          {.path = path_of(e)});
    if (dialect_ == sql::dialect_id::oracle && e.payload && e.payload->empty() &&
        e.payload_class.empty())
      throw error(errc::invalid_argument,
                  "Oracle stores an empty text as NULL; give an empty payload a class, so that it "
                  "differs from a tombstone",
                  {.path = path_of(e)});
  }

  [[nodiscard]] bool leaves_null(const entry& e) const {
    return !e.payload ||
           (dialect_ == sql::dialect_id::oracle && (e.payload->empty() || e.payload_class.empty()));
  }

  /// Whether PAYLOAD or PAYLOAD_CLASS, which are NULL in a tombstone, must not be NULL. An unknown
  /// column counts as one of them: some drivers do not name it.
  static bool wants_a_payload(const error& e) {
    const auto& column = e.not_null_column();
    return column &&
           (column->empty() || column->starts_with("PAYLOAD") || column->starts_with("payload"));
  }

  void check_payload(const entry& e, std::string_view payload) const {
    if (options_.payload == payload_column::bytes) return;
    if (payload.find('\0') != std::string_view::npos) {
      throw error(errc::invalid_argument,
                  "the payload contains a NUL byte, which a text column cannot hold; choose "
                  "payload_column::bytes (--payload-column bytes)",
                  {.path = path_of(e)});
    }
    // PostgreSQL and MariaDB refuse it, SQLite would store it, and H2 would change it.
    if (!is_utf8(payload)) {
      throw error(errc::ill_formed_text,
                  "the payload is not well-formed UTF-8, which a text column cannot hold; choose "
                  "payload_column::bytes (--payload-column bytes)",
                  {.path = path_of(e)});
    }
  }

  [[nodiscard]] sql::parameter payload_parameter(const std::string& payload) const {
    if (options_.payload == payload_column::bytes) return std::as_bytes(std::span(payload));
    return std::string_view(payload);
  }
  [[nodiscard]] sql::parameter payload_parameter(const entry& e) const {
    return e.payload ? payload_parameter(*e.payload) : sql::parameter();
  }
  static sql::parameter class_parameter(const entry& e) {
    if (!e.payload) return {};
    return std::string_view(e.payload_class);
  }

  /// On other databases, one connection writes: SQLite has a single writer, and what the others
  /// gain was not measured.
  [[nodiscard]] put_combiner::put_limits combining_limits() const {
    const bool parallel =
        dialect_ == sql::dialect_id::postgresql || detail::sql::is_mysql(dialect_);
    return {.extra_writers = parallel ? extra_writers : 0,
            .powers_of_two = detail::sql::is_mysql(dialect_) || dialect_ == sql::dialect_id::h2,
            .longest_wait = limit_duration(database_->options.pool.acquire_timeout)};
  }

  /// Safe to repeat even if the first attempt is in doubt: an entry never replaces a newer one.
  void write_puts(sql::connection& connection, std::span<const put_combiner::put_entries> puts) {
    const timestamp horizon = skew_horizon(database_->options.clock->now(), options_.max_skew);
    if (puts.size() == 1) return write_entries(connection, puts.front(), horizon);
    std::vector<const entry*> all;
    for (const auto& each : puts) all.insert(all.end(), each.begin(), each.end());
    keep_newest(all, horizon);
    write_entries(connection, all, horizon);
  }

  void write_entries(sql::connection& connection, std::span<const entry* const> entries,
                     timestamp horizon) {
    if (native()) {
      try {
        return put_native(connection, entries, horizon);
      } catch (const error& e) {
        if (e.code() != errc::grammar) throw;
        suspend_native(e);
      }
    }
    // Not in a transaction: a failed insert would abort it on PostgreSQL.
    for (const entry* e : entries) insert_or_update(connection, *e, horizon);
  }

  /// Writes all entries atomically, in one transaction if they need more than one statement.
  void put_native(sql::connection& connection, std::span<const entry* const> entries,
                  timestamp horizon) {
    const auto& upsert = statements_.any_realm().upsert;
    const std::vector<sql::parameter> common(upsert.common.size(), horizon);
    std::vector<std::vector<sql::parameter>> columns(upsert.columns.size());
    bool in_transaction = false;
    try {
      while (!entries.empty()) {
        const auto part = entries.first(statement_size(entries));
        entries = entries.subspan(part.size());
        if (!entries.empty() && !in_transaction) {
          connection.begin();
          in_transaction = true;
        }
        fill_columns(columns, part);
        connection.batch(statements_.for_realm(part.front()->realm).upsert, columns, common);
      }
      if (in_transaction) connection.commit();
    } catch (...) {
      if (in_transaction) connection.rollback();
      throw;
    }
  }

  void fill_columns(std::vector<std::vector<sql::parameter>>& columns,
                    std::span<const entry* const> entries) const {
    for (auto& column : columns) {
      column.clear();
      column.reserve(entries.size());
    }
    for (const entry* e : entries) {
      columns[0].emplace_back(std::string_view(e->name));
      columns[1].emplace_back(std::string_view(e->key));
      columns[2].emplace_back(e->as_of);
      columns[3].emplace_back(e->expire_on);
      columns[4].push_back(payload_parameter(*e));
      columns[5].push_back(class_parameter(*e));
    }
  }

  /// Returns how many of the entries go into the next statement: those of one realm, within the
  /// limits, at least one.
  static std::size_t statement_size(std::span<const entry* const> entries) {
    std::size_t bytes = 0;
    std::size_t count = 0;
    while (count < entries.size() && count < max_statement_rows) {
      const entry& e = *entries[count];
      if (e.realm != entries.front()->realm) break;
      const std::size_t size = statement_bytes(e);
      if (count > 0 && bytes + size > max_statement_bytes) break;
      bytes += size;
      ++count;
    }
    return count;
  }

  /// The fallback without a native upsert: insert; if the row exists, update it unless it is newer.
  void insert_or_update(sql::connection& connection, const entry& e, timestamp horizon) {
    const auto& statements = statements_.for_realm(e.realm);
    const std::string_view name = e.name;
    const std::string_view key = e.key;
    const sql::parameter insert_parameters[]{
        name, key, e.as_of, e.expire_on, payload_parameter(e), class_parameter(e)};
    const sql::parameter update_parameters[]{
        e.as_of, e.expire_on, payload_parameter(e),      class_parameter(e),
        name,    key,         next_microsecond(e.as_of), horizon};
    const sql::parameter find_parameters[]{name, key};
    for (int round = 0; round < 2; ++round) {
      try {
        connection.execute(statements.insert, insert_parameters);
        return;
      } catch (const error& failure) {
        if (failure.code() != errc::duplicate) throw;
      }
      if (connection.execute(statements.update, update_parameters).affected > 0) return;
      // Nothing was updated. Either the row is not older: done. Or the row was deleted meanwhile,
      // and perhaps an older one was inserted: try once more.
      const auto rows = connection.execute(statements.find, find_parameters).rows;
      const auto* stored = rows.empty() ? nullptr : std::get_if<timestamp>(&rows.at(0, 0));
      if (stored != nullptr && *stored >= e.as_of && *stored <= horizon) return;
    }
    ++abandoned_;
    database_->warn("gave up writing an entry of '" + e.name +
                    "': other processes kept deleting its row; the entry is written again after "
                    "the next successful call");
  }

  [[nodiscard]] bool native() const {
    return statements_.any_realm().native &&
           database_->options.clock->steady().time_since_epoch().count() >= native_again_.load();
  }
  void suspend_native(const error& reason) {
    native_again_ =
        (database_->options.clock->steady() + native_refusal_duration).time_since_epoch().count();
    database_->warn("the database refused the native upsert (" + reason.message() +
                    "); falling back to insert and update for a minute");
  }

  /// Reads an entry from a row, starting at `first_column`. Returns nothing if a value is not of
  /// the type of its column.
  std::optional<entry> read_entry(sql::rows& rows, std::size_t row, std::size_t first_column,
                                  place location, std::string_view key) const {
    const auto* as_of = std::get_if<timestamp>(&rows.at(row, first_column));
    const auto* expire_on = std::get_if<timestamp>(&rows.at(row, first_column + 1));
    if (as_of == nullptr || expire_on == nullptr) return std::nullopt;
    std::optional<entry> result(std::in_place);
    result->name = location.name;
    result->key = key;
    result->as_of = *as_of;
    result->expire_on = *expire_on;
    result->realm = location.realm;
    if (auto* payload = std::get_if<std::string>(&rows.at(row, first_column + 2)))
      result->payload = std::move(*payload);
    if (auto* payload_class = std::get_if<std::string>(&rows.at(row, first_column + 3)))
      result->payload_class = std::move(*payload_class);
    // Oracle stores an empty text as NULL. A tombstone has no class.
    if (dialect_ == sql::dialect_id::oracle && !result->payload && !result->payload_class.empty())
      result->payload.emplace();
    return result;
  }

  [[noreturn]] void fail_unreadable(place location, std::string_view key) {
    ++unreadable_;
    throw error(errc::malformed,
                "the stored entry cannot be read: a time or a payload is not what its column "
                "should hold; erase or repair the row",
                {.path = std::string(location.name) + "/" + std::string(key)});
  }

  std::shared_ptr<sql::context> database_;
  store_options options_;
  sql::dialect_id dialect_;
  realm_statements statements_;
  // The steady time at which the native upsert is tried again
  std::atomic<std::int64_t> native_again_{std::numeric_limits<std::int64_t>::min()};
  std::atomic<std::size_t> expire_step_{100};  // rows
  std::atomic<std::size_t> next_health_realm_{0};
  std::atomic<std::uint64_t> abandoned_{0};
  std::atomic<std::uint64_t> unreadable_{0};
  std::atomic<std::uint64_t> retried_{0};
  put_combiner puts_{
      database_->pool,
      {.write =
           [this](sql::connection& connection, std::span<const put_combiner::put_entries> puts) {
             write_puts(connection, puts);
           },
       .retry = [this](const std::function<void()>& attempt) { with_retry(std::cref(attempt)); }}};
};

}  // namespace

std::shared_ptr<holdfast::store> make_sql_store(std::shared_ptr<sql::context> database,
                                                store_options options) {
  const auto dialect = database->options.expected_dialect;
  check_max_skew(options.max_skew);
  check_zone(dialect, options.zone);
  check_peer(dialect, options);
  if (options.start == start_mode::require)
    return std::make_shared<sql_store>(std::move(database), std::move(options));
  return make_first_contact_store(
      {.open = [database, options] { return std::make_shared<sql_store>(database, options); },
       .peer = options.peer,
       .log = database->options.log,
       .name = options.prefix,
       .is_file = database->is_file()});
}

}  // namespace HOLDFAST_NAMESPACE::detail::store
