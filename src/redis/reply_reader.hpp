#pragma once

/// \file
/// Turns bytes into replies with the reader of hiredis, within limits. It builds `reply` values
/// directly, without the reply tree of hiredis.

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

namespace HOLDFAST_NAMESPACE::detail::redis {

/// After an exception the reader must not be used again, nor its connection.
/// Thread-safety: none.
class HOLDFAST_API reply_reader {
 public:
  explicit reply_reader(std::size_t max_reply);
  ~reply_reader();
  reply_reader(const reply_reader&) = delete;
  reply_reader& operator=(const reply_reader&) = delete;

  void feed(std::string_view bytes);
  /// Returns the next reply if it is complete. Throws errc::too_large, errc::too_deep (more than 7
  /// nested lists) or errc::malformed.
  [[nodiscard]] std::optional<reply> next();
  /// Returns true if no bytes of another reply have arrived.
  [[nodiscard]] bool empty() const noexcept;

 private:
  struct deleter {
    void operator()(redisReader* reader) const noexcept;
  };
  static void* on_text(const redisReadTask* task, char* text, std::size_t size) noexcept;
  static void* on_list(const redisReadTask* task, int size) noexcept;
  static void* on_integer(const redisReadTask* task, long long number) noexcept;
  static void* on_nil(const redisReadTask* task) noexcept;
  static const redisReplyObjectFunctions functions;

  reply& target_of(const redisReadTask& task) noexcept;
  bool reserve(std::size_t bytes) noexcept;
  [[noreturn]] void throw_too_large() const;
  [[noreturn]] void throw_reader_error() const;

  std::unique_ptr<redisReader, deleter> reader_;
  reply root_{};
  std::size_t max_reply_;
  std::size_t used_ = 0;  // bytes of the current reply so far
  bool too_large_ = false;
};

}  // namespace HOLDFAST_NAMESPACE::detail::redis
