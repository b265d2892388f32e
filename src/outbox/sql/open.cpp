// Creates or checks the tables of an outbox, with its lanes and prefix.

#include "outbox/sql/open.hpp"

#include <holdfast/error.hpp>

#include "outbox/sql/backend.hpp"
#include "outbox/sql/counter_table.hpp"
#include "outbox/sql/key_locks.hpp"
#include "outbox/sql/lane_table.hpp"
#include "outbox/sql/transaction.hpp"
#include "sql/read_only_server.hpp"
#include "sql/schema_version.hpp"

#include <algorithm>
#include <bit>
#include <optional>
#include <utility>

namespace HOLDFAST_NAMESPACE::detail::outbox {

namespace {

/// The row of the table of lanes that holds the prefix in OWNER: prefixes that differ only in case
/// and punctuation have the same table names.
constexpr std::int64_t prefix_lane = -1;

/// Statements that fail if a column is missing. They return no row of a table.
std::vector<named_statement> column_checks(const statement_builder& builder) {
  std::string counters = "o.N, o.LANE";
  for (const auto& column : counter_columns) counters.append(", ").append(column.name);
  std::vector<std::pair<std::string, std::string>> tables{
      {"{stored_event}, o.LANE", "{events}"},
      {"o.ID, o.ENTRY", "{entries}"},
      {"o.LANE, o.TICKET, o.EXPIRES, o.EVENT_KEY, o.BODY", "{tickets}"},
      {"o.LANE, o.PAUSED, o.OWNER, o.UNTIL, o.FENCE, o.TOKEN", "{lanes}"},
      {counters, "{counters}"}};
  if (builder.mysql()) tables.emplace_back("o.N", "{stripes}");
  std::vector<named_statement> checks;
  checks.reserve(tables.size());
  for (const auto& [columns, table] : tables) {
    std::string text = "SELECT COUNT(*) FROM (SELECT ";
    text.append(columns).append(" FROM ").append(table).append(" o WHERE 1 = 0) a");
    checks.push_back(builder.statement(text, {sql::type::integer}));
  }
  return checks;
}

/// Prepares the tables on one connection.
class table_setup {
 public:
  table_setup(const statement_builder& builder, const sql_outbox_setup& setup,
              sql::connection& connection)
      : builder_(builder), setup_(setup), connection_(connection) {}

  [[nodiscard]] lock_scope run() const {
    const auto locks = find_lock_scope();
    if (locks == lock_scope::node) wait_for_other_nodes(connection_);
    const auto set = outbox_tables_schema(setup_.prefix);
    if (setup_.create_schema) (void)sql::create_schema(connection_, builder_.dialect(), set);
    else (void)sql::read_schema_version(connection_, builder_.dialect(), set);
    // Tables of another version are found now, not by the first event.
    for (const auto& check : column_checks(builder_)) (void)check.query(connection_);
    const bool has_prefix = check_prefix();
    auto lanes = read_lanes();
    if (lanes.empty() || is_damaged(lanes)) {
      insert_lanes();
      lanes = read_lanes();
    } else if (builder_.mysql() && count_stripes() < stripe_count) {
      insert_lanes();
    }
    if (lanes.size() != setup_.lanes)
      throw error(errc::invalid_argument,
                  "the outbox " + builder_.tables().events + " has " +
                      std::to_string(lanes.size()) + (lanes.size() == 1 ? " lane" : " lanes") +
                      ", not " + std::to_string(setup_.lanes) +
                      ", which is fixed when the outbox is created; give --lanes " +
                      std::to_string(lanes.size()) + ", or outbox_options::lanes");
    if (!has_prefix) store_prefix();
    return locks;
  }

 private:
  /// The value of a SHOW statement; empty if the server does not have it.
  [[nodiscard]] std::string shown_value(const std::string& text) const {
    const auto rows =
        connection_.execute({.text = text, .results = {sql::type::text, sql::type::text}}, {}).rows;
    row_reader reader(rows);
    if (rows.empty()) return {};
    (void)reader.text();  // the name
    return reader.text();
  }

