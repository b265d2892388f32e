#pragma once

/// \file
/// Reads responses (RFC 9112), as strictly as requests are read. One form beyond the grammar is
/// accepted, because it is common and can mean only one thing: a status line without a reason and
/// without the space before it.

#include "http/body_reader.hpp"

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace HOLDFAST_NAMESPACE::detail::http {

/// Refers to the text that was read.
struct response_head {
  int status = 0;
  std::string_view reason{};
  int minor_version = 1;
  http::fields fields{};
  framing content = framing::none;
  /// Of Content-Length.
  std::uint64_t content_length = 0;
  /// The connection may be used for another request.
  bool keep_alive = true;

  /// 1xx: the response to the request follows. 101 is final, because HTTP ends with it.
  [[nodiscard]] bool is_interim() const noexcept { return status < 200 && status != 101; }
};

/// Reads one response after another. Used as `request_reader` is; a response whose content ends
/// with the connection is finished with `body().finish()`.
/// Thread-safety: none.
class response_reader {
 public:
  explicit response_reader(const limits& accepted = {}) : limits_(accepted) {}

  /// The next response belongs to a request with this method: HEAD has no content, whatever the
  /// fields are.
  void set_request_method(std::string_view method) noexcept { head_request_ = method == "HEAD"; }
  [[nodiscard]] read_status read_head(std::string_view bytes);
  [[nodiscard]] const response_head& head() const noexcept { return head_; }
  [[nodiscard]] std::size_t head_size() const noexcept { return lines_.size(); }
  [[nodiscard]] body_reader& body() noexcept { return body_; }
  [[nodiscard]] defect problem() const noexcept {
    return problem_ != defect::none ? problem_ : body_.problem();
  }
  void reset() noexcept;

 private:
  [[nodiscard]] defect read_status_line(std::string_view line);
  [[nodiscard]] defect read_field(std::string_view line, std::size_t offset);
  [[nodiscard]] defect finish_head(std::string_view bytes);

  limits limits_;
  bool head_request_ = false;
  head_lines lines_{};
  response_head head_{};
  std::size_t reason_size_ = 0;
  bool has_status_line_ = false;
  framing_fields framing_{};
  defect problem_ = defect::none;
  body_reader body_{};
};

}  // namespace HOLDFAST_NAMESPACE::detail::http
