#pragma once

#include <holdfast/redis.hpp>

#include "redis/connection.hpp"
#include "redis/counters.hpp"

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace HOLDFAST_NAMESPACE::redis {

/// The connections to one node: made on demand, bounded, handed out one caller at a time, in the order in which they came. Thread-safety:
/// every function may be called from any thread; tickets and leases, by their owner.
class node_pool {
 public:
  node_pool(std::string address, const settings& from, const tls_context* tls, counters& count);
  ~node_pool();
  node_pool(const node_pool&) = delete;
  node_pool& operator=(const node_pool&) = delete;

  /// A connection for as long as this lives; it goes back by itself, unless it is broken.
  class lease {
   public:
    lease(std::shared_ptr<node_pool> from, std::unique_ptr<connection> held) noexcept : from_(std::move(from)), held_(std::move(held)) {}
    lease(lease&&) noexcept = default;
    lease& operator=(lease&&) = delete;
    ~lease() {
      if (from_ && held_) from_->take_back(std::move(held_));
    }
    [[nodiscard]] connection& operator*() const noexcept { return *held_; }
    [[nodiscard]] connection* operator->() const noexcept { return held_.get(); }

   private:
    std::shared_ptr<node_pool> from_;
    std::unique_ptr<connection> held_;
  };

  /// A place in the queue for a connection; it leaves the queue by itself. Nobody waits unless asked to.
  class ticket {
   public:
    explicit ticket(std::shared_ptr<node_pool> from);
    ticket(const ticket&) = delete;
    ticket& operator=(const ticket&) = delete;
    ~ticket();

    /// Is it its turn?
    [[nodiscard]] bool called();
    /// Waits until it is, or the deadline has come: false.
    [[nodiscard]] bool wait(steady::time_point deadline);
    /// When it is its turn: has it a connection that is made already?
    [[nodiscard]] bool has_connection();
    /// When it is its turn, once. The connection may still have to be set up. Throws what looking up the host throws.
    [[nodiscard]] lease take(steady::time_point deadline);
    /// Why it had no turn.
    [[nodiscard]] error busy() const;

   private:
    friend class node_pool;
    std::shared_ptr<node_pool> from_;
    bool seen_ = false;     // that it was called
    bool checked_ = false;  // that the connection is alive
    // Of the pool's mutex until it is called:
    bool called_ = false;
    std::unique_ptr<connection> held_{};  // null: there is room for a new one
    std::condition_variable* sleeper_ = nullptr;
  };

  /// Nobody needs it for now.
  void close_idle() noexcept;
  /// In a child made by fork: closes its copies of the idle sockets, if nobody held the lock, and touches nothing else. Of no further use.
  void abandon() noexcept;

 private:
  void enter(ticket& who);
  void leave(ticket& who) noexcept;
  void drop_dead(ticket& who);
  void take_back(std::unique_ptr<connection> done) noexcept;
  void pass_on(std::unique_ptr<connection> done) noexcept;

  const std::string address_;
  const settings& from_;
  const tls_context* const tls_;
  counters& count_;
  std::mutex mutex_;
  std::deque<ticket*> queue_{};  // empty while a connection is idle, or there is room for one
  std::vector<std::unique_ptr<connection>> idle_{};
  std::size_t seats_ = 0;  // connections, and permissions to make one
};

}  // namespace HOLDFAST_NAMESPACE::redis
