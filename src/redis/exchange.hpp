#pragma once

/// \file
/// Sends batches over connections and reads their replies, several at the same time.
///
/// States of an exchange, in their order:
///
///   queued        waits for a connection of the node's pool
///   connecting    the connection is new: socket, TLS and login are under way
///   transferring  sends what the socket accepts and reads what has arrived
///   finished      the batch has all its replies, or `problem` says why not
///
/// An open connection skips `connecting`. A failure or the deadline leads from every state to
/// `finished`. The owner then settles the batch and destroys the exchange, which returns the
/// connection to its pool.

#include "redis/batch.hpp"
#include "redis/node_pool.hpp"

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::redis {

/// One batch on its way to a node and back. No function blocks, except `advance` when it resolves
/// the host of a new connection.
/// Thread-safety: none.
class exchange {
 public:
  enum class state : std::uint8_t { queued, connecting, transferring, finished };

  /// Joins the queue of the pool. Keeps a reference to the pipeline. Add requests to `requests`
  /// before the first call of `advance`.
  exchange(pipeline& owner, std::shared_ptr<node_pool> pool);
  exchange(const exchange&) = delete;
  exchange& operator=(const exchange&) = delete;

  [[nodiscard]] state current() const noexcept { return state_; }
  [[nodiscard]] batch& requests() noexcept { return requests_; }
  [[nodiscard]] const std::string& node() const noexcept { return requests_.node(); }
  [[nodiscard]] pooled_connection& connection() noexcept { return connection_; }
  /// Returns true if the connection was ready for commands.
  [[nodiscard]] bool connected() const noexcept {
    return connection_.get() != nullptr && connection_->ready();
  }
  /// Why replies are missing; null if none are. Once finished.
  [[nodiscard]] const error* problem() const noexcept { return problem_ ? &*problem_ : nullptr; }

  /// Proceeds as far as possible. In the state `queued` the connection must be granted.
  void advance(steady::time_point deadline);
  /// Adds the sockets to poll before the next call of `advance`.
  void add_polls(std::vector<pollfd>& polls);
  /// Returns true if `advance` must be called after this poll.
  [[nodiscard]] bool is_due(std::span<const pollfd> polls) const noexcept;
  /// Returns when to call `advance` even if no socket is ready.
  [[nodiscard]] steady::time_point wake_at() const noexcept;
  /// Ends the exchange, and closes its connection. If the server refused another connection, and
  /// others are open, the exchange waits for one of those instead.
  void fail(const error& problem);

 private:
  batch requests_;
  pooled_connection connection_;
  state state_ = state::queued;
  short events_ = 0;            // to poll for while transferring
  std::size_t poll_index_ = 0;  // of its socket in the last poll, while transferring
  std::optional<error> problem_{};
};

/// The exchanges of one call. They run at the same time, and none waits for another.
/// Thread-safety: none.
class exchange_group {
 public:
  explicit exchange_group(steady::time_point deadline) : deadline_(deadline) {}

  [[nodiscard]] bool empty() const noexcept { return exchanges_.empty(); }
  /// Adds exchanges and starts those whose connection is granted.
  void start(std::list<exchange> added);
  /// Waits until an exchange can proceed, at most until `wake`, and lets it proceed. At the
  /// deadline all exchanges fail.
  void wait(steady::time_point wake);
  /// Ends the exchanges with other nodes than this one.
  void fail_others(const std::string& node, const error& problem);
  /// Calls the handler with each finished exchange and removes it.
  template <class Handler>
  void remove_finished(Handler handler) {
    for (auto each = exchanges_.begin(); each != exchanges_.end();) {
      if (each->current() != exchange::state::finished) {
        ++each;
        continue;
      }
      handler(*each);
      each = exchanges_.erase(each);
    }
  }
  [[nodiscard]] const std::list<exchange>& running() const noexcept { return exchanges_; }

 private:
  void poll_running(steady::time_point wake);

  steady::time_point deadline_;
  std::list<exchange> exchanges_{};
  std::vector<pollfd> polls_{};
};

}  // namespace HOLDFAST_NAMESPACE::detail::redis
