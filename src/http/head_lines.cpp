#include "http/head_lines.hpp"

#include <algorithm>
#include <cstring>

namespace HOLDFAST_NAMESPACE::detail::http {

head_lines::line head_lines::next(std::string_view bytes, const limits& accepted,
                                  defect& problem) noexcept {
  const char* const end_of_line = scanned_ < bytes.size()
                                      ? static_cast<const char*>(std::memchr(
                                            bytes.data() + scanned_, '\n', bytes.size() - scanned_))
                                      : nullptr;
  const std::size_t end = end_of_line == nullptr
                              ? bytes.size()
                              : static_cast<std::size_t>(end_of_line - bytes.data()) + 1;
  // The limit that a reader meets first when it gets one byte at a time.
  const std::size_t line_limit = begin_ + accepted.line;
  if (end > std::min(line_limit, accepted.head)) {
    problem = line_limit < accepted.head ? defect::line_too_long : defect::head_too_large;
    return {.status = read_status::failed};
  }
  if (end_of_line == nullptr) {
    scanned_ = end;
    return {.status = read_status::incomplete};
  }
  if (end - begin_ < 2 || bytes[end - 2] != '\r') {
    problem = defect::line_end;
    return {.status = read_status::failed};
  }
  const line result{.status = read_status::complete,
                    .text = bytes.substr(begin_, end - begin_ - 2),
                    .offset = begin_};
  begin_ = scanned_ = end;
  return result;
}

namespace {

defect add_connection(std::string_view value, framing_fields& framed) noexcept {
  defect problem = defect::none;
  for_each_element(value, [&](std::string_view option) {
    if (!is_token(option)) problem = defect::connection;
    else if (equals_ignoring_case(option, "close")) framed.close = true;
    else if (equals_ignoring_case(option, "keep-alive")) framed.keep_alive = true;
  });
  return problem;
}

}  // namespace

defect framing_fields::add(std::string_view name, std::string_view text) noexcept {
  const auto value = trim(text);
  // RFC 9112, 5.1, allows a tab beside a value. Some programs, nginx among them, take it for a part
  // of the value, and would see another end of the message, or another host.
  const bool has_tab = text.find('\t') != std::string_view::npos;
  switch (name.size()) {
    case 4:
      if (!equals_ignoring_case(name, "host")) return defect::none;
      host = value;
      return ++host_count == 1 && !has_tab ? defect::none : defect::host;
    case 6:
      if (!equals_ignoring_case(name, "expect")) return defect::none;
      // A second one would hide the first.
      if (has_expectation) return defect::expectation;
      has_expectation = true;
      expects_continue = equals_ignoring_case(value, "100-continue");
      return defect::none;
    case 10:
      if (!equals_ignoring_case(name, "connection")) return defect::none;
      return add_connection(value, *this);
    case 14: {
      if (!equals_ignoring_case(name, "content-length")) break;
      if (length || has_tab) return defect::content_length;
      length = parse_digits(value);
      return length ? defect::none : defect::content_length;
    }
    case 17:
      if (!equals_ignoring_case(name, "transfer-encoding")) break;
      if (chunked || has_tab || !equals_ignoring_case(value, "chunked"))
        return defect::transfer_encoding;
      chunked = true;
      return defect::none;
    default:
      break;
  }
  return is_look_alike(name) ? defect::look_alike_field : defect::none;
}

}  // namespace HOLDFAST_NAMESPACE::detail::http
