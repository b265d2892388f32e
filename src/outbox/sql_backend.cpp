#include "outbox/sql_backend.hpp"

#include <holdfast/error.hpp>

#include "outbox/entry.hpp"
#include "sql/read_only_server.hpp"
#include "sql/unfilled_column.hpp"

#include <algorithm>
#include <limits>
#include <random>
#include <thread>

namespace HOLDFAST_NAMESPACE {

joining_outbox_backend::~joining_outbox_backend() = default;

}  // namespace HOLDFAST_NAMESPACE

namespace HOLDFAST_NAMESPACE::outboxes {

namespace {

using namespace std::chrono_literals;

constexpr int most_tries = 8;

/// A transaction of ours, behind the same face as the caller's.
class own_transaction final : public join::transaction {
 public:
  explicit own_transaction(sql::connection& on) : on_(on) { on_.begin(); }
  own_transaction(const own_transaction&) = delete;
  own_transaction& operator=(const own_transaction&) = delete;
  ~own_transaction() override {
    if (!ended_) on_.rollback();
  }
  [[nodiscard]] sql::dialect_id dialect() const override { return on_.dialect(); }
  sql::outcome execute(const sql::statement& s, std::span<const sql::parameter> parameters) override { return on_.execute(s, parameters); }
  void commit() {
    ended_ = true;  // a commit that fails has ended it, too
    on_.commit();
  }

