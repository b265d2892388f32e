#pragma once

/// \file
/// Why a message is refused. A reader returns a defect instead of throwing, because a hostile peer
/// chooses how often it happens.

#include <holdfast/version.hpp>

#include <cstdint>
#include <string_view>

namespace HOLDFAST_NAMESPACE::detail::http {

enum class defect : std::uint8_t {
  none,
  line_end,           ///< a line ends with LF alone, or has a CR that LF does not follow
  request_line,       ///< not `method SP target SP version`
  method,             ///< the method is not a token
  target,             ///< the target does not have the form that the method requires
  target_too_long,    ///< longer than limits::target
  version,            ///< HTTP, but neither 1.0 nor 1.1
  status_line,        ///< not `version SP status SP reason`
  folded_line,        ///< a line begins with a space or tab
  field_name,         ///< not a token that a colon follows directly
  field_value,        ///< a control character in the value
  too_many_fields,    ///< more than limits::field_count
  line_too_long,      ///< longer than limits::line
  head_too_large,     ///< larger than limits::head
  host,               ///< no Host, several, or an invalid one
  content_length,     ///< not a number, several, or not allowed here
  transfer_encoding,  ///< something other than one `chunked`, or not allowed here
  length_and_coding,  ///< both Content-Length and Transfer-Encoding
  look_alike_field,   ///< `Content_Length` and similar, which some servers read as framing
  connection,         ///< Connection is not a list of tokens
  expectation,        ///< Expect is not one `100-continue`
  chunk_size,         ///< not a hexadecimal number of at most 15 digits
  chunk_extension,    ///< ill-formed, or longer than limits::chunk_extensions
  chunk_end,          ///< the data of a chunk is not followed by CRLF
  trailer,            ///< a trailer that changes the framing or the routing
  body_too_large,     ///< larger than limits::body
};

/// One sentence for the peer and the log. Contains nothing of the message.
[[nodiscard]] std::string_view describe(defect problem) noexcept;

/// The status with which a server answers: 400, 413, 414, 417, 431 or 505.
[[nodiscard]] int status_for(defect problem) noexcept;

}  // namespace HOLDFAST_NAMESPACE::detail::http
