#pragma once

#include <holdfast/redis.hpp>

#include "redis/connection.hpp"
#include "redis/counters.hpp"

#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace HOLDFAST_NAMESPACE::redis {

/// The connections to one node: made on demand, bounded, handed out one caller at a time.
/// Thread-safety: every function may be called from any thread.
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

  /// Waits until the deadline when all are busy. Throws errc::timeout (transient), or what connecting throws.
  [[nodiscard]] static lease acquire(const std::shared_ptr<node_pool>& from, steady::time_point deadline);
  /// Nobody needs it for now.
  void close_idle() noexcept;
  /// In a child made by fork: closes its copies of the idle sockets, if nobody held the lock, and touches nothing else. Of no further use.
  void abandon() noexcept;

 private:
  std::unique_ptr<connection> take_idle(std::unique_lock<std::mutex>& lock);
  void take_back(std::unique_ptr<connection> done) noexcept;
  void forget_one() noexcept;

  const std::string address_;
  const settings& from_;
  const tls_context* const tls_;
  counters& count_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::unique_ptr<connection>> idle_{};
  std::size_t open_ = 0;
};

}  // namespace HOLDFAST_NAMESPACE::redis
