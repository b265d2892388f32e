#include "sql/schema_upgrade.hpp"

#include <holdfast/error.hpp>

#include "sql/dialect.hpp"
#include "sql/retry.hpp"

#include <chrono>
#include <utility>

namespace HOLDFAST_NAMESPACE::detail::sql {

namespace {

using namespace std::chrono_literals;

bool has_transactional_ddl(dialect_id dialect) {
  return dialect == dialect_id::sqlite || dialect == dialect_id::postgresql ||
         dialect == dialect_id::sqlserver;
}

std::int64_t first_count(connection& connection, const std::string& query) {
  const auto rows = connection.execute({.text = query, .results = {type::integer}}, {}).rows;
  const auto* const count = rows.empty() ? nullptr : std::get_if<std::int64_t>(&rows.at(0, 0));
  return count == nullptr ? 0 : *count;
}

void check_can_upgrade(const schema_set& set, const schema_state& state) {
  if (!state.readable)
    throw error(errc::permission, "the schema version of the " + set.name +
                                      " cannot be read; grant SELECT on " + state.version_table);
  if (state.version > set.current) check_schema_version(set, state.version);
}

/// Upgrades the tables of one set on one connection.
class upgrade_run {
 public:
  upgrade_run(connection& connection, dialect_id dialect, const schema_set& set, std::string table)
      : connection_(connection), dialect_(dialect), set_(set), table_(std::move(table)) {}

  std::vector<std::string> run(const schema_state& state) {
    if (!state.recorded) record(state.version);
    for (int version = state.version + 1; version <= set_.current; ++version) {
      constexpr retry_limits limits{.attempts = 10,
                                    .time = 30s,
                                    .shortest_pause = 1ms,
                                    .first_pause = 20ms,
                                    .longest_pause = 500ms};
      with_retries(
          limits, [&] { upgrade_to(version); },
          [&](const error& problem) { return is_retryable(problem) && !connection_.broken(); });
    }
    return std::move(completed_);
  }

 private:
  void record(int version) {
    for (const auto& text : {create_version_table(dialect_, table_),
                             insert_version(dialect_, table_, set_, version)}) {
      run_create(connection_, text);
      completed_.push_back(text);
    }
  }

  void upgrade_to(int version) {
    std::vector<std::string> texts;
    if (has_transactional_ddl(dialect_)) {
      connection_.begin();
      try {
        // Locks the row until the commit.
        connection_.run("UPDATE " + table_ + " SET VERSION = VERSION WHERE SET_NAME = '" +
                        schema_row_name(dialect_, set_) + "'");
        if (is_older_than(version)) texts = run_steps(version);
        connection_.commit();
      } catch (...) {
        connection_.rollback();
        throw;
      }
    } else if (is_older_than(version)) {
      texts = run_steps(version);
    }
    completed_.insert(completed_.end(), texts.begin(), texts.end());
  }

  [[nodiscard]] bool is_older_than(int version) {
    return read_recorded_version(connection_, dialect_, table_, set_).value_or(1) < version;
  }

  [[nodiscard]] bool is_done(const schema_step& step) {
    return !step.unless.empty() && first_count(connection_, step.unless) != 0;
  }

  std::vector<std::string> run_steps(int version) {
    std::vector<std::string> texts;
    const auto run_text = [&](const std::string& text) {
      connection_.run(text);
      texts.push_back(text);
    };
    for (const auto& step : set_.upgrade(dialect_, version)) {
      if (is_done(step)) continue;
      try {
        run_text(step.text);
      } catch (const error&) {
        // Another process may have run it since is_done().
        if (connection_.broken() || step.unless.empty() || !is_done(step)) throw;
      }
    }
    run_text(update_version(dialect_, table_, set_, version));
    return texts;
  }

  connection& connection_;
  const dialect_id dialect_;
  const schema_set& set_;
  const std::string table_;
  std::vector<std::string> completed_{};
};

}  // namespace

std::vector<std::string> upgrade_statements(dialect_id dialect, const schema_set& set,
                                            const schema_state& state) {
  if (!state.exists) return {};
  check_can_upgrade(set, state);
  std::vector<std::string> statements;
  const auto& table = state.version_table;
  if (!state.recorded) {
    statements.push_back(create_version_table(dialect, table));
    statements.push_back(insert_version(dialect, table, set, state.version));
  }
  for (int version = state.version + 1; version <= set.current; ++version) {
    for (auto& step : set.upgrade(dialect, version)) statements.push_back(std::move(step.text));
    statements.push_back(update_version(dialect, table, set, version));
  }
  return statements;
}

std::vector<std::string> upgrade_schema(connection& connection, dialect_id dialect,
                                        const schema_set& set) {
  const auto state = inspect_schema(connection, dialect, set);
  if (!state.exists) return {};
  check_can_upgrade(set, state);
  return upgrade_run(connection, dialect, set, state.version_table).run(state);
}

}  // namespace HOLDFAST_NAMESPACE::detail::sql
