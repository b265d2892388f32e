#include "sequence/sql_block_store.hpp"

#include <holdfast/join/transaction.hpp>

#include "sequence/sql_statements.hpp"
#include "sql/database.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>
#include <numeric>
#include <thread>
#include <utility>

namespace HOLDFAST_NAMESPACE {

namespace {

using detail::many_blocks;
using sql::dialect_id;

std::int64_t integer(const sql::value& from) {
  if (const auto* number = std::get_if<std::int64_t>(&from)) return *number;
  throw error(errc::malformed, "a row of the sequences cannot be read: a counter is no number");
}

const std::string& text(const sql::value& from) {
  if (const auto* name = std::get_if<std::string>(&from)) return *name;
  throw error(errc::malformed, "a row of the sequences cannot be read: it has no name");
}

/// A counter was made by two at once, and the other was first: asking again finds it.
template <class F>
auto again_when_lost(F work) -> decltype(work()) {
  try {
    return work();
  } catch (const error& e) {
    if (e.code() != errc::duplicate) throw;
    throw error(errc::unavailable, "another process made the counter at the same moment; try again",
                {.backend_code = e.backend_code(), .transient = true});
  }
}

class sql_block_store final : public block_store {
 public:
  sql_block_store(std::shared_ptr<database::state> on, dialect_id dialect, sequence_store_options options)
      : on_(std::move(on)), dialect_(dialect), options_(std::move(options)), say_(detail::make_sequence_statements(dialect_, options_)) {}

  void create_schema() {
    const auto at = on_->pool->writer();
    for (const auto& each : sequence_schema(dialect_, options_)) make(*at, each);
  }

  std::vector<block_grant> allocate(std::span<const block_request> requests) override {
    for (const auto& each : requests) check_block_request(each);
    std::vector<block_grant> granted(requests.size());
    // In the order of names: two processes that want the same counters wait for each other, and do not deadlock.
    std::vector<std::size_t> plain;
    std::vector<std::size_t> cycling;
    for (std::size_t i = 0; i < requests.size(); ++i) (requests[i].cycle ? cycling : plain).push_back(i);
    for (auto* group : {&plain, &cycling}) {
      if (group->empty()) continue;
      std::ranges::sort(*group, {}, [&](std::size_t i) { return requests[i].name; });
      again_when_lost([&] { allocate_group(requests, *group, granted); });
    }
    return granted;
  }

  block_grant allocate_in(join::transaction& joined, const block_request& request) override {
    check_block_request(request);
    if (joined.dialect() != dialect_)
      throw error(errc::invalid_argument, "the transaction is on another kind of database (" +
                                              std::string(sql::to_string(joined.dialect())) + ") than the sequence (" +
                                              std::string(sql::to_string(dialect_)) + ")");
    const sql::parameter parameters[]{request.name, std::min(request.count, request.limit), request.limit};
    const auto& grant = request.cycle ? say_.grant_one_cycling : say_.grant_one;
    sql::rows rows;
    if (grant.results.empty()) {  // MySQL: the row is ours until the end of the transaction. FOR UPDATE: not as an older snapshot has it
      joined.execute(grant, parameters);
      const sql::statement look{.text = say_.look.text + say_.look.row + say_.look.tail + " FOR UPDATE",
                                .parameters = say_.look.columns,
                                .results = say_.look.results};
      rows = joined.execute(look, {parameters, 1}).rows;
    } else {
      rows = joined.execute(grant, parameters).rows;
    }
    if (rows.empty()) return {};
    return grant_of(rows, 0);
  }

  std::optional<counter_state> peek(std::string_view name) override {
    check_sequence_name(name);
    const auto at = on_->pool->reader();
    return look(*at, name);
  }

  counter_state ensure_at_least(std::string_view name, std::int64_t ordinal) override {
    check_sequence_name(name);
    if (ordinal < 0) throw error(errc::invalid_argument, "a counter cannot be below 0");
    const auto at = writing();
    const sql::parameter parameters[]{name, ordinal};
    again_when_lost([&] { at->execute(say_.ensure, parameters); });
    return look(*at, name).value_or(counter_state{});
  }

