#include "outbox/sql/backend.hpp"

#include <holdfast/error.hpp>

#include "outbox/opening.hpp"

#include <algorithm>
#include <utility>

namespace HOLDFAST_NAMESPACE {

joining_outbox_backend::~joining_outbox_backend() = default;

}  // namespace HOLDFAST_NAMESPACE

namespace HOLDFAST_NAMESPACE::detail::outbox {

namespace {

/// The counters are compacted in one of this many publications: workers do it as well, but there
/// may be none, and a quota reads all changes.
constexpr std::uint32_t publish_compaction_interval = 1024;
constexpr std::uint32_t publish_compaction_interval_with_quota = 64;

/// Connections for sql_wake, which may outlive the database.
sql::connection_factory listener_factory(const std::shared_ptr<sql::context>& context) {
  return [weak = std::weak_ptr(context)]() -> std::unique_ptr<sql::connection> {
    const auto alive = weak.lock();
    if (!alive) throw error(errc::unavailable, "the database was closed");
    return alive->pool.open_unpooled();
  };
}

/// A commit is in the write-ahead log before the server answers, so it survives the end of the
/// server process.
bool needs_no_check(const durability& durability) {
  return durability.level == durability::kind::memory || durability.level == durability::kind::aof;
}

[[noreturn]] void refuse_durability(const durability& durability, const std::string& reason) {
  throw error(
      errc::invalid_argument,
      "the database cannot provide '" + std::string(to_string(durability.level)) + "': " + reason,
      {.path = "safe"});
}

}  // namespace

sql_backend::dialect_parts::dialect_parts(const std::shared_ptr<sql::context>& context,
                                          const statement_builder& builder,
                                          const sql_outbox_setup& setup)
    : dialect(builder.dialect()),
      prefix(setup.prefix),
      transactions(context, builder, setup.prefix),
      tables(builder, setup, context->options.clock),
      wake(builder, setup.lanes, "holdfast_" + std::to_string(tables.locks.lock_class()),
           listener_factory(context)),
      publisher(builder, tables, wake),
      deliverer(builder, tables),
      admin(builder, tables, publisher, wake),
      recurring(builder, tables, publisher, wake),
      inspector(builder, tables, setup.lanes),
      count_lanes(count_lanes_statement(builder)),
      workers(builder, tables.lanes) {
  if (builder.postgres()) keyless.emplace(builder, tables, setup.lanes);
}

sql_backend::sql_backend(std::shared_ptr<sql::context> context, sql_outbox_setup setup)
    : context_(std::move(context)),
      setup_(std::move(setup)),
      create_schema_(setup_.create_schema),
      allow_unsafe_(setup_.allow_unsafe) {
  // Checks the prefix.
  auto tables = table_names_of(setup_.prefix.empty() ? default_prefix : setup_.prefix);
  if (const auto dialect = context_->options.expected_dialect)
    (void)statement_builder(*dialect, std::move(tables));  // checks the dialect
}

sql_backend::dialect_parts& sql_backend::opened() {
  open_at_first_use(first_use_, [this] {
    auto setup = setup_;
    default_outboxes existing;
    if (setup.prefix.empty()) {
      existing = find_default_outboxes(context_);
      setup.prefix = choose_default_prefix(existing);
    }
    const auto dialect = context_->dialect();
    const auto names = table_names_of(setup.prefix);
    setup.create_schema = create_schema_;
    setup.allow_unsafe = allow_unsafe_;
    const auto locks = prepare_tables(context_, statement_builder(dialect, names), setup);
    log_default_prefix(context_->options.log.get(), existing);
    parts_.emplace(context_, statement_builder(dialect, names, locks), setup);
  });
  return *parts_;  // NOLINT(bugprone-unchecked-optional-access): it was made, or an error thrown
}

std::string sql_backend::prefix() { return opened().prefix; }

void sql_backend::open_file() {
  if (!context_->is_file()) return;
  try {
    (void)opened();
  } catch (const error&) {  // NOLINT(bugprone-empty-catch)
    // The first operation tries again.
  }
}

// ---- publish ----

std::vector<receipt> sql_backend::publish_in(join::transaction& transaction, std::size_t lane,
                                             std::span<const event> events,
                                             const publish_terms& terms) {
  return opened().publisher.publish({transaction, lane}, events, terms);
}

/// PostgreSQL: publishes in one statement instead of three round trips. Only ids that exist need
/// more, and a transaction for it.
std::vector<receipt> sql_backend::publish_without_transaction(std::size_t lane,
                                                              std::span<const event> events,
                                                              const publish_terms& terms) {
  auto& outbox = opened();
  // Safe to retry in doubt: an id is stored once.
  const auto statuses = outbox.transactions.run_statement(
      lane,
      [&](const auto& session) {
        return outbox.publisher.publish_without_transaction(session, events);
      },
      when_in_doubt::retry);
  const auto is_added = [](const auto& status) { return status.second == publish_status::added; };
  if (std::ranges::any_of(statuses, is_added)) outbox.wake.signal_notified(lane);
  if (outbox.tables.counters.needs_compaction(publish_compaction_interval))
    run_later_work(lane, [&](auto& session) { outbox.tables.counters.compact(session); });
  if (statuses.size() == events.size() && std::ranges::all_of(statuses, is_added))
    return sql_publisher::receipts_of(events, statuses);
  try {
    return outbox.transactions.run(lane, [&](auto& session) {
      return outbox.publisher.publish_rest(session, events, terms, statuses);
    });
  } catch (const error& problem) {
    // What the statement has added is committed.
    const auto status = problem.in_doubt() ? publish_status::in_doubt : publish_status::refused;
    auto receipts = sql_publisher::receipts_of(events, statuses);
    for (auto& receipt : receipts) {
      if (receipt.status != publish_status::added) {
        receipt.status = status;
        receipt.problem = problem;
      }
    }
    return receipts;
  }
}

std::vector<receipt> sql_backend::publish(std::size_t lane, std::span<const event> events,
                                          const publish_terms& terms) {
  const auto interval =
      has_limit(terms.quota) ? publish_compaction_interval_with_quota : publish_compaction_interval;
  try {
    auto& outbox = opened();
    if (outbox.publisher.fits_one_statement(events, terms))
      return publish_without_transaction(lane, events, terms);
    // Safe to retry in doubt: an id is stored once.
    auto receipts = outbox.transactions.run(lane, [&](auto& session) {
      auto published = outbox.publisher.publish(session, events, terms);
      // Not in the caller's own transaction, which may be long or see an old snapshot.
      outbox.tables.counters.compact_sometimes(session, interval);
      return published;
    });
    outbox.wake.signal_notified(lane);
    return receipts;
  } catch (const error& problem) {
    const auto status = problem.in_doubt() ? publish_status::in_doubt : publish_status::refused;
    std::vector<receipt> receipts;
    for (const auto& event : events)
      receipts.push_back({.id = event.id, .status = status, .problem = problem});
    return receipts;
  }
}

committed sql_backend::commit(std::size_t, const commit_request&, const publish_terms&) {
  throw error(errc::unsupported_type,
              "outbox::commit is not supported on SQL: publish inside your own transaction "
              "(outbox::publish with a join::transaction)");
}

// ---- deliver ----

void sql_backend::run_later_work(std::size_t lane,
                                 const std::function<void(const lane_session&)>& work) {
  try {
    opened().transactions.run(lane, work);
  } catch (const error&) {  // NOLINT(bugprone-empty-catch)
    // The operation itself is done. A later one does this work.
  }
}

claimed sql_backend::claim(const claim_request& request) {
  auto& outbox = opened();
  const auto& keyless = outbox.keyless;
  if (keyless && keyless->may_claim(request.lane)) {
    auto answer = outbox.transactions.run_statement(
        request.lane, [&](const auto& session) { return keyless->claim(session, request); },
        when_in_doubt::give_up);
    const auto now_ms =
        answer
            ? std::chrono::floor<std::chrono::milliseconds>(answer->now).time_since_epoch().count()
            : 0;
    if (answer && outbox.tables.lanes.clock_was_ahead(request.lane, now_ms)) {
      run_later_work(request.lane, [&](auto& session) {
        outbox.tables.events.correct_future_events(session, now_ms);
      });
    }
    if (answer) {
      if (answer->status == claim_status::some) outbox.wake.events_found(request.lane);
      return std::move(*answer);
    }
  }
  auto answer = outbox.transactions.run(
      request.lane, [&](auto& session) { return outbox.deliverer.claim(session, request); },
      when_in_doubt::give_up);
  if (keyless) keyless->observe(answer);
  if (answer.status == claim_status::some) outbox.wake.events_found(request.lane);
  return answer;
}

std::vector<bool> sql_backend::extend(std::size_t lane, fence token,
                                      std::span<const settlement> events,
                                      std::chrono::milliseconds lease) {
  auto& outbox = opened();
  return outbox.transactions.run(
      lane, [&](auto& session) { return outbox.deliverer.extend(session, token, events, lease); });
}

settled sql_backend::settle(std::size_t lane, fence token, std::span<const settlement> settlements,
                            const std::optional<run_request>& next, const publish_terms& terms) {
  auto& outbox = opened();
  const auto& keyless = outbox.keyless;
  if (keyless && keyless_delivery::may_settle(token, settlements, terms)) {
    auto answer = outbox.transactions.run_statement(
        lane,
        [&](const auto& session) { return keyless->settle(session, token, settlements, next); },
        when_in_doubt::retry);
    if (keyless->needs_maintenance(lane, settlements.size()))
      run_later_work(lane, [&](auto& session) { keyless->maintain(session, terms); });
    return answer;
  }
  auto result = outbox.transactions.run(lane, [&](auto& session) {
    return outbox.deliverer.settle(session, token, settlements, next, terms);
  });
  // A worker of this process may sleep until a time that is too late now.
  if (result.must_wake_workers) outbox.wake.signal(lane);
  return std::move(result.answer);
}

std::size_t sql_backend::park_followers(std::size_t lane, std::string_view key, std::size_t limit) {
  auto& outbox = opened();
  const bool more = outbox.transactions.run(
      lane, [&](auto& session) { return outbox.deliverer.park_followers(session, key, limit); });
  return more ? 1 : 0;
}

commit_status sql_backend::apply_once(join::transaction& transaction, std::size_t lane, fence token,
                                      std::string_view id, std::string_view key,
                                      const publish_terms& terms) {
  return opened().deliverer.apply_once({transaction, lane}, token, id, key, terms);
}

// ---- admin ----

std::vector<bool> sql_backend::replay(std::size_t lane, std::span<const std::string> ids) {
  auto& outbox = opened();
  auto replayed = outbox.transactions.run(
      lane, [&](auto& session) { return outbox.admin.replay(session, ids); });
  outbox.wake.signal(lane);
  return replayed;
}

std::vector<bool> sql_backend::discard(std::size_t lane, std::span<const std::string> ids) {
  auto& outbox = opened();
  auto discarded = outbox.transactions.run(
      lane, [&](auto& session) { return outbox.admin.discard(session, ids); });
  outbox.wake.signal(lane);
  return discarded;
}

void sql_backend::pause(std::size_t lane, bool paused) {
  auto& outbox = opened();
  outbox.transactions.run(lane, [&](auto& session) { outbox.admin.pause(session, paused); });
  if (!paused) outbox.wake.signal_notified(lane);
}

scheduled sql_backend::schedule(std::size_t lane, std::string_view ticket,
                                std::optional<timestamp> expires_at,
                                std::chrono::milliseconds delay, const event& event,
                                const publish_terms& terms) {
  auto& outbox = opened();
  auto answer = outbox.transactions.run(lane, [&](auto& session) {
    return outbox.admin.schedule(session, ticket, expires_at, delay, event, terms);
  });
  outbox.wake.signal_notified(lane);
  return answer;
}

cancel_status sql_backend::cancel(std::size_t lane, std::string_view ticket) {
  auto& outbox = opened();
  return outbox.transactions.run(
      lane, [&](auto& session) { return outbox.admin.cancel(session, ticket); },
      when_in_doubt::give_up);
}

drained sql_backend::drain(std::size_t lane, std::size_t limit, const publish_terms& terms) {
  auto& outbox = opened();
  auto answer = outbox.transactions.run(
      lane, [&](auto& session) { return outbox.admin.drain(session, limit, terms); },
      when_in_doubt::give_up);
  if (answer.tickets > 0) outbox.wake.signal_notified(lane);
  return answer;
}

recurrence_page sql_backend::read_recurrences(std::size_t lane, const recurrence_query& query) {
  auto& outbox = opened();
  return outbox.transactions.run_statement(
      lane, [&](const auto& session) { return outbox.recurring.read(session, query); },
      when_in_doubt::retry);
}

update_status sql_backend::update_recurrence(std::size_t lane, const recurrence_update& update,
                                             const publish_terms& terms) {
  auto& outbox = opened();
  // Safe to retry in doubt: a step that was made is found by its text.
  const auto status = outbox.transactions.run(
      lane, [&](auto& session) { return outbox.recurring.update(session, update, terms); });
  outbox.wake.signal_notified(lane);
  return status;
}

lock_grant sql_backend::lock(std::size_t lane, std::string_view owner,
                             std::chrono::milliseconds ttl) {
  auto& outbox = opened();
  return outbox.transactions.run(
      lane, [&](auto& session) { return outbox.admin.lock(session, owner, ttl); });
}

lock_grant sql_backend::renew(std::size_t lane, std::string_view owner,
                              std::chrono::milliseconds ttl) {
  auto& outbox = opened();
  return outbox.transactions.run(
      lane, [&](auto& session) { return outbox.admin.renew(session, owner, ttl); });
}

bool sql_backend::unlock(std::size_t lane, std::string_view owner) {
  auto& outbox = opened();
  return outbox.transactions.run(
      lane, [&](auto& session) { return outbox.admin.unlock(session, owner); });
}

std::vector<std::string> sql_backend::announce(std::string_view worker,
                                               std::chrono::milliseconds ttl) {
  auto& outbox = opened();
  return outbox.transactions.run(
      0, [&](auto& session) { return outbox.workers.announce(session, worker, ttl); });
}

// ---- inspect ----

outbox_stats sql_backend::stats(std::size_t lane) {
  auto& outbox = opened();
  return outbox.transactions.run(lane,
                                 [&](auto& session) { return outbox.inspector.stats(session); });
}

std::optional<outbox_record> sql_backend::find(std::size_t lane, std::string_view id) {
  auto& outbox = opened();
  return outbox.transactions.run(lane,
                                 [&](auto& session) { return outbox.inspector.find(session, id); });
}

scan_page sql_backend::scan(std::size_t lane, scan_what kind, std::string_view after,
                            std::size_t limit) {
  auto& outbox = opened();
  return outbox.transactions.run(
      lane, [&](auto& session) { return outbox.inspector.scan(session, kind, after, limit); });
}

check_report sql_backend::check(std::size_t lane, bool repair) {
  auto& outbox = opened();
  return outbox.transactions.run(
      lane, [&](auto& session) { return outbox.inspector.check(session, repair); });
}

// ---- the server ----

void sql_backend::check_supported(const durability& durability) const {
  if (needs_no_check(durability)) return;
  if (durability.level == durability::kind::replicated || durability.replicas != 0)
    refuse_durability(
        durability,
        "replication is configured on the SQL server (synchronous_standby_names, semi-sync); ask "
        "for 'fsynced'");
}

void sql_backend::require(const durability& durability) {
  check_supported(durability);
  if (needs_no_check(durability)) return;
  const auto refuse = [&](const std::string& reason) { refuse_durability(durability, reason); };
  const auto dialect = opened().dialect;
  const auto setting = [&](const char* query) {
    const auto connection = context_->pool.acquire_reader("outbox.settings");
    const auto rows = connection->execute({.text = query, .results = {sql::type::text}}, {}).rows;
    return row_reader(rows).text();
  };
  switch (dialect) {
    case sql::dialect_id::postgresql:
      if (setting("SELECT current_setting('fsync')") != "on")
        refuse("fsync is off; turn it on in postgresql.conf");
      if (setting("SELECT current_setting('synchronous_commit')") == "off")
        refuse("synchronous_commit is off; set it to on");
      return;
    case sql::dialect_id::sqlite: {
      const auto connection = context_->pool.acquire_writer("outbox.settings");
      const auto rows =
          connection->execute({.text = "PRAGMA synchronous", .results = {sql::type::integer}}, {})
              .rows;
      constexpr std::int64_t full = 2;
      if (row_reader(rows).integer() < full)
        refuse("synchronous is not FULL; leave synchronous out of the URL");
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
    auto& outbox = opened();
    const auto connection = context_->pool.acquire_reader("outbox.health");
    (void)outbox.count_lanes.query(*connection);
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

}  // namespace HOLDFAST_NAMESPACE::detail::outbox
