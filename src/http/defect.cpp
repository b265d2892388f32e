#include "http/defect.hpp"

namespace HOLDFAST_NAMESPACE::detail::http {

std::string_view describe(defect problem) noexcept {
  switch (problem) {
    case defect::none:
      return "the message is well-formed";
    case defect::line_end:
      return "a line does not end with CR LF; send both";
    case defect::request_line:
      return "the request line is not 'method target version'";
    case defect::method:
      return "the method is not a token";
    case defect::target:
      return "the request target is invalid for this method";
    case defect::target_too_long:
      return "the request target is too long";
    case defect::version:
      return "the version is not supported; use HTTP/1.1";
    case defect::status_line:
      return "the status line is not 'version status reason'";
    case defect::folded_line:
      return "a field continues on the next line; send it on one line";
    case defect::field_name:
      return "a field does not begin with a name and a colon";
    case defect::field_value:
      return "a field has a control character";
    case defect::too_many_fields:
      return "there are too many fields";
    case defect::line_too_long:
      return "a line is too long";
    case defect::head_too_large:
      return "the header is too large";
    case defect::host:
      return "the request needs exactly one valid Host field";
    case defect::content_length:
      return "Content-Length must be one number";
    case defect::transfer_encoding:
      return "Transfer-Encoding must be 'chunked', once";
    case defect::length_and_coding:
      return "Content-Length and Transfer-Encoding exclude each other; send one of them";
    case defect::look_alike_field:
      return "a field has an underscore in place of a hyphen in a name that controls the framing";
    case defect::connection:
      return "Connection is not a list of names";
    case defect::expectation:
      return "the only supported expectation is 100-continue";
    case defect::chunk_size:
      return "the size of a chunk is not a hexadecimal number";
    case defect::chunk_extension:
      return "the extensions of the chunks are ill-formed or too long";
    case defect::chunk_end:
      return "a chunk is longer than its size";
    case defect::trailer:
      return "a trailer has a field that is allowed only in the header";
    case defect::body_too_large:
      return "the content is too large";
  }
  return "the message is invalid";
}

int status_for(defect problem) noexcept {
  switch (problem) {
    case defect::target_too_long:
      return 414;
    case defect::version:
      return 505;
    case defect::too_many_fields:
    case defect::line_too_long:
    case defect::head_too_large:
      return 431;
    case defect::expectation:
      return 417;
    case defect::body_too_large:
      return 413;
    default:
      return 400;
  }
}

}  // namespace HOLDFAST_NAMESPACE::detail::http