 private:
  sql::connection& on_;
  bool ended_ = false;
};

}  // namespace

std::int64_t number_in(const sql::rows& from, std::size_t row, std::size_t column, std::int64_t otherwise) {
  const auto* number = std::get_if<std::int64_t>(&from.at(row, column));
  return number != nullptr ? *number : otherwise;
}

std::string text_in(const sql::rows& from, std::size_t row, std::size_t column) {
  const auto* text = std::get_if<std::string>(&from.at(row, column));
  return text != nullptr ? *text : std::string();
}

sql_row read_row(const sql::rows& from, std::size_t row) {
  const auto number = [&](std::size_t column) { return number_in(from, row, column); };
  // Other programs can write to the table: a negative size would be added to what is kept.
  const auto count = [&](std::size_t column) {
    return std::clamp<std::int64_t>(number(column), 0, std::numeric_limits<std::int32_t>::max());
  };
  sql_row made{.seq = number(0), .id = text_in(from, row, 1), .key = text_in(from, row, 2)};
  if (const auto* queue = std::get_if<std::string>(&from.at(row, 3))) made.queue = *queue;
  if (const auto* due = std::get_if<std::int64_t>(&from.at(row, 4))) made.due = *due;
  made.place = static_cast<place>(number(5));
  made.at = number(6);
  made.token = number(7);
  made.run = number(8);
  made.deliveries = count(9);
  made.attempts = count(10);
  made.replays = count(11);
  made.bytes = count(12);
  made.created = number(13);
  made.number = number(14);
  made.last_error = text_in(from, row, 15);
  made.head = number(16);
  made.next = number(17);
  return made;
}

void json_rows::comma() {
  if (!fresh_) text_ += ',';
  fresh_ = false;
}

json_rows& json_rows::add(std::int64_t number) {
  comma();
  text_ += std::to_string(number);
  return *this;
}

json_rows& json_rows::add_null() {
  comma();
  text_ += "null";
  return *this;
}

json_rows& json_rows::add(std::string_view text) {
  comma();
  append_json_text(text_, text);
  return *this;
}

std::shared_ptr<outbox_backend> open_sql_outbox(const std::shared_ptr<database::state>& on, const sql_outbox_setup& how) {
  {
    const std::scoped_lock lock(on->mutex);
    if (auto known = on->sql_outboxes[how.prefix].lock(); known && how.order == key_order::locked) {
      if (known->lanes() == how.lanes) return known;
    }
  }
  auto made = std::make_shared<sql_backend>(on, how);
  const std::scoped_lock lock(on->mutex);
  auto& known = on->sql_outboxes[how.prefix];
  if (auto other = known.lock(); other && how.order == key_order::locked) return other;
  known = made;
  return made;
}

sql_backend::sql_backend(std::shared_ptr<database::state> on, const sql_outbox_setup& how)
    : on_(std::move(on)),
      prefix_(how.prefix),
      lanes_(how.lanes),
      say_(on_->ask_dialect(), tables_of(how.prefix)),
      order_(how.order),
      channel_("holdfast_" + std::to_string(say_.lock_class)),
      wake_(how.lanes, channel_,
            say_.dialect == sql::dialect_id::postgresql
                ? [of = std::weak_ptr(on_)]() -> std::unique_ptr<sql::connection> {
                    const auto alive = of.lock();
                    if (!alive) throw error(errc::unavailable, "the database was closed");
                    return alive->pool->another();
                  }
                : std::function<std::unique_ptr<sql::connection>()>()),
      remembered_since_trim_(how.lanes) {
  open_lanes(how.create_schema);
}

void sql_backend::open_lanes(bool create_schema) {
  repeat(
      [&] {
        const auto lease = on_->pool->writer();
        if (create_schema) {
          for (const auto& text : sql_outbox_schema(say_.dialect, say_.tables)) lease->run(text);
        }
        // Every column that is used, once: a table of another version is found now, not by the first event.
        for (const auto& each : say_.all_columns) (void)lease->execute(each, {});
        const bool has_prefix = check_prefix(*lease);
        const auto count = [&] { return static_cast<std::size_t>(number_in(lease->execute(say_.count_lanes, {}).rows, 0, 0)); };
        auto there = count();
        if (there == 0) {
          own_transaction in(*lease);
          for (std::size_t lane = 0; lane < lanes_; ++lane) tell(in, say_.add_lane, {static_cast<std::int64_t>(lane)});
          if (say_.dialect == sql::dialect_id::mariadb || say_.dialect == sql::dialect_id::mysql) {
            const sql::statement stripe{
                .text = "INSERT INTO " + say_.tables.stripes + " (N) VALUES (?) ON DUPLICATE KEY UPDATE N = VALUES(N)",
                .parameters = {sql::type::integer}};
            for (std::int64_t n = 0; n < stripes; ++n) tell(in, stripe, {n});
          }
          in.commit();
          there = count();
        }
        if (there != lanes_) {
          throw error(errc::invalid_argument, "the outbox " + say_.tables.events + " has " + std::to_string(there) + " lanes, not " +
                                                  std::to_string(lanes_) + ": their number is fixed when it is made");
        }
        if (!has_prefix) keep_prefix(*lease);
      },
      when_in_doubt::repeat);
}

bool sql_backend::check_prefix(sql::connection& lease) const {
  const auto kept = lease.execute(say_.read_prefix, {}).rows;
  if (kept.empty()) return false;
  const auto owner = text_in(kept, 0, 0);
  if (owner == prefix_) return true;
  throw error(errc::invalid_argument,
              "the table " + say_.tables.events + " belongs to the outbox '" + owner + "', and '" + prefix_ +
                  "' would share it; open it as '" + owner + "', or choose a prefix that differs in more than case and punctuation",
              {.path = "prefix"});
}

void sql_backend::keep_prefix(sql::connection& lease) const {
  const sql::parameter prefix[]{std::string_view(prefix_)};
  try {
    (void)lease.execute(say_.add_prefix, prefix);
  } catch (const error& problem) {
    // An outbox of an earlier version, opened by a user or on a server that may only read: it works without.
    if (problem.code() == errc::permission || sql::is_read_only_server(problem)) return;
    throw;
  }
  (void)check_prefix(lease);  // another process may have been first, with another prefix
}

error sql_backend::explained(const error& problem) const {
  const auto& said = problem.message();
  const auto& code = problem.backend_code();
  const std::string name = "the outbox '" + prefix_ + "'";
  const std::string tables = say_.tables.events + " and the tables that begin like it";
  const error::details what{.backend_code = code, .in_doubt = problem.in_doubt()};
  std::string schema = "holdfast outbox schema --dialect " + std::string(to_string(say_.dialect));
  if (prefix_ != outbox_options{}.prefix) schema += " --prefix '" + prefix_ + "'";
  // 42501 is PostgreSQL's, the others are MySQL's: not those of a login that failed.
  if (code == "42501" || code == "1142" || code == "1143") {
    return {errc::permission,
            said + ": " + name + " needs SELECT, INSERT, UPDATE and DELETE on " + tables + ", and CREATE only to make them", what};
  }
  if (problem.code() != errc::missing_object || sql::is_unfilled_column(problem)) return problem;
  if (said.find("column") != std::string::npos) {
    return {errc::missing_object,
            name + " was made by another version: a column of " + tables + " is missing; compare them with: " + schema, what};
  }
  if (said.find("table") == std::string::npos) return problem;
  return {errc::missing_object,
          name + " is not there: " + say_.tables.events + " or a table that begins like it is missing; correct the URL or the prefix, or " +
              "create it with --create-schema (in C++: .create_schema), or see: " + schema,
          what};
}

void sql_backend::repeat(const std::function<void()>& work, when_in_doubt in_doubt) {
  const auto start = std::chrono::steady_clock::now();
  for (int tried = 1;; ++tried) {
    try {
      work();
      return;
    } catch (const error& e) {
      // A duplicate is somebody who did the same at the same time. Waiting for the pool took its time already.
      // 1467 is what MariaDB calls a deadlock over the counter of a table.
      const bool passes = (e.transient() && e.code() != errc::too_large && (e.code() != errc::timeout || e.in_doubt())) ||
                          e.code() == errc::duplicate || e.backend_code() == "1467";
      const bool in_time = std::chrono::steady_clock::now() - start < on_->options.statement_timeout;
      if (!passes || tried == most_tries || !in_time || (e.in_doubt() && in_doubt == when_in_doubt::give_up)) {
        throw explained(e);
      }
    }
    thread_local std::minstd_rand random(std::random_device{}());
    const auto longest = std::chrono::microseconds(std::chrono::milliseconds(2 << std::min(tried, 6))).count();
    std::this_thread::sleep_for(std::chrono::microseconds(std::uniform_int_distribution<long>(200, longest)(random)));
  }
}

void sql_backend::run(const std::function<void(join::transaction&)>& work, when_in_doubt in_doubt) {
  repeat(
      [&] {
        // SQLite has one writer; elsewhere many write at the same time, each on a connection of the pool.
        const auto lease = say_.dialect == sql::dialect_id::sqlite ? on_->pool->writer() : on_->pool->reader();
        own_transaction in(*lease);
        work(in);
        in.commit();
      },
      in_doubt);
}

sql::rows sql_backend::ask(join::transaction& in, const sql::statement& s, std::initializer_list<sql::parameter> parameters) const {
  return in.execute(s, {parameters.begin(), parameters.size()}).rows;
}

std::uint64_t sql_backend::tell(join::transaction& in, const sql::statement& s, std::initializer_list<sql::parameter> parameters) const {
  return in.execute(s, {parameters.begin(), parameters.size()}).affected;
}

std::int64_t sql_backend::clock_ms() const {
  return std::chrono::floor<std::chrono::milliseconds>(on_->options.clock->now()).time_since_epoch().count();
}

std::int64_t sql_backend::read_clock(join::transaction& in) const {
  return say_.dialect == sql::dialect_id::sqlite ? clock_ms() : number_in(ask(in, say_.clock, {}), 0, 0);
}

sql_backend::lane_row sql_backend::look_at(join::transaction& in, std::size_t lane, bool alone) const {
  const auto found = ask(in, alone ? say_.lane_alone : say_.lane, {static_cast<std::int64_t>(lane)});
  if (found.empty()) throw error(errc::invalid_argument, "there is no lane " + std::to_string(lane));
  lane_row made{.now_us = number_in(found, 0, 0), .paused = number_in(found, 0, 1) != 0, .owner = text_in(found, 0, 2)};
  if (say_.dialect == sql::dialect_id::sqlite) made.now_us = on_->options.clock->now().time_since_epoch().count();
  made.now = made.now_us / 1000;
  made.until = number_in(found, 0, 3);
  made.fence = number_in(found, 0, 4);
  made.token = number_in(found, 0, 5);
  return made;
}

void sql_backend::write_lane(join::transaction& in, std::size_t lane, const lane_row& row) const {
  tell(in, say_.set_lane,
       {std::int64_t{row.paused ? 1 : 0}, std::string_view(row.owner), row.until, row.fence, row.token, static_cast<std::int64_t>(lane)});
}

void sql_backend::write_tally(join::transaction& in, std::size_t lane, const tally_sheet& what) const {
  if (what == tally_sheet{}) return;
  tell(in, say_.tally,
       {static_cast<std::int64_t>(lane), what.events, what.bytes, what.tickets, what.published, what.duplicates, what.claims, what.acked,
        what.retried, what.parkings, what.stale, what.fired, what.orphans});
}

namespace {

tally_sheet sheet_of(const sql::rows& found) {
  const auto at = [&](std::size_t column) { return found.empty() ? 0 : number_in(found, 0, column); };
  return {at(1), at(2), at(3), at(4), at(5), at(6), at(7), at(8), at(9), at(10), at(11), at(12)};
}

}  // namespace

tally_sheet sql_backend::read_tallies(join::transaction& in, std::size_t lane) const {
  return sheet_of(ask(in, say_.tallies, {static_cast<std::int64_t>(lane)}));
}

/// Many differences become one.
void sql_backend::fold(join::transaction& in, std::size_t lane) const {
  constexpr std::size_t most = 2000;
  const auto number = static_cast<std::int64_t>(lane);
  // More than one step where others add faster than we come by.
  for (int step = 0; step < 4; ++step) {
    const auto picked = ask(in, say_.fold_pick, {number, static_cast<std::int64_t>(most)});
    if (picked.size() < 2) return;
    json_rows rows;
    for (std::size_t i = 0; i < picked.size(); ++i) rows.row().add(number_in(picked, i, 0));
    const auto list = rows.text();
    const auto sum = sheet_of(ask(in, say_.fold_sum, {std::string_view(list)}));
    tell(in, say_.fold_erase, {std::string_view(list)});
    write_tally(in, lane, sum);
    if (picked.size() < most) return;
  }
}

void sql_backend::require(const durability& how) {
  const auto refuse = [&](const std::string& why) {
    throw error(errc::invalid_argument, "the database cannot keep '" + std::string(to_string(how.level)) + "': " + why, {.path = "safe"});
  };
  using kind = durability::kind;
  // What is committed survives the end of the server's process, by a log that it writes first.
  if (how.level == kind::memory || how.level == kind::aof) return;
  if (how.level == kind::replicated || how.replicas != 0)
    refuse("SQL servers replicate as they are configured (synchronous_standby_names, semi-sync); ask for 'fsynced'");
  const auto setting = [&](const char* question) {
    const auto lease = on_->pool->reader();
    return text_in(lease->execute({.text = question, .results = {sql::type::text}}, {}).rows, 0, 0);
  };
  switch (say_.dialect) {
    case sql::dialect_id::postgresql:
      if (setting("SELECT current_setting('fsync')") != "on") refuse("fsync is off; turn it on in postgresql.conf");
      if (setting("SELECT current_setting('synchronous_commit')") == "off") refuse("synchronous_commit is off; set it to on");
      return;
    case sql::dialect_id::sqlite: {
      const auto lease = on_->pool->writer();
      const auto level = number_in(lease->execute({.text = "PRAGMA synchronous", .results = {sql::type::integer}}, {}).rows, 0, 0);
      if (level < 2) refuse("synchronous is not FULL; leave synchronous out of the URL");
      return;
    }
    default:
      if (setting("SELECT CAST(@@innodb_flush_log_at_trx_commit AS CHAR)") != "1")
        refuse("innodb_flush_log_at_trx_commit is not 1; set it to 1");
      return;
  }
}

std::optional<error> sql_backend::health() noexcept {
  try {
    const auto lease = on_->pool->reader();
    (void)lease->execute(say_.count_lanes, {});
    return std::nullopt;
  } catch (const error& problem) {
    return problem;
  } catch (const std::exception& problem) {
    try {
      return error(errc::internal, problem.what());
    } catch (...) {
      return std::nullopt;
    }
  }
}

}  // namespace HOLDFAST_NAMESPACE::outboxes
