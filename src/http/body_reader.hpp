#pragma once

#include "http/head_lines.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace HOLDFAST_NAMESPACE::detail::http {

/// A piece of the content of a message.
struct body_piece {
  read_status status = read_status::incomplete;
  /// How much of the input was read. If the status is `incomplete` and all of it was read, more
  /// input is needed.
  std::size_t consumed = 0;
  /// A part of the input; may be empty.
  std::string_view content{};
};

/// Reads the content of a message, which may be chunked and have trailers (RFC 9112, section 7).
/// The content does not depend on how the input was cut.
/// Thread-safety: none.
class body_reader {
 public:
  /// Begins the content of another message.
  void begin(framing kind, std::uint64_t length, const limits& accepted) noexcept;
  /// Changes the limit of the content, for example to that of a route. Call it before `read`.
  void set_limit(std::uint64_t bytes) noexcept { limits_.body = bytes; }
  /// Reads until there is a piece of content, the content is complete, or the input is used up.
  [[nodiscard]] body_piece read(std::string_view input);
  /// The peer has closed the connection. Returns true if the content is complete with that.
  [[nodiscard]] bool finish() noexcept;

  [[nodiscard]] read_status status() const noexcept;
  [[nodiscard]] defect problem() const noexcept { return problem_; }
  /// Bytes of content so far.
  [[nodiscard]] std::uint64_t size() const noexcept { return size_; }
  [[nodiscard]] const fields& trailers() const noexcept { return trailers_; }

 private:
  enum class state : std::uint8_t {
    size,             // first digit of a chunk size
    more_size,        // after a digit
    extension_name,   // after ';'
    in_name,          // in the name of an extension
    extension_value,  // after '='
    in_token,
    in_quotes,
    escaped,
    after_quotes,
    size_line_feed,  // after the CR of the size line
    data,
    data_return,     // CR after the data
    data_line_feed,  // LF after the data
    trailers,
    counted,  // Content-Length
    until_close,
    done,
    failed
  };
  body_piece fail(defect problem, std::size_t consumed) noexcept;
  body_piece read_data(std::string_view input, std::size_t offset);
  body_piece read_trailers(std::string_view input, std::size_t offset);
  [[nodiscard]] defect read_size_line(char c) noexcept;
  [[nodiscard]] defect begin_data() noexcept;
  [[nodiscard]] bool is_extension() const noexcept {
    return state_ >= state::extension_name && state_ <= state::after_quotes;
  }

  limits limits_{};
  state state_ = state::done;
  defect problem_ = defect::none;
  std::uint64_t remaining_ = 0;  // bytes of the chunk, or of the content
  std::uint64_t size_ = 0;
  std::size_t digits_ = 0;
  std::size_t extension_bytes_ = 0;
  std::string trailer_text_{};
  head_lines trailer_lines_{};
  fields trailers_{};
};

}  // namespace HOLDFAST_NAMESPACE::detail::http
