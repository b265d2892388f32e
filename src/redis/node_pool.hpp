#pragma once

/// \file
/// The connections to one node, and the pools of all nodes of a client.

#include <holdfast/redis.hpp>

#include "redis/connect_gate.hpp"
#include "redis/connection.hpp"
#include "redis/counters.hpp"
#include "redis/slot_map.hpp"

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::redis {

class pooled_connection;

/// A limited number of connections, opened on demand. When all are in use, callers get them in the
/// order in which they came.
///
/// The limit is options::connections. A server that refuses another connection because of its own
/// limit (maxclients) lowers it to the number of open ones: callers wait for those, if there are
/// any. After a pause one caller at a time tries to open another one, until all are open.
///
/// While a server cannot be reached, a connect_gate limits the attempts.
/// Thread-safety: every function may be called from any thread.
class node_pool {
 public:
  /// Keeps references to all but the address.
  node_pool(std::string address, const settings& configured, const net::tls_context* tls,
            counters& counted);
  ~node_pool();
  node_pool(const node_pool&) = delete;
  node_pool& operator=(const node_pool&) = delete;

  [[nodiscard]] const std::string& address() const noexcept { return address_; }
  void close_idle() noexcept;
  /// After fork, in the child: closes the child's copies of the idle sockets, unless the pool was
  /// locked during fork. The pool must not be used afterwards.
  void abandon() noexcept;

 private:
  friend class pooled_connection;
  void enter(pooled_connection& caller);
  void leave(pooled_connection& caller) noexcept;
  void replace_dead(std::unique_ptr<connection>& idle);
  void pass_on(std::unique_ptr<connection> released) noexcept;
  [[nodiscard]] bool return_to_queue(pooled_connection& caller);
  void grant_waiting(steady::time_point now) noexcept;
  void grant(pooled_connection& caller, std::unique_ptr<connection> granted) noexcept;
  [[nodiscard]] std::size_t limit(steady::time_point now) const noexcept;
  void count_closed(std::size_t connections) noexcept;

  const std::string address_;
  const settings& settings_;
  const net::tls_context* const tls_;
  counters& counters_;
  std::mutex mutex_;
  // Callers that wait. Empty while a connection is idle.
  std::deque<pooled_connection*> queue_{};
  std::vector<std::unique_ptr<connection>> idle_{};
  std::size_t permits_ = 0;  // granted: each allows one connection, which may be not open yet
  std::size_t ready_ = 0;    // connections that have logged in and are not closed
  bool connected_before_ = false;
  connect_gate gate_{};
  // The server's own limit (maxclients):
  bool refused_more_ = false;
  unsigned refusals_ = 0;  // in a row
  steady::time_point open_more_at_{};
};

/// A caller's right to one connection of a pool. It waits in the queue of the pool until the pool
/// grants it a connection, or the permit to open one. The destructor leaves the queue or returns
/// the connection.
///
/// Thread-safety: none.
class pooled_connection {
 public:
  explicit pooled_connection(std::shared_ptr<node_pool> pool);
  ~pooled_connection();
  pooled_connection(const pooled_connection&) = delete;
  pooled_connection& operator=(const pooled_connection&) = delete;

  /// Returns true if the pool has granted a connection. Does not wait.
  [[nodiscard]] bool granted();
  /// Waits until `granted` is true, or until the deadline.
  void wait(steady::time_point deadline);
  /// Once granted: returns true if the connection is open already. Replaces a connection that the
  /// server has closed, so that no command is sent over it and ends in doubt.
  [[nodiscard]] bool is_open();
  /// Once granted: starts to open a connection unless it is open. Throws what resolving the host
  /// throws, or why the server could not be reached a moment ago.
  void open(steady::time_point deadline);
  /// The connection is ready for commands.
  void set_up_done();
  /// `open`, or setting up the connection, has failed. Returns true if the server has refused
  /// another connection and the caller waits for one that is open: it is in the queue again.
  [[nodiscard]] bool set_up_failed(const error& problem);

  /// Null until `open` has returned.
  [[nodiscard]] connection* get() const noexcept { return connection_.get(); }
  [[nodiscard]] connection* operator->() const noexcept { return connection_.get(); }
  [[nodiscard]] node_pool& pool() const noexcept { return *pool_; }
  /// The error of a caller whose deadline passes before a connection is granted.
  [[nodiscard]] error busy_error() const;

 private:
  friend class node_pool;
  std::shared_ptr<node_pool> pool_;
  bool granted_seen_ = false;  // saves the lock
  bool checked_ = false;       // that the connection is alive
  bool connecting_ = false;    // the gate waits for the outcome
  steady::time_point connect_start_{};
  // Guarded by the mutex of the pool until granted:
  bool granted_ = false;
  std::unique_ptr<connection> connection_{};  // null: a permit to open one
  std::condition_variable* waiter_ = nullptr;
};

/// The pools of all nodes.
/// Thread-safety: every function may be called from any thread.
class node_pools {
 public:
  node_pools(const settings& configured, const net::tls_context* tls, counters& counted)
      : settings_(configured), tls_(tls), counters_(counted) {}

  [[nodiscard]] std::shared_ptr<node_pool> get(const std::string& address);
  /// Closes the idle connections to nodes that have left the Cluster.
  void remove_absent(const slot_map& map);
  /// Closes the idle connections to all servers but this one, when it has become the master.
  void keep_only(const std::string& master);
  /// See node_pool::abandon.
  void abandon() noexcept;

 private:
  const settings& settings_;
  const net::tls_context* const tls_;
  counters& counters_;
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<node_pool>, std::less<>> pools_{};
  std::uint64_t seen_refreshes_ = 0;  // of the slot map, at the last remove_absent
  std::string seen_master_{};         // at the last keep_only
};

}  // namespace HOLDFAST_NAMESPACE::detail::redis
