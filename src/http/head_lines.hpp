#pragma once

/// \file
/// What the readers of requests and responses share: the lines of a head that arrives in pieces,
/// and the fields that decide where a message ends.

#include "http/defect.hpp"
#include "http/fields.hpp"
#include "http/limits.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace HOLDFAST_NAMESPACE::detail::http {

enum class read_status : std::uint8_t {
  incomplete,  ///< more bytes are needed
  complete,
  failed  ///< the message has a defect; the connection must be closed
};

/// Where the content of a message ends (RFC 9112, section 6.3).
enum class framing : std::uint8_t { none, length, chunked, until_close };

/// Splits a head into lines. The result does not depend on how the bytes were cut: a line is looked
/// at when it is complete, and the limits are compared with positions, not with what has arrived.
/// Thread-safety: none.
class head_lines {
 public:
  struct line {
    read_status status = read_status::incomplete;
    std::string_view text{};  ///< without CR LF
    std::size_t offset = 0;
  };
  void reset() noexcept { begin_ = scanned_ = 0; }
  /// Returns the next line of a text that begins with the head. `problem` is set if it failed.
  [[nodiscard]] line next(std::string_view bytes, const limits& accepted, defect& problem) noexcept;
  /// Bytes of the lines so far.
  [[nodiscard]] std::size_t size() const noexcept { return begin_; }

 private:
  std::size_t begin_ = 0;    // of the line that is not complete yet
  std::size_t scanned_ = 0;  // no LF between begin_ and here
};

/// The fields that frame a message, gathered while its head is read.
struct framing_fields {
  std::optional<std::uint64_t> length{};
  std::string_view host{};
  std::uint32_t host_count = 0;
  bool chunked = false;
  bool close = false;
  bool keep_alive = false;
  bool has_expectation = false;
  bool expects_continue = false;

  /// Takes a field into account if it matters here. `text` is what follows the colon.
  [[nodiscard]] defect add(std::string_view name, std::string_view text) noexcept;
};

}  // namespace HOLDFAST_NAMESPACE::detail::http
