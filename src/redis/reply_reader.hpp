#pragma once

/// \file
/// Turns bytes into replies (the protocol RESP 2), within limits.

#include <holdfast/redis.hpp>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::redis {

/// After an exception the reader must not be used again, nor its connection.
/// Thread-safety: none.
class HOLDFAST_API reply_reader {
 public:
  /// Lists in lists that a reply may have.
  static constexpr std::size_t max_depth = 64;

  explicit reply_reader(std::size_t max_reply) : max_reply_(max_reply) {}
  reply_reader(const reply_reader&) = delete;
  reply_reader& operator=(const reply_reader&) = delete;

  void feed(std::string_view bytes);
  /// Returns the next reply if it is complete. Throws errc::too_large, errc::too_deep (more than
  /// max_depth nested lists) or errc::malformed.
  [[nodiscard]] std::optional<reply> next();
  /// Returns true if no bytes of another reply have arrived.
  [[nodiscard]] bool empty() const noexcept {
    return position_ == buffer_.size() && open_lists_.empty();
  }

 private:
  /// A list that has fewer elements than its size so far. All of them exist: the missing ones are
  /// nil.
  struct open_list {
    reply::list* elements;
    std::size_t received = 0;
  };

  bool read_value(reply& target);
  bool read_text(std::string_view length, reply& target);
  void read_list(std::string_view length, reply& target);
  [[nodiscard]] std::optional<std::string_view> peek_line();
  void reserve(std::size_t bytes);
  void discard_consumed();

  std::string buffer_{};
  std::size_t position_ = 0;  // of the next byte to read
  std::size_t scanned_ = 0;   // no line ends before this position, seen from `position_`
  reply root_{};
  std::vector<open_list> open_lists_{};  // outermost first; they are parts of root_
  std::size_t max_reply_;
  std::size_t used_ = 0;  // bytes of the current reply so far
};

}  // namespace HOLDFAST_NAMESPACE::detail::redis
