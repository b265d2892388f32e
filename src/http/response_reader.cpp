#include "http/response_reader.hpp"

namespace HOLDFAST_NAMESPACE::detail::http {

namespace {
// `HTTP/1.1 200 `
constexpr std::size_t reason_offset = 13;
}  // namespace

void response_reader::reset() noexcept {
  lines_.reset();
  head_.fields.clear();
  reason_size_ = 0;
  has_status_line_ = false;
  framing_ = {};
  problem_ = defect::none;
}

defect response_reader::read_status_line(std::string_view line) {
  if (line.size() < reason_offset - 1 || !line.starts_with("HTTP/") || !is_digit(line[5]) ||
      line[6] != '.' || !is_digit(line[7]) || line[8] != ' ')
    return defect::status_line;
  if (line[5] != '1' || line[7] > '1') return defect::version;
  head_.minor_version = line[7] - '0';
  const auto status = parse_digits(line.substr(9, 3));
  if (!status || *status < 100 || *status > 599) return defect::status_line;
  head_.status = static_cast<int>(*status);
  if (line.size() >= reason_offset) {
    if (line[reason_offset - 1] != ' ') return defect::status_line;
    if (!is_field_value(line.substr(reason_offset))) return defect::status_line;
    reason_size_ = line.size() - reason_offset;
  }
  has_status_line_ = true;
  return defect::none;
}

defect response_reader::read_field(std::string_view line, std::size_t offset) {
  if (head_.fields.size() == limits_.field_count) return defect::too_many_fields;
  const auto refusal = read_field_line(line, offset, head_.fields);
  if (refusal != defect::none) return refusal;
  const auto colon = line.find(':');
  return framing_.add(line.substr(0, colon), line.substr(colon + 1));
}

defect response_reader::finish_head(std::string_view bytes) {
  head_.reason = reason_size_ == 0 ? std::string_view{} : bytes.substr(reason_offset, reason_size_);
  head_.fields.set_text(bytes.substr(0, lines_.size()));
  if (framing_.length && framing_.chunked) return defect::length_and_coding;
  if (framing_.chunked && head_.minor_version == 0) return defect::transfer_encoding;
  const bool never_content = head_.status < 200 || head_.status == 204;
  // Some programs read content after these, others do not. A length of 0 is harmless and common.
  if (never_content && framing_.chunked) return defect::transfer_encoding;
  if (never_content && framing_.length.value_or(0) != 0) return defect::content_length;
  head_.content_length = framing_.length.value_or(0);
  if (never_content || head_.status == 304 || head_request_) head_.content = framing::none;
  else if (framing_.chunked) head_.content = framing::chunked;
  else if (framing_.length) head_.content = framing::length;
  else head_.content = framing::until_close;
  head_.keep_alive = !framing_.close && head_.content != framing::until_close &&
                     head_.status != 101 && (head_.minor_version == 1 || framing_.keep_alive);
  return defect::none;
}

read_status response_reader::read_head(std::string_view bytes) {
  if (problem_ != defect::none) return read_status::failed;
  for (;;) {
    const auto line = lines_.next(bytes, limits_, problem_);
    if (line.status != read_status::complete) return line.status;
    if (!has_status_line_) problem_ = read_status_line(line.text);
    else if (!line.text.empty()) problem_ = read_field(line.text, line.offset);
    else {
      problem_ = finish_head(bytes);
      if (problem_ != defect::none) return read_status::failed;
      body_.begin(head_.content, head_.content_length, limits_);
      return read_status::complete;
    }
    if (problem_ != defect::none) return read_status::failed;
  }
}

}  // namespace HOLDFAST_NAMESPACE::detail::http
