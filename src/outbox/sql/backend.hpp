#pragma once

/// \file
/// The outbox on SQLite, PostgreSQL, MariaDB and MySQL.
///
///     sql_backend      transactions, retries, waking of workers
///       publish        adds events
///       deliver        claims, leases, settlements (run_claimer, settle_batch; keyless_delivery
///                      for events without a key on PostgreSQL)
///       admin          parked events, lanes, tickets
///       recurring      recurring events
///       inspect        statistics, records, check
///     outbox_tables    lanes, events, remembered ids, tickets, counters, locks of keys
///     statement        SQL text of all dialects
///
/// event_table.hpp explains how events of one key are kept in order.

#include <holdfast/outbox/backend.hpp>
#include <holdfast/outbox/sql.hpp>

#include "base/first_use.hpp"
#include "outbox/sql/admin.hpp"
#include "outbox/sql/deliver.hpp"
#include "outbox/sql/inspect.hpp"
#include "outbox/sql/keyless_delivery.hpp"
#include "outbox/sql/open.hpp"
#include "outbox/sql/publish.hpp"
#include "outbox/sql/recurring.hpp"
#include "outbox/sql/tables.hpp"
#include "outbox/sql/transaction.hpp"
#include "outbox/sql/wake.hpp"
#include "outbox/sql/workers.hpp"
#include "sql/context.hpp"

#include <atomic>
#include <functional>
#include <optional>

namespace HOLDFAST_NAMESPACE::detail::outbox {

class HOLDFAST_API sql_backend final : public outbox_backend, public joining_outbox_backend {
 public:
  /// Throws as open_sql_outbox. Does not connect.
  sql_backend(std::shared_ptr<sql::context> context, sql_outbox_setup setup);

  /// Opens the outbox if the database is a file, because the caller's transaction may lock the file
  /// when `publish_in` would have to create the tables. The first operation reports a failure.
  void open_file();
  /// From now on, the first operation creates the tables if they do not exist.
  void allow_create() noexcept { create_schema_ = true; }
  /// From now on, the first operation accepts a server that outbox_options::allow_unsafe accepts.
  void allow_unsafe() noexcept { allow_unsafe_ = true; }

  std::size_t lanes() const noexcept override { return setup_.lanes; }
  std::string prefix() override;
  std::string key_prefix(std::size_t) const override { return {}; }
  void check_supported(const durability& durability) const override;
  void require(const durability& durability) override;
  std::vector<receipt> publish(std::size_t lane, std::span<const event> events,
                               const publish_terms& terms) override;
  claimed claim(const claim_request& request) override;
  std::vector<bool> extend(std::size_t lane, fence token, std::span<const settlement> events,
                           std::chrono::milliseconds lease) override;
  settled settle(std::size_t lane, fence token, std::span<const settlement> settlements,
                 const std::optional<run_request>& next, const publish_terms& terms) override;
  std::size_t park_followers(std::size_t lane, std::string_view key, std::size_t limit) override;
  std::vector<bool> replay(std::size_t lane, std::span<const std::string> ids) override;
  std::vector<bool> discard(std::size_t lane, std::span<const std::string> ids) override;
  void pause(std::size_t lane, bool paused) override;
  scheduled schedule(std::size_t lane, std::string_view ticket, std::optional<timestamp> expires_at,
                     std::chrono::milliseconds delay, const event& event,
                     const publish_terms& terms) override;
  cancel_status cancel(std::size_t lane, std::string_view ticket) override;
  drained drain(std::size_t lane, std::size_t limit, const publish_terms& terms) override;
  recurrence_page read_recurrences(std::size_t lane, const recurrence_query& query) override;
  update_status update_recurrence(std::size_t lane, const recurrence_update& update,
                                  const publish_terms& terms) override;
  lock_grant lock(std::size_t lane, std::string_view owner, std::chrono::milliseconds ttl) override;
  lock_grant renew(std::size_t lane, std::string_view owner,
                   std::chrono::milliseconds ttl) override;
  bool unlock(std::size_t lane, std::string_view owner) override;
  std::vector<std::string> announce(std::string_view worker,
                                    std::chrono::milliseconds ttl) override;
  committed commit(std::size_t lane, const commit_request& request,
                   const publish_terms& terms) override;
  outbox_stats stats(std::size_t lane) override;
  std::optional<outbox_record> find(std::size_t lane, std::string_view id) override;
  scan_page scan(std::size_t lane, scan_what kind, std::string_view after,
                 std::size_t limit) override;
  check_report check(std::size_t lane, bool repair) override;
  bool wait(std::size_t lane, std::chrono::milliseconds longest) override {
    return opened().wake.wait(lane, longest);
  }
  /// No thread waits before the first use.
  void wake(std::size_t lane) override {
    if (first_use_.done() && parts_) parts_->wake.signal(lane);
  }
  std::optional<error> health() noexcept override;

  std::vector<receipt> publish_in(join::transaction& transaction, std::size_t lane,
                                  std::span<const event> events,
                                  const publish_terms& terms) override;
  commit_status apply_once(join::transaction& transaction, std::size_t lane, fence token,
                           std::string_view id, std::string_view key,
                           const publish_terms& terms) override;

 private:
  /// What depends on the dialect, which the database tells when it is first used.
  struct dialect_parts {
    dialect_parts(const std::shared_ptr<sql::context>& context, const statement_builder& builder,
                  const sql_outbox_setup& setup);

    const sql::dialect_id dialect;
    const std::string prefix;
    transaction_runner transactions;
    outbox_tables tables;
    sql_wake wake;
    sql_publisher publisher;
    sql_deliverer deliverer;
    sql_admin admin;
    sql_recurring recurring;
    sql_inspector inspector;
    std::optional<keyless_delivery> keyless{};  ///< PostgreSQL
    named_statement count_lanes;
    sql_workers workers;
  };
  /// Connects, and creates or checks the tables, at the first use. Throws as prepare_tables, and
  /// errc::unsupported_type for a dialect without outboxes.
  [[nodiscard]] dialect_parts& opened();
  std::vector<receipt> publish_without_transaction(std::size_t lane, std::span<const event> events,
                                                   const publish_terms& terms);
  /// Runs work that may fail without harm, after an operation that is done.
  void run_later_work(std::size_t lane, const std::function<void(const lane_session&)>& work);

  const std::shared_ptr<sql::context> context_;
  const sql_outbox_setup setup_;
  std::atomic<bool> create_schema_;
  std::atomic<bool> allow_unsafe_;
  first_use first_use_{};
  std::optional<dialect_parts> parts_{};  // after the first use
};

}  // namespace HOLDFAST_NAMESPACE::detail::outbox
