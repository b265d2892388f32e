#pragma once

/// \file
/// Writes heads, contents and chunks to the end of a text.

#include "http/fields.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace HOLDFAST_NAMESPACE::detail::http {

/// The usual words for a status: `Not Found`. Empty if the status is not registered.
[[nodiscard]] std::string_view reason_of(int status) noexcept;

/// How the content of a message is sent.
enum class content_framing : std::uint8_t {
  none,    ///< no field; for 1xx, 204, 304, and requests without content
  length,  ///< Content-Length
  chunked  ///< Transfer-Encoding: chunked
};

struct content_length {
  content_framing kind = content_framing::none;
  std::uint64_t bytes = 0;
};

/// Appends the head of a request, with its empty line. `block` must not have Content-Length or
/// Transfer-Encoding. Throws errc::invalid_argument, and appends nothing, if the method is not a
/// token, the target has a character that is not allowed, or the host is invalid.
void append_request_head(std::string& out, std::string_view method, std::string_view target,
                         std::string_view host, const field_block& block, content_length content);

/// Appends the head of a response, with its empty line. Throws errc::invalid_argument if the status
/// is not between 100 and 599.
void append_response_head(std::string& out, int status, const field_block& block,
                          content_length content);

/// The parts of `append_response_head`, for a server that adds fields of its own: the status line,
/// and the framing with the empty line.
void append_status_line(std::string& out, int status);
void append_end_of_head(std::string& out, content_length content);

/// Appends one chunk. Appends nothing if the content is empty, because an empty chunk is the last.
void append_chunk(std::string& out, std::string_view content);
/// Appends the last chunk with the trailers.
void append_last_chunk(std::string& out, const field_block& trailers = {});

}  // namespace HOLDFAST_NAMESPACE::detail::http