  /// A node that is alone in its cluster counts as one of several: others may join.
  [[nodiscard]] lock_scope find_lock_scope() const {
    if (!builder_.mysql() || shown_value("SHOW VARIABLES LIKE 'wsrep_on'") != "ON")
      return lock_scope::server;
    if (builder_.dialect() == sql::dialect_id::mariadb) return lock_scope::node;
    if (!setup_.allow_unsafe) refuse_mysql_cluster();
    return lock_scope::server;
  }

  /// MySQL has Galera as Percona XtraDB Cluster, which was never tried and lacks SET STATEMENT.
  void refuse_mysql_cluster() const {
    const auto nodes = shown_value("SHOW GLOBAL STATUS LIKE 'wsrep_cluster_size'");
    if (nodes.empty() || nodes == "0" || nodes == "1") return;
    throw error(
        errc::unsupported_type,
        "the server is a node of a MySQL cluster with Galera of " + nodes +
            " nodes, which do not share row locks: keys of the outbox can get stuck; use a MariaDB "
            "cluster or a server that is not part of a cluster, or allow it if all programs use "
            "the same node (.allow_unsafe, --allow-unsafe)");
  }

  /// The numbers of the lanes, in ascending order.
  [[nodiscard]] std::vector<std::int64_t> read_lanes() const {
    return integers(builder_
                        .statement("SELECT o.LANE FROM {lanes} o WHERE o.LANE >= 0 ORDER BY o.LANE",
                                   {sql::type::integer})
                        .query(connection_));
  }
  [[nodiscard]] std::int64_t count_stripes() const {
    return first_integer(builder_.statement("SELECT COUNT(*) FROM {stripes}", {sql::type::integer})
                             .query(connection_))
        .value_or(0);
  }

  /// The last lane in which something was counted.
  [[nodiscard]] std::optional<std::int64_t> last_counted_lane() const {
    return first_integer(
        builder_.statement("SELECT MAX(o.LANE) FROM {counters} o", {sql::type::integer})
            .query(connection_));
  }

  /// An outbox has the lanes 0, 1, ... up to a power of two. Otherwise a row was deleted or its
  /// number damaged, and the setup tells how many there are, if most of those exist.
  [[nodiscard]] bool is_damaged(const std::vector<std::int64_t>& lanes) const {
    const bool is_complete = std::has_single_bit(lanes.size()) &&
                             lanes.back() == static_cast<std::int64_t>(lanes.size()) - 1;
    const auto expected = static_cast<std::int64_t>(setup_.lanes);
    if (is_complete) {
      // The last lane of two may be missing. Then it has counters.
      const auto used = last_counted_lane();
      return lanes.size() < setup_.lanes && used && *used > lanes.back() && *used < expected;
    }
    const auto existing =
        std::ranges::count_if(lanes, [&](std::int64_t lane) { return lane < expected; });
    return 2 * existing >= expected - 1;
  }

  /// Inserts the lanes, the stripes of MariaDB and MySQL, and removes lanes that cannot exist.
  void insert_lanes() const {
    const auto insert_lane = builder_.statement(
        "INSERT INTO {lanes} (LANE, OWNER) VALUES (:lane, '')" + builder_.keep_existing("LANE"));
    const auto erase_lanes = builder_.statement("DELETE FROM {lanes} WHERE LANE >= :lanes");
    own_transaction transaction(connection_);
    for (std::size_t lane = 0; lane < setup_.lanes; ++lane)
      insert_lane.execute({transaction, lane});
    erase_lanes.execute({transaction, 0}, {{"lanes", setup_.lanes}});
    if (builder_.mysql()) {
      const auto insert_stripe = builder_.statement("INSERT INTO {stripes} (N) VALUES (:stripe)" +
                                                    builder_.keep_existing("N"));
      for (std::int64_t stripe = 0; stripe < stripe_count; ++stripe)
        insert_stripe.execute({transaction, 0}, {{"stripe", stripe}});
    }
    transaction.commit();
  }

