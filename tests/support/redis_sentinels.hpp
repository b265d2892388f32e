#pragma once

#include "support/redis_server.hpp"

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::test {

/// One Sentinel process.
class redis_sentinel : public redis_endpoint, public server_control {
 public:
  /// `configuration` has the lines of sentinel.conf without the port. The Sentinel rewrites its
  /// file, and reads it again when it is restarted.
  explicit redis_sentinel(const std::vector<std::string>& configuration);
  ~redis_sentinel();

 private:
  temporary_directory directory_;
};

/// A master behind Sentinels on 127.0.0.1, known by one of the Sentinels.
/// Thread-safety: every function may be called from any thread.
class redis_sentinels_endpoint : public redis_endpoint {
 public:
  static constexpr std::string_view kind = "redis-sentinels";
  static constexpr std::string_view master_name = "main";

  explicit redis_sentinels_endpoint(std::uint16_t port) : redis_endpoint(port) {}
  [[nodiscard]] std::string url() const {
    return "redis+sentinel://" + address() + "/" + std::string(master_name);
  }
};

/// A master, two replicas (nodes 0 to 2) and three Sentinels with a quorum of two. Started by the
/// constructor, gone after the destructor. Thread-safety: one thread at a time; clients may come
/// from anywhere.
class redis_sentinels : public redis_sentinels_endpoint {
 public:
  using endpoint = redis_sentinels_endpoint;

  struct options {
    /// Silence after which a Sentinel believes that a server is down. Long: a busy machine must not
    /// look like a dead master. A test of a failover says a short one.
    std::chrono::milliseconds down_after = std::chrono::seconds(30);
    std::vector<std::string> settings{};           ///< of every server, as in redis.conf
    std::vector<std::string> sentinel_settings{};  ///< of every Sentinel, as in sentinel.conf
    std::string scheme = "redis+sentinel";
  };
  explicit redis_sentinels(options configured);
  redis_sentinels() : redis_sentinels(options{}) {}

  [[nodiscard]] std::size_t size() const noexcept { return nodes_.size(); }
  [[nodiscard]] redis_server& node(std::size_t index) { return *nodes_.at(index); }
  [[nodiscard]] std::size_t sentinel_count() const noexcept { return sentinels_.size(); }
  [[nodiscard]] redis_sentinel& sentinel(std::size_t index) { return *sentinels_.at(index); }
  /// All Sentinels.
  [[nodiscard]] std::string url() const;
  /// One Sentinel: the others must be learned.
  [[nodiscard]] std::string url_of(std::size_t sentinel) const;

  /// The node that most of the Sentinels that run name as the master; nothing if they disagree.
  [[nodiscard]] std::optional<std::size_t> master();
  /// The node that is the master, in the eyes of most Sentinels and in its own, and is not `old`.
  [[nodiscard]] std::optional<std::size_t> promoted(std::size_t old);

  /// Waits until all Sentinels know each other and both replicas, and both replicas are in step.
  void wait_until_well();
  /// SENTINEL FAILOVER: a failover without a failure. Returns the new master when all Sentinels
  /// agree.
  std::size_t fail_over();

 private:
  [[nodiscard]] bool is_well();

  options options_;
  std::vector<std::unique_ptr<redis_server>> nodes_{};
  std::vector<std::unique_ptr<redis_sentinel>> sentinels_{};
};

}  // namespace holdfast::test
