#pragma once

/// \file
/// Reads requests (RFC 9112). Strict: a message that two programs could read differently is
/// refused, and nothing is repaired. Beyond the RFC, an empty line before the request line, a Host
/// that differs from an absolute target, a repeated Content-Length, and a tab beside the value of
/// Host, Content-Length or Transfer-Encoding are refused.

#include "http/body_reader.hpp"

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace HOLDFAST_NAMESPACE::detail::http {

enum class target_form : std::uint8_t {
  origin,     ///< /path?query
  absolute,   ///< http://host/path?query
  authority,  ///< host:port, with CONNECT
  asterisk    ///< *, with OPTIONS
};

/// Refers to the text that was read.
struct request_head {
  std::string_view method{};
  std::string_view target{};  ///< as it was sent
  target_form form = target_form::origin;
  /// 1 for HTTP/1.1, 0 for HTTP/1.0.
  int minor_version = 1;
  /// Empty only in HTTP/1.0.
  std::string_view host{};
  http::fields fields{};
  framing content = framing::none;
  /// Of Content-Length.
  std::uint64_t content_length = 0;
  /// The connection may have another request after this one.
  bool keep_alive = true;
  /// The client waits for 100 (Continue) before it sends the content.
  bool expects_continue = false;
};

/// Reads one request after another.
///
///   read_head (bytes from the first byte of the request on, more in each call)   until complete
///   body().read (bytes after head_size())                                        until complete
///   reset
///
/// Thread-safety: none.
class request_reader {
 public:
  explicit request_reader(const limits& accepted = {}) : limits_(accepted) {}

  /// `bytes` begins with the request, and with the bytes of the call before; it may be at another
  /// address.
  [[nodiscard]] read_status read_head(std::string_view bytes);
  /// Makes the head refer to a copy of its bytes, for a request whose content has not arrived yet.
  void rebind(std::string_view bytes) noexcept;
  /// Valid after `read_head` is complete, while the bytes of that call are.
  [[nodiscard]] const request_head& head() const noexcept { return head_; }
  [[nodiscard]] std::size_t head_size() const noexcept { return lines_.size(); }
  /// The content. Its reading begins when the head is complete.
  [[nodiscard]] body_reader& body() noexcept { return body_; }
  /// Of the head or of the content.
  [[nodiscard]] defect problem() const noexcept {
    return problem_ != defect::none ? problem_ : body_.problem();
  }
  /// Prepares for the next request of the connection.
  void reset() noexcept;

 private:
  [[nodiscard]] defect read_request_line(std::string_view line);
  [[nodiscard]] defect read_field(std::string_view line, std::size_t offset);
  [[nodiscard]] defect finish_head(std::string_view bytes);

  limits limits_;
  head_lines lines_{};
  request_head head_{};
  // Positions in the request line: the text may move while the head is incomplete.
  std::size_t method_size_ = 0;
  std::size_t target_size_ = 0;
  bool has_request_line_ = false;
  framing_fields framing_{};
  std::size_t host_offset_ = 0;
  defect problem_ = defect::none;
  body_reader body_{};
};

/// Returns true if the text is a host with an optional port, as in Host: no user, no path.
[[nodiscard]] bool is_host_and_port(std::string_view text) noexcept;

}  // namespace HOLDFAST_NAMESPACE::detail::http
