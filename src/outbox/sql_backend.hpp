#pragma once

/// \file
/// The outbox on SQLite, PostgreSQL, MariaDB and MySQL.
///
/// Publishers only insert. An event that is published may be claimed when its time has come: DUE is set. A claim that finds it behind
/// another event of its key takes DUE away again (it is demoted), once, and whoever removes the first event of a key sets it for the next.
/// To demote, a claim locks the row of the first event; to remove that one, its lock is needed too, so the one sees what the other did.
///
/// The numbers of rows are the order of a key. They are also the order of commits: publishers of the same key hold its stripe until their
/// transactions end (SQLite has one writer at a time anyway).

#include <holdfast/join/transaction.hpp>
#include <holdfast/outbox/backend.hpp>
#include <holdfast/outbox/options.hpp>
#include <holdfast/outbox/sql.hpp>

#include "outbox/sql_open.hpp"
#include "outbox/sql_wake.hpp"
#include "outbox/sql_words.hpp"
#include "sql/database.hpp"

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace HOLDFAST_NAMESPACE::outboxes {

/// One row of the table of events.
struct sql_row {
  std::int64_t seq = 0;
  std::string id{}, key{};
  std::optional<std::string> queue{};
  std::optional<std::int64_t> due{};
  outboxes::place place = place::queued;
  /// `run` of a blocking one whose followers are to be parked, too: the token of whoever parked it, who may say so again when the answer was
  /// lost. Until they are, it has a `due`: whoever claims next goes on with it.
  std::int64_t at = 0, token = 0, run = 0, deliveries = 0, attempts = 0, replays = 0, bytes = 0, created = 0, number = 0;
  std::string last_error{};
  std::int64_t head = 0;  ///< the first of its queue; 0: it stands in none
  std::int64_t next = 0;  ///< the one behind it; 0: there is none

  [[nodiscard]] bool first() const noexcept { return !queue || head == seq; }
};
[[nodiscard]] sql_row read_row(const sql::rows& from, std::size_t row);
[[nodiscard]] std::int64_t number_in(const sql::rows& from, std::size_t row, std::size_t column, std::int64_t otherwise = 0);
[[nodiscard]] std::string text_in(const sql::rows& from, std::size_t row, std::size_t column);

/// Rows for a JSON parameter.
class json_rows {
 public:
  json_rows& row() {
    text_ += count_++ == 0 ? "[" : "],[";
    fresh_ = true;
    return *this;
  }
  json_rows& add(std::int64_t number);
  json_rows& add(std::string_view text);
  json_rows& add_null();
  json_rows& add(std::optional<std::int64_t> number) { return number ? add(*number) : add_null(); }
  [[nodiscard]] bool empty() const noexcept { return count_ == 0; }
  [[nodiscard]] std::string text() const { return count_ == 0 ? "[]" : "[" + text_ + "]]"; }

 private:
  void comma();
  std::string text_{};
  std::size_t count_ = 0;
  bool fresh_ = true;
};

/// What an operation adds to the counters.
struct tally_sheet {
  std::int64_t events = 0, bytes = 0, tickets = 0, published = 0, duplicates = 0, claims = 0, acked = 0, retried = 0, parkings = 0,
               stale = 0, fired = 0, orphans = 0;
  bool operator==(const tally_sheet&) const = default;
};

class sql_backend final : public outbox_backend, public joining_outbox_backend {
 public:
  sql_backend(std::shared_ptr<database::state> on, const sql_outbox_setup& how);

  [[nodiscard]] std::size_t lanes() const noexcept override { return lanes_; }
  [[nodiscard]] std::string key_prefix(std::size_t) const override { return {}; }
  void require(const durability& how) override;
  [[nodiscard]] std::vector<receipt> publish(std::size_t lane, std::span<const event> events, const publish_terms& terms) override;
  [[nodiscard]] claimed claim(const claim_request& request) override;
  [[nodiscard]] std::vector<bool> extend(std::size_t lane, fence token, std::span<const settlement> events,
                                         std::chrono::milliseconds lease) override;
  [[nodiscard]] settled settle(std::size_t lane, fence token, std::span<const settlement> what, const std::optional<run_request>& next,
                               const publish_terms& terms) override;
  std::size_t park_followers(std::size_t lane, std::string_view key, std::size_t most) override;
  [[nodiscard]] std::vector<bool> replay(std::size_t lane, std::span<const std::string> ids) override;
  [[nodiscard]] std::vector<bool> discard(std::size_t lane, std::span<const std::string> ids) override;
  void pause(std::size_t lane, bool paused) override;
  [[nodiscard]] scheduled schedule(std::size_t lane, std::string_view ticket, std::optional<timestamp> at, std::chrono::milliseconds delay,
                                   const event& becomes, const publish_terms& terms) override;
  [[nodiscard]] cancel_status cancel(std::size_t lane, std::string_view ticket) override;
  [[nodiscard]] drained drain(std::size_t lane, std::size_t most, const publish_terms& terms) override;
  [[nodiscard]] lock_grant lock(std::size_t lane, std::string_view owner, std::chrono::milliseconds ttl) override;
  [[nodiscard]] lock_grant renew(std::size_t lane, std::string_view owner, std::chrono::milliseconds ttl) override;
  bool unlock(std::size_t lane, std::string_view owner) override;
  [[nodiscard]] committed commit(std::size_t lane, const commit_request& request, const publish_terms& terms) override;
  [[nodiscard]] outbox_stats stats(std::size_t lane) override;
  [[nodiscard]] std::optional<outbox_record> find(std::size_t lane, std::string_view id) override;
  [[nodiscard]] scan_page scan(std::size_t lane, scan_what what, std::string_view after, std::size_t most) override;
  [[nodiscard]] check_report check(std::size_t lane, bool repair) override;
  bool wait(std::size_t lane, std::chrono::milliseconds longest) override { return wake_.wait(lane, longest); }
  void wake(std::size_t lane) override { wake_.signal(lane); }
  [[nodiscard]] std::optional<error> health() noexcept override;

  [[nodiscard]] std::vector<receipt> publish_in(join::transaction& in, std::size_t lane, std::span<const event> events,
                                                const publish_terms& terms) override;
  [[nodiscard]] commit_status apply_once(join::transaction& in, std::size_t lane, fence token, std::string_view id, std::string_view key,
                                         const publish_terms& terms) override;

 private:
  /// The row of a lane, and the time at which it was read: that of the whole operation.
  struct lane_row {
    std::int64_t now_us = 0, now = 0;
    bool paused = false;
    std::string owner{};
    std::int64_t until = 0, fence = 0, token = 0;
    [[nodiscard]] bool held_by(std::string_view who) const { return owner == who && until > now; }
  };
  /// The room left in an answer.
  struct room {
    std::size_t events = 0, bytes = 0;
  };
  /// A new head, and what it is given.
  struct promotion {
    std::int64_t token = 0, run = 0;
    std::optional<std::int64_t> due{};
  };
  enum class when_in_doubt : std::uint8_t { repeat, give_up };

  /// Runs work in a transaction of ours; again, when it fails for a reason that passes.
  template <class F>
  auto in_transaction(F work, when_in_doubt in_doubt = when_in_doubt::repeat) {
    std::optional<decltype(work(std::declval<join::transaction&>()))> result;
    run([&](join::transaction& in) { result = work(in); }, in_doubt);
    return std::move(result).value();  // NOLINT(bugprone-unchecked-optional-access): `run` did it, or threw
  }
  void run(const std::function<void(join::transaction&)>& work, when_in_doubt in_doubt);
  void repeat(const std::function<void()>& work, when_in_doubt in_doubt);
  void open_lanes(bool create_schema);
  /// Throws errc::invalid_argument when the tables belong to another prefix. False: none is kept yet.
  [[nodiscard]] bool check_prefix(sql::connection& lease) const;
  void keep_prefix(sql::connection& lease) const;
  /// What an error of the database means for an outbox, and what to do about it.
  [[nodiscard]] error explained(const error& problem) const;

  sql::rows ask(join::transaction& in, const sql::statement& s, std::initializer_list<sql::parameter> parameters) const;
  std::uint64_t tell(join::transaction& in, const sql::statement& s, std::initializer_list<sql::parameter> parameters) const;
  lane_row look_at(join::transaction& in, std::size_t lane, bool alone = false) const;
  void write_lane(join::transaction& in, std::size_t lane, const lane_row& row) const;
  void write_tally(join::transaction& in, std::size_t lane, const tally_sheet& what) const;
  tally_sheet read_tallies(join::transaction& in, std::size_t lane) const;
  void fold(join::transaction& in, std::size_t lane) const;
  [[nodiscard]] std::int64_t clock_ms() const;
  /// The time of the database, without a lock: the row of the lane is not for transactions of the caller's, which may take long.
  [[nodiscard]] std::int64_t read_clock(join::transaction& in) const;

  // publish
  void check_quota(join::transaction& in, std::size_t lane, std::size_t events, std::size_t bytes, const publish_terms& terms,
                   std::int64_t now) const;
  void lock_keys(join::transaction& in, std::span<const std::string_view> keys) const;
  /// Of these stripes, those that nobody else holds, locked.
  [[nodiscard]] std::set<std::int64_t> free_stripes(join::transaction& in, const std::set<std::int64_t>& wanted) const;
  /// An event as it is kept.
  struct kept_event {
    std::string id{}, key{};
    std::int64_t delay = 0;
    std::string entry{};
  };
  std::vector<receipt> add(join::transaction& in, std::size_t lane, std::span<const kept_event> events, const publish_terms& terms,
                           tally_sheet& counts) const;
  std::vector<receipt> add_at_once(join::transaction& in, std::size_t lane, std::span<const event> events, const publish_terms& terms,
                                   int tries) const;

  // deliver
  std::vector<sql_row> rows_of(join::transaction& in, const sql::statement& s, std::initializer_list<sql::parameter> parameters) const;
  /// Those of the lane that are not only remembered, locked, by their ids.
  std::map<std::string, sql_row, std::less<>> lock_rows(join::transaction& in, std::size_t lane, const json_rows& ids) const;
  [[nodiscard]] fence new_token(join::transaction& in, std::size_t lane, lane_row& from, fence last) const;
  void take(join::transaction& in, std::size_t lane, lane_row& now, std::vector<sql_row> heads, std::size_t run,
            std::chrono::milliseconds lease, room& left, claimed& into, tally_sheet& counts) const;
  /// The next event of each of these keys becomes its head.
  void advance(join::transaction& in, std::size_t lane, const std::map<std::string, promotion, std::less<>>& keys) const;
  void place_rows(join::transaction& in, std::span<const sql_row> rows) const;
  /// Parks up to so many of those behind a blocking head, which is locked; none left: the key is free. How many it parked, and whether there
  /// are more.
  std::pair<std::size_t, bool> park_behind(join::transaction& in, std::size_t lane, sql_row head, std::size_t most, std::int64_t now,
                                           tally_sheet& counts) const;
  std::uint64_t forget_oldest(join::transaction& in, std::int64_t lane, std::int64_t until, std::int64_t most) const;
  void trim(join::transaction& in, std::size_t lane, std::int64_t now, const publish_terms& terms, std::size_t more) const;
  [[nodiscard]] std::optional<std::chrono::milliseconds> next_due(join::transaction& in, std::size_t lane, std::int64_t now) const;
  [[nodiscard]] outbox_record record_of(std::size_t lane, const sql::rows& from, std::size_t row, const std::string& entry) const;
  [[nodiscard]] std::map<std::string, std::string, std::less<>> entries_of(join::transaction& in, std::span<const std::string> ids) const;

  std::shared_ptr<database::state> on_;
  std::string prefix_;
  std::size_t lanes_;
  sql_words say_;
  key_order order_;
  std::string channel_;
  mutable sql_wake wake_;
  mutable std::vector<std::atomic<std::size_t>> remembered_since_trim_;  ///< of each lane
  mutable std::atomic<std::uint32_t> operations_{0};
};

/// The text that is kept of an event; see entry.hpp. Time and number are columns of their own.
[[nodiscard]] std::string kept_entry(std::string_view id, std::string_view body);

}  // namespace HOLDFAST_NAMESPACE::outboxes
