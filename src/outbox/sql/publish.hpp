#pragma once

#include <holdfast/outbox/operations.hpp>

#include "outbox/sql/row_inserts.hpp"
#include "outbox/sql/tables.hpp"
#include "outbox/sql/wake.hpp"

namespace HOLDFAST_NAMESPACE::detail::outbox {

/// An event as the tables store it.
struct stored_event {
  std::string id{};
  std::string key{};
  std::int64_t delay = 0;
  std::string entry{};
};
/// The entry of an event; see outbox/entry.hpp. Its time and sequence are columns.
[[nodiscard]] std::string stored_entry(std::string_view id, std::string_view body);

[[nodiscard]] bool has_limit(const outbox_quota& quota);

struct publish_statements {
  named_statement find_ids, insert_entries;
  std::optional<named_statement> publish;  ///< PostgreSQL: all steps in one statement
  std::optional<row_inserts> insert_events, insert_entry_rows;  ///< MariaDB and MySQL
};
[[nodiscard]] publish_statements make_publish_statements(const statement_builder& builder);

/// Adds events. Thread-safety: every function may be called from any thread.
class sql_publisher {
 public:
  sql_publisher(const statement_builder& builder, const outbox_tables& tables,
                const sql_wake& wake);

  /// Publishers of one key wait for each other until their transactions end. Throws
  /// errc::invalid_argument if the transaction is on another kind of database, and errc::too_large
  /// if a quota is exceeded.
  std::vector<receipt> publish(const lane_session& session, std::span<const event> events,
                               const publish_terms& terms) const;
  /// What became of each id.
  using status_by_id = std::map<std::string_view, publish_status>;
  /// PostgreSQL: whether publish_without_transaction can publish the events.
  [[nodiscard]] bool fits_one_statement(std::span<const event> events,
                                        const publish_terms& terms) const;
  /// Publishes the events whose ids no row has, in one statement, which is also the transaction.
  /// The others are duplicates until publish_rest has looked at them. The result refers to
  /// `events`.
  [[nodiscard]] status_by_id publish_without_transaction(const lane_session& session,
                                                         std::span<const event> events) const;
  /// Publishes the events whose ids were remembered for longer than the dedup window. `statuses`
  /// says what became of each id until now.
  std::vector<receipt> publish_rest(const lane_session& session, std::span<const event> events,
                                    const publish_terms& terms, status_by_id statuses,
                                    int attempt = 1) const;
  [[nodiscard]] static std::vector<receipt> receipts_of(std::span<const event> events,
                                                        const status_by_id& statuses);
  /// Inserts the events whose ids are new, or were remembered for longer than the dedup window.
  std::vector<receipt> insert(const lane_session& session, std::span<const stored_event> events,
                              const publish_terms& terms, lane_counters& changes) const;
  /// Throws errc::too_large, transient, if there is no room for `events` with `bytes` in total.
  void check_quota(const lane_session& session, std::size_t events, std::size_t bytes,
                   const publish_terms& terms, std::int64_t now_ms) const;

 private:
  /// An id that a row has.
  struct used_id {
    std::string id{};
    row_state state{};
    std::int64_t state_time = 0;
    std::int64_t now_ms = 0;

    [[nodiscard]] bool is_forgotten(std::int64_t until) const {
      return state == row_state::remembered && state_time <= until;
    }
  };

  void check_dialect_of(const join::transaction& transaction) const;
  std::vector<used_id> find_ids(const lane_session& session, std::string_view id_list) const;
  std::uint64_t insert_values(const lane_session& session,
                              std::span<const stored_event* const> events,
                              std::int64_t now_ms) const;
  std::uint64_t insert_lists(const lane_session& session,
                             std::span<const stored_event* const> events,
                             std::int64_t now_ms) const;
  [[nodiscard]] bool insert_rows(const lane_session& session,
                                 std::span<const stored_event* const> events,
                                 std::int64_t now_ms) const;
  void insert_entries(const lane_session& session,
                      std::span<const stored_event* const> events) const;
  std::vector<receipt> publish_at_once(const lane_session& session, std::span<const event> events,
                                       const publish_terms& terms, int attempt = 1) const;
  /// Sends a further statement when the entries of one have more than `most_bytes`.
  status_by_id run_publish(const lane_session& session, std::span<const event> events,
                           std::size_t most_bytes) const;
  std::size_t publish_forgotten(const lane_session& session, std::span<const event> events,
                                const publish_terms& terms, int attempt,
                                status_by_id& statuses) const;

  const outbox_tables& tables_;
  const sql_wake& wake_;
  sql::dialect_id dialect_;
  publish_statements statements_;
};

}  // namespace HOLDFAST_NAMESPACE::detail::outbox
