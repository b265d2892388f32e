#pragma once

/// \file
/// hiredis as a program would use it by hand: one blocking connection. The floor of the Redis
/// client and of the outbox on Redis.

#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

struct redisContext;
struct redisReply;

namespace holdfast::bench {

/// Errors: every function throws errc::unavailable, also if the server refuses a command.
class raw_redis {
 public:
  /// The arguments of a command, its name first.
  using arguments = std::vector<std::string>;
  using reply = std::unique_ptr<redisReply, void (*)(redisReply*)>;

  /// `address` is `host:port` or the path of a socket.
  explicit raw_redis(const std::string& address);
  ~raw_redis();
  raw_redis(const raw_redis&) = delete;
  raw_redis& operator=(const raw_redis&) = delete;

  /// Sends a command and reads its reply.
  reply call(const arguments& command);
  /// Queues a command of at most 8 arguments. Does not allocate memory.
  void append(std::initializer_list<std::string_view> command);
  /// Sends the queued commands and reads the next reply.
  reply read();

 private:
  std::unique_ptr<redisContext, void (*)(redisContext*)> connection_;
};

}  // namespace holdfast::bench
