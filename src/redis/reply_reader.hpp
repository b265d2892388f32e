#pragma once

/// \file
/// Bytes in, replies out: hiredis's reader behind limits. It builds our values directly, without a tree of its own.

#include <holdfast/redis.hpp>

#include <cstddef>
#include <memory>
#include <optional>
#include <string_view>

extern "C" {
struct redisReader;
struct redisReadTask;
struct redisReplyObjectFunctions;
}

namespace HOLDFAST_NAMESPACE::redis {

/// Thread-safety: none. After an error it is of no further use, and neither is its connection.
class HOLDFAST_API reply_reader {
 public:
  explicit reply_reader(std::size_t max_reply);
  ~reply_reader();
  reply_reader(const reply_reader&) = delete;
  reply_reader& operator=(const reply_reader&) = delete;

  void feed(std::string_view bytes);
  /// The next whole reply, if it is there. Throws errc::too_large, errc::too_deep (lists in lists, more than 7) or errc::malformed.
  [[nodiscard]] std::optional<reply> next();
  /// Is there nothing left over?
  [[nodiscard]] bool empty() const noexcept;

 private:
  struct deleter {
    void operator()(redisReader* held) const noexcept;
  };
  static void* on_text(const redisReadTask* task, char* text, std::size_t size) noexcept;
  static void* on_list(const redisReadTask* task, int size) noexcept;
  static void* on_integer(const redisReadTask* task, long long number) noexcept;
  static void* on_nil(const redisReadTask* task) noexcept;
  static const redisReplyObjectFunctions functions;

  reply& place_of(const redisReadTask& task) noexcept;
  bool charge(std::size_t bytes) noexcept;

  std::unique_ptr<redisReader, deleter> reader_;
  reply root_{};
  std::size_t max_reply_;
  std::size_t charged_ = 0;  // what the reply takes so far
  bool too_large_ = false;
};

}  // namespace HOLDFAST_NAMESPACE::redis
