#pragma once

/// \file
/// The floor of the outbox on Redis: its scripts, sent by hiredis.
///
/// MONITOR records once what our client sends. The floor then sends the same commands with new ids:
/// the same scripts with the same arguments, and none of our code around them.

#include "bench/raw_redis.hpp"

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::bench {

/// Runs `action` and returns the commands that reached the server meanwhile.
[[nodiscard]] std::vector<raw_redis::arguments> record_commands(
    const std::string& address, const std::function<void()>& action);

/// Sends the three scripts of an event: publish, claim, settle.
class raw_outbox {
 public:
  /// The commands are as recorded, each for one batch.
  raw_outbox(const std::string& address, raw_redis::arguments publish, raw_redis::arguments claim,
             raw_redis::arguments settle);

  /// Publishes a batch of new events.
  void publish();
  /// Claims a batch and returns its size.
  std::size_t claim();
  /// Settles the events of the last claim.
  void settle();
  /// Waits for an element of a list. Returns false after a second without one.
  bool wait(const std::string& list);
  /// Removes all keys that begin with `prefix`.
  void remove_keys(const std::string& prefix);
  void ping() { redis_.call({"PING"}); }
  /// Processor time of the server's main thread so far.
  [[nodiscard]] double server_seconds();
  /// Memory that the server uses.
  [[nodiscard]] double server_bytes();

 private:
  [[nodiscard]] double info(const char* section, std::string_view field);

  raw_redis redis_;
  raw_redis::arguments publish_, claim_, settle_;
  std::vector<std::size_t> id_positions_{};  // in publish_
  std::string token_{};
  std::vector<std::string> claimed_ids_{};
};

}  // namespace holdfast::bench
