#pragma once

/// \file
/// The scripts of the outbox as hiredis sends them. What our client sends is watched once (MONITOR), and sent again with other ids: so the
/// floor runs the very same scripts with the very same arguments, and nothing of ours around them.

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

struct redisContext;
struct redisReply;

namespace holdfast::bench {

/// hiredis as well as one can use it by hand: one connection, blocking. Throws holdfast::error.
class raw_redis {
 public:
  /// `host:port` or the path of a socket.
  explicit raw_redis(const std::string& address);
  ~raw_redis();
  raw_redis(const raw_redis&) = delete;
  raw_redis& operator=(const raw_redis&) = delete;

  using words = std::vector<std::string>;
  using answer = std::unique_ptr<redisReply, void (*)(redisReply*)>;
  answer call(const words& what);
  /// The next answer, to a command that goes on (MONITOR).
  answer read();

 private:
  std::unique_ptr<redisContext, void (*)(redisContext*)> held_;
};

/// The commands that reach the server while something is done: each as its words.
[[nodiscard]] std::vector<raw_redis::words> watch(const std::string& address, const std::function<void()>& meanwhile);

/// The three scripts that an event needs, ready to be sent.
class raw_outbox {
 public:
  /// `command`s as they were watched: of publishing, claiming and settling one batch.
  raw_outbox(const std::string& address, raw_redis::words publish, raw_redis::words claim, raw_redis::words settle);

  /// A batch of new events.
  void publish();
  /// A batch; gives how many. `settle` is for these.
  std::size_t claim();
  void settle();
  /// Until somebody who published pushed into this list, or a second is over: false.
  bool wait(const std::string& list);
  /// Removes all keys that begin with this.
  void remove(const std::string& prefix);
  void ping() { redis_.call({"PING"}); }
  /// Seconds of the server's main thread so far; bytes that it uses.
  [[nodiscard]] double server_seconds();
  [[nodiscard]] double server_bytes();

 private:
  [[nodiscard]] double info(const char* section, std::string_view name);

  raw_redis redis_;
  raw_redis::words publish_, claim_, settle_;
  std::vector<std::size_t> ids_{};  // the words of publish_ that are ids
  std::string token_{};
  std::vector<std::string> claimed_{};
};

}  // namespace holdfast::bench