  /// Throws errc::invalid_argument if the tables belong to another prefix. Returns false if no
  /// prefix is stored, because an earlier version created the tables.
  [[nodiscard]] bool check_prefix() const {
    const auto rows = builder_
                          .statement("SELECT o.OWNER FROM {lanes} o WHERE o.LANE = " +
                                         std::to_string(prefix_lane),
                                     {sql::type::text})
                          .query(connection_);
    if (rows.empty()) return false;
    const auto stored = row_reader(rows).text();
    if (stored == setup_.prefix) return true;
    if (!is_prefix_of_tables(stored)) {
      // The text was damaged: a prefix of another outbox would have the same table names.
      connection_.run(expand_prefix_deletion());
      return false;
    }
    throw error(errc::invalid_argument,
                "the table " + builder_.tables().events + " belongs to the outbox '" + stored +
                    "', and '" + setup_.prefix + "' would share it; open it as '" + stored +
                    "', or choose a prefix that differs in more than case and punctuation",
                {.path = "prefix"});
  }

  [[nodiscard]] bool is_prefix_of_tables(const std::string& prefix) const {
    try {
      return table_names_of(prefix).events == builder_.tables().events;
    } catch (const error&) {
      return false;
    }
  }
  [[nodiscard]] std::string expand_prefix_deletion() const {
    return builder_.statement("DELETE FROM {lanes} WHERE LANE = " + std::to_string(prefix_lane))
        .positional()
        .text;
  }

  void store_prefix() const {
    const auto insert_prefix = builder_.statement("INSERT INTO {lanes} (LANE, OWNER) VALUES (" +
                                                  std::to_string(prefix_lane) + ", :prefix/text)" +
                                                  builder_.keep_existing("LANE"));
    const sql::parameter prefix[]{std::string_view(setup_.prefix)};
    try {
      (void)connection_.execute(insert_prefix.positional(), prefix);
    } catch (const error& problem) {
      // An outbox of an earlier version works without, for a user or on a server that may only
      // read.
      if (problem.code() == errc::permission || detail::sql::is_read_only_server(problem)) return;
      throw;
    }
    (void)check_prefix();  // another process may have stored another prefix first
  }

  const statement_builder& builder_;
  const sql_outbox_setup& setup_;
  sql::connection& connection_;
};

}  // namespace

lock_scope prepare_tables(const std::shared_ptr<sql::context>& context,
                          const statement_builder& builder, const sql_outbox_setup& setup) {
  const transaction_runner transactions(context, builder, setup.prefix);
  auto locks = lock_scope::server;
  transactions.retry(
      [&] {
        const auto connection = context->pool.acquire_writer("outbox.create_schema");
        locks = table_setup(builder, setup, *connection).run();
      },
      when_in_doubt::retry);
  return locks;
}

default_outboxes find_default_outboxes(const std::shared_ptr<sql::context>& context) {
  const statement_builder builder(context->dialect(), table_names_of(default_prefix));
  const transaction_runner transactions(context, builder, std::string(default_prefix));
  default_outboxes existing;
  transactions.retry(
      [&] {
        const auto connection = context->pool.acquire_reader("outbox.find_tables");
        const auto exists = [&](std::string_view prefix) {
          return sql::inspect_schema(*connection, builder.dialect(), outbox_tables_schema(prefix))
              .exists;
        };
        existing = {.current = exists(default_prefix), .former = exists(former_default_prefix)};
      },
      when_in_doubt::retry);
  return existing;
}

std::shared_ptr<sql_backend> open_sql_outbox(std::shared_ptr<sql::context> context,
                                             const sql_outbox_setup& setup) {
  auto backend = std::make_shared<sql_backend>(std::move(context), setup);
  backend->open_file();
  return backend;
}

}  // namespace HOLDFAST_NAMESPACE::detail::outbox
