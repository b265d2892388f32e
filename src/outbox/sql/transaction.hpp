#pragma once

/// \file
/// Transactions that the outbox begins itself, on connections of the pool.

#include <holdfast/error.hpp>

#include "outbox/sql/statement.hpp"
#include "sql/context.hpp"
#include "sql/retry.hpp"

#include <functional>
#include <memory>
#include <type_traits>

namespace HOLDFAST_NAMESPACE::detail::outbox {

/// A transaction on a connection. The destructor rolls back what was not committed.
class own_transaction final : public join::transaction {
 public:
  explicit own_transaction(sql::connection& connection) : connection_(connection) {
    connection_.begin();
  }
  own_transaction(const own_transaction&) = delete;
  own_transaction& operator=(const own_transaction&) = delete;
  ~own_transaction() override {
    if (!ended_) connection_.rollback();
  }
  [[nodiscard]] sql::dialect_id dialect() const override { return connection_.dialect(); }
  sql::outcome execute(const sql::statement& statement,
                       std::span<const sql::parameter> parameters) override {
    return connection_.execute(statement, parameters);
  }
  void commit() {
    ended_ = true;  // also if the commit fails
    connection_.commit();
  }

 private:
  sql::connection& connection_;
  bool ended_ = false;
};

/// A connection without a transaction: each statement is one of its own.
class single_statements final : public join::transaction {
 public:
  explicit single_statements(sql::connection& connection) : connection_(connection) {}
  [[nodiscard]] sql::dialect_id dialect() const override { return connection_.dialect(); }
  sql::outcome execute(const sql::statement& statement,
                       std::span<const sql::parameter> parameters) override {
    return connection_.execute(statement, parameters);
  }

 private:
  sql::connection& connection_;
};

using sql::when_in_doubt;

/// Galera: waits until the node has applied what other nodes had committed before. The next
/// transaction sees what was acknowledged through any node.
void wait_for_other_nodes(sql::connection& connection);

/// Runs work in transactions and retries it after transient failures, until the statement timeout.
/// Thread-safety: every function may be called from any thread.
class transaction_runner {
 public:
  transaction_runner(std::shared_ptr<sql::context> context, const statement_builder& builder,
                     std::string prefix);

  /// Runs `work(lane_session)`, commits, and returns the result of `work`.
  template <class Work>
  auto run(std::size_t lane, const Work& work, when_in_doubt policy = when_in_doubt::retry) const {
    using result_type = decltype(work(std::declval<const lane_session&>()));
    if constexpr (std::is_void_v<result_type>) {
      run_and_commit(lane, work, policy);
    } else {
      std::optional<result_type> result;
      run_and_commit(lane, [&](const lane_session& session) { result = work(session); }, policy);
      // NOLINTNEXTLINE(bugprone-unchecked-optional-access): run_and_commit did it, or threw
      return std::move(result).value();
    }
  }
  /// The same for `work` that runs one statement: without BEGIN and COMMIT.
  template <class Work>
  auto run_statement(std::size_t lane, Work work, when_in_doubt policy) const {
    std::optional<decltype(work(std::declval<const lane_session&>()))> result;
    retry(
        [&] {
          const auto connection = context_->pool.acquire_reader("outbox.statement");
          if (locks_ == lock_scope::node) wait_for_other_nodes(*connection);
          single_statements transaction(*connection);
          result = work(lane_session{transaction, lane});
        },
        policy);
    // NOLINTNEXTLINE(bugprone-unchecked-optional-access): retry did it, or threw
    return std::move(result).value();
  }
  /// Runs `work`, which handles transactions itself.
  void retry(const std::function<void()>& work, when_in_doubt policy) const;

 private:
  void run_and_commit(std::size_t lane, const std::function<void(const lane_session&)>& work,
                      when_in_doubt policy) const;
  /// Says what an error of the database means for the outbox, and what to do.
  [[nodiscard]] error explain(const error& problem) const;

  std::shared_ptr<sql::context> context_;
  sql::dialect_id dialect_;
  lock_scope locks_;
  std::string events_table_;
  std::string prefix_;
};

}  // namespace HOLDFAST_NAMESPACE::detail::outbox
