#include "outbox/sql/backend.hpp"

#include <holdfast/error.hpp>

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

}  // namespace

sql_backend::sql_backend(std::shared_ptr<sql::context> context, const statement_builder& builder,
                         const sql_outbox_setup& setup)
    : context_(std::move(context)),
      dialect_(builder.dialect()),
      lanes_(setup.lanes),
      transactions_(context_, builder, setup.prefix),
      tables_(builder, setup, context_->options.clock),
      wake_(builder, setup.lanes, "holdfast_" + std::to_string(tables_.locks.lock_class()),
            listener_factory(context_)),
      publisher_(builder, tables_, wake_),
      deliverer_(builder, tables_),
      admin_(builder, tables_, publisher_, wake_),
      inspector_(builder, tables_, setup.lanes),
      count_lanes_(count_lanes_statement(builder)) {}

// ---- publish ----

std::vector<receipt> sql_backend::publish_in(join::transaction& transaction, std::size_t lane,
                                             std::span<const event> events,
                                             const publish_terms& terms) {
  return publisher_.publish({transaction, lane}, events, terms);
}

std::vector<receipt> sql_backend::publish(std::size_t lane, std::span<const event> events,
                                          const publish_terms& terms) {
  const auto interval =
      has_limit(terms.quota) ? publish_compaction_interval_with_quota : publish_compaction_interval;
  try {
    // Safe to retry in doubt: an id is stored once.
    auto receipts = transactions_.run(lane, [&](auto& session) {
      auto published = publisher_.publish(session, events, terms);
      // Not in the caller's own transaction, which may be long or see an old snapshot.
      tables_.counters.compact_sometimes(session, interval);
      return published;
    });
    wake_.signal_notified(lane);
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

claimed sql_backend::claim(const claim_request& request) {
  auto answer = transactions_.run(
      request.lane, [&](auto& session) { return deliverer_.claim(session, request); },
      when_in_doubt::give_up);
  if (answer.status == claim_status::some) wake_.events_found(request.lane);
  return answer;
}

std::vector<bool> sql_backend::extend(std::size_t lane, fence token,
                                      std::span<const settlement> events,
                                      std::chrono::milliseconds lease) {
  return transactions_.run(
      lane, [&](auto& session) { return deliverer_.extend(session, token, events, lease); });
}

settled sql_backend::settle(std::size_t lane, fence token, std::span<const settlement> settlements,
                            const std::optional<run_request>& next, const publish_terms& terms) {
  auto result = transactions_.run(lane, [&](auto& session) {
    return deliverer_.settle(session, token, settlements, next, terms);
  });
  // A worker of this process may sleep until a time that is too late now.
  if (result.must_wake_workers) wake_.signal(lane);
  return std::move(result.answer);
}

std::size_t sql_backend::park_followers(std::size_t lane, std::string_view key, std::size_t limit) {
  const bool more = transactions_.run(
      lane, [&](auto& session) { return deliverer_.park_followers(session, key, limit); });
  return more ? 1 : 0;
}

commit_status sql_backend::apply_once(join::transaction& transaction, std::size_t lane, fence token,
                                      std::string_view id, std::string_view key,
                                      const publish_terms& terms) {
  return deliverer_.apply_once({transaction, lane}, token, id, key, terms);
}

// ---- admin ----

std::vector<bool> sql_backend::replay(std::size_t lane, std::span<const std::string> ids) {
  auto replayed =
      transactions_.run(lane, [&](auto& session) { return admin_.replay(session, ids); });
  wake_.signal(lane);
  return replayed;
}

std::vector<bool> sql_backend::discard(std::size_t lane, std::span<const std::string> ids) {
  auto discarded =
      transactions_.run(lane, [&](auto& session) { return admin_.discard(session, ids); });
  wake_.signal(lane);
  return discarded;
}

void sql_backend::pause(std::size_t lane, bool paused) {
  transactions_.run(lane, [&](auto& session) { admin_.pause(session, paused); });
  if (!paused) wake_.signal_notified(lane);
}

scheduled sql_backend::schedule(std::size_t lane, std::string_view ticket,
                                std::optional<timestamp> expires_at,
                                std::chrono::milliseconds delay, const event& event,
                                const publish_terms& terms) {
  auto answer = transactions_.run(lane, [&](auto& session) {
    return admin_.schedule(session, ticket, expires_at, delay, event, terms);
  });
  wake_.signal_notified(lane);
  return answer;
}

cancel_status sql_backend::cancel(std::size_t lane, std::string_view ticket) {
  return transactions_.run(
      lane, [&](auto& session) { return admin_.cancel(session, ticket); }, when_in_doubt::give_up);
}

drained sql_backend::drain(std::size_t lane, std::size_t limit, const publish_terms& terms) {
  auto answer = transactions_.run(
      lane, [&](auto& session) { return admin_.drain(session, limit, terms); },
      when_in_doubt::give_up);
  if (answer.tickets > 0) wake_.signal_notified(lane);
  return answer;
}

lock_grant sql_backend::lock(std::size_t lane, std::string_view owner,
                             std::chrono::milliseconds ttl) {
  return transactions_.run(lane, [&](auto& session) { return admin_.lock(session, owner, ttl); });
}

lock_grant sql_backend::renew(std::size_t lane, std::string_view owner,
                              std::chrono::milliseconds ttl) {
  return transactions_.run(lane, [&](auto& session) { return admin_.renew(session, owner, ttl); });
}

bool sql_backend::unlock(std::size_t lane, std::string_view owner) {
  return transactions_.run(lane, [&](auto& session) { return admin_.unlock(session, owner); });
}

// ---- inspect ----

outbox_stats sql_backend::stats(std::size_t lane) {
  return transactions_.run(lane, [&](auto& session) { return inspector_.stats(session); });
}

std::optional<outbox_record> sql_backend::find(std::size_t lane, std::string_view id) {
  return transactions_.run(lane, [&](auto& session) { return inspector_.find(session, id); });
}

scan_page sql_backend::scan(std::size_t lane, scan_what kind, std::string_view after,
                            std::size_t limit) {
  return transactions_.run(
      lane, [&](auto& session) { return inspector_.scan(session, kind, after, limit); });
}

check_report sql_backend::check(std::size_t lane, bool repair) {
  return transactions_.run(lane, [&](auto& session) { return inspector_.check(session, repair); });
}

// ---- the server ----

void sql_backend::require(const durability& durability) {
  using kind = durability::kind;
  const auto refuse = [&](const std::string& reason) {
    throw error(
        errc::invalid_argument,
        "the database cannot provide '" + std::string(to_string(durability.level)) + "': " + reason,
        {.path = "safe"});
  };
  // A commit is in the write-ahead log before the server answers, so it survives the end of the
  // server process.
  if (durability.level == kind::memory || durability.level == kind::aof) return;
  if (durability.level == kind::replicated || durability.replicas != 0)
    refuse(
        "replication is configured on the SQL server (synchronous_standby_names, semi-sync); ask "
        "for 'fsynced'");
  const auto setting = [&](const char* query) {
    const auto connection = context_->pool.acquire_reader();
    const auto rows = connection->execute({.text = query, .results = {sql::type::text}}, {}).rows;
    return row_reader(rows).text();
  };
  switch (dialect_) {
    case sql::dialect_id::postgresql:
      if (setting("SELECT current_setting('fsync')") != "on")
        refuse("fsync is off; turn it on in postgresql.conf");
      if (setting("SELECT current_setting('synchronous_commit')") == "off")
        refuse("synchronous_commit is off; set it to on");
      return;
    case sql::dialect_id::sqlite: {
      const auto connection = context_->pool.acquire_writer();
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
    const auto connection = context_->pool.acquire_reader();
    (void)count_lanes_.query(*connection);
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