  bool reset(std::string_view name, std::int64_t ordinal, counter_state expected) override {
    check_sequence_name(name);
    if (ordinal < 0) throw error(errc::invalid_argument, "a counter cannot be below 0");
    const sql::parameter parameters[]{ordinal, name, expected.last, expected.epoch};
    return writing()->execute(say_.reset, parameters).affected > 0;
  }

  bool give_back(std::string_view name, std::int64_t last_used, counter_state granted) override {
    check_sequence_name(name);
    if (last_used < 0 || last_used > granted.last) throw error(errc::invalid_argument, "what is given back must have been granted");
    const sql::parameter parameters[]{last_used, name, granted.last, granted.epoch};
    return writing()->execute(say_.give_back, parameters).affected > 0;
  }

  std::vector<named_counter> list(std::size_t limit, std::string_view after) override {
    const sql::parameter parameters[]{after, static_cast<std::int64_t>(limit)};
    const auto rows = on_->pool->reader()->execute(say_.list, parameters).rows;
    std::vector<named_counter> found;
    found.reserve(rows.size());
    for (std::size_t i = 0; i < rows.size(); ++i)
      found.push_back({.name = text(rows.at(i, 0)), .state = {.last = integer(rows.at(i, 1)), .epoch = integer(rows.at(i, 2))}});
    return found;
  }

  std::vector<std::string> unsafe_settings() override {
    const auto at = writing();
    return detail::unsafe_settings_of(*at, dialect_, options_.failover_skip != 0);
  }

  std::shared_ptr<block_store> for_child() const override {
    if (dialect_ == dialect_id::sqlite) {
      throw error(errc::invalid_argument,
                  "a child process cannot use the SQLite file that its parent has open (SQLite's locks do not survive fork); fork first "
                  "and open then, or exec");
    }
    auto own = std::make_shared<database::state>(on_->options);
    own->pool = std::make_unique<sql::pool>(on_->pool->factory(), own->options.pool, own->log);
    own->dialect = dialect_;
    return std::make_shared<sql_block_store>(std::move(own), dialect_, options_);
  }

 private:
  /// Two processes that start together both find no table, and one of them fails: the next time it is there.
  static void make(sql::connection& at, const std::string& table) {
    constexpr int tries = 5;
    for (int i = 1;; ++i) {
      try {
        at.run(table);
        return;
      } catch (const error& e) {
        // PostgreSQL has words of its own for a table, or its type, that came meanwhile.
        const bool there = e.code() == errc::duplicate || e.backend_code() == "42P07" || e.backend_code() == "42710";
        if (i == tries || !(there || (e.transient() && e.code() != errc::timeout))) throw;
        std::this_thread::sleep_for(std::chrono::milliseconds(10) * i);
      }
    }
  }

  /// SQLite has one writer; elsewhere a refill need not wait until a store has written its entries.
  [[nodiscard]] sql::pool::lease writing() const { return dialect_ == dialect_id::sqlite ? on_->pool->writer() : on_->pool->reader(); }

  [[nodiscard]] std::optional<counter_state> look(sql::connection& at, std::string_view name) const {
    const sql::parameter parameters[]{name};
    const auto rows = at.execute(say_.peek, parameters).rows;
    if (rows.empty()) return std::nullopt;
    return counter_state{.last = integer(rows.at(0, 0)), .epoch = integer(rows.at(0, 1))};
  }

  [[nodiscard]] static block_grant grant_of(const sql::rows& rows, std::size_t row) {
    const std::int64_t count = integer(rows.at(row, 1));
    const std::int64_t last = integer(rows.at(row, 2));
    if (count < 0 || last < count)
      throw error(errc::malformed, "a row of the sequences cannot be right: more was granted than was counted");
    return {.block = count == 0 ? sequence_block() : sequence_block(last - count + 1, last), .epoch = integer(rows.at(row, 3))};
  }

  void allocate_group(std::span<const block_request> requests, const std::vector<std::size_t>& group,
                      std::vector<block_grant>& granted) const {
    const bool cycling = requests[group.front()].cycle;
    const auto at = writing();
    if (group.size() == 1 && !cycling && !say_.last_insert_id.text.empty() && tells_insert_id_.load(std::memory_order_relaxed)) {
      if (grant_by_insert_id(*at, requests[group.front()], granted[group.front()])) return;
    }
    if (say_.many == many_blocks::one_by_one) {
      grant_one_by_one(*at, requests, group, granted);
      return;
    }
    std::vector<std::vector<sql::parameter>> columns(3);
    for (const std::size_t i : group) {
      columns[0].emplace_back(requests[i].name);
      columns[1].emplace_back(std::min(requests[i].count, requests[i].limit));
      columns[2].emplace_back(requests[i].limit);
    }
    const auto& grant = cycling ? say_.grant_cycling : say_.grant;
    sql::rows rows;
    if (say_.many == many_blocks::batch) {
      rows = at->batch(grant, columns, {}).rows;
    } else {
      at->begin();
      try {
        at->batch(grant, columns, {});
        rows = at->batch(say_.look, std::span(columns).first(1), {}).rows;
        at->commit();
      } catch (...) {
        at->rollback();
        throw;
      }
    }
    // The database returns them in any order; a counter that is exhausted is not among them, or has nothing granted.
    std::map<std::string_view, std::size_t> wanted;
    for (const std::size_t i : group) wanted.emplace(requests[i].name, i);
    for (std::size_t row = 0; row < rows.size(); ++row) {
      const auto found = wanted.find(text(rows.at(row, 0)));
      if (found == wanted.end())
        throw error(errc::malformed, "the database granted to a counter that nobody asked for; look at its triggers and collations");
      granted[found->second] = grant_of(rows, row);
    }
  }

  /// One round trip on MySQL. False: the counter is at its end, or near it; then it takes a closer look.
  [[nodiscard]] bool grant_by_insert_id(sql::connection& at, const block_request& wanted, block_grant& granted) const {
    const std::int64_t count = std::min(wanted.count, wanted.limit);
    const sql::parameter parameters[]{wanted.name, count, wanted.limit, wanted.limit, count, count};
    const auto done = at.execute(say_.last_insert_id, parameters);
    if (done.affected == 0) return false;
    if (done.insert_id == 0) {  // a driver that does not tell (ODBC): what was granted is a gap, once
      tells_insert_id_.store(false, std::memory_order_relaxed);
      return false;
    }
    const auto last = static_cast<std::int64_t>(done.insert_id);
    granted = {.block = sequence_block(last - count + 1, last), .epoch = 0};
    return true;
  }

  void grant_one_by_one(sql::connection& at, std::span<const block_request> requests, const std::vector<std::size_t>& group,
                        std::vector<block_grant>& granted) const {
    const bool together = group.size() > 1;
    if (together) at.begin();
    try {
      for (const std::size_t i : group) {
        const sql::parameter parameters[]{requests[i].name, std::min(requests[i].count, requests[i].limit), requests[i].limit};
        const auto rows = at.execute(requests[i].cycle ? say_.grant_one_cycling : say_.grant_one, parameters).rows;
        if (!rows.empty()) granted[i] = grant_of(rows, 0);
      }
      if (together) at.commit();
    } catch (...) {
      if (together) at.rollback();
      throw;
    }
  }

  const std::shared_ptr<database::state> on_;
  const dialect_id dialect_;
  const sequence_store_options options_;
  const detail::sequence_statements say_;
  mutable std::atomic<bool> tells_insert_id_{true};
};

}  // namespace

std::shared_ptr<block_store> make_sql_block_store(std::shared_ptr<database::state> on, const sequence_store_options& options) {
  const auto dialect = on->ask_dialect();
  auto made = std::make_shared<sql_block_store>(std::move(on), dialect, options);
  if (options.create_schema) made->create_schema();
  return made;
}

}  // namespace HOLDFAST_NAMESPACE
