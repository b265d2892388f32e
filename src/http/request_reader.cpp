#include "http/request_reader.hpp"

namespace HOLDFAST_NAMESPACE::detail::http {

namespace {

constexpr auto host_characters = syntax_tables::make_set("-._~%!$&'()*+,;=", true);
constexpr auto address_characters = syntax_tables::make_set(":.%-_", true);

constexpr syntax_tables::byte_set visible_characters() {
  syntax_tables::byte_set set{};
  for (std::size_t i = 0x21; i < 0x7F; ++i) set[i] = true;
  // A fragment is never sent.
  set['#'] = false;
  return set;
}
constexpr auto target_characters = visible_characters();

/// Returns the text after the scheme of an absolute target, or nothing.
std::string_view after_scheme(std::string_view target) noexcept {
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (equals_ignoring_case(target.substr(0, scheme.size()), scheme))
      return target.substr(scheme.size());
  }
  return {};
}

/// The authority of an absolute target.
std::string_view authority_of(std::string_view target) noexcept {
  const auto rest = after_scheme(target);
  return rest.substr(0, rest.find_first_of("/?"));
}

defect read_version(std::string_view version, int& minor) noexcept {
  if (version == "HTTP/1.1") minor = 1;
  else if (version == "HTTP/1.0") minor = 0;
  else if (version.size() == 8 && version.starts_with("HTTP/") && is_digit(version[5]) &&
           version[6] == '.' && is_digit(version[7]))
    return defect::version;
  else return defect::request_line;
  return defect::none;
}

/// Each method has the forms of target that RFC 9112, section 3.2, allows.
bool classify_target(std::string_view method, std::string_view target, target_form& form) noexcept {
  if (method == "CONNECT") {
    form = target_form::authority;
    return is_host_and_port(target) && target.find(':') != std::string_view::npos;
  }
  if (target.front() == '/') {
    form = target_form::origin;
    return true;
  }
  if (target == "*") {
    form = target_form::asterisk;
    return method == "OPTIONS";
  }
  form = target_form::absolute;
  return is_host_and_port(authority_of(target));
}

}  // namespace

bool is_host_and_port(std::string_view text) noexcept {
  std::string_view rest;
  if (text.starts_with('[')) {
    const auto end = text.find(']');
    if (end == std::string_view::npos || end < 3) return false;
    const auto address = text.substr(1, end - 1);
    if (!all_in(address, address_characters) || address.find(':') == std::string_view::npos)
      return false;
    rest = text.substr(end + 1);
  } else {
    const auto host = text.substr(0, text.find(':'));
    if (host.empty() || !all_in(host, host_characters)) return false;
    rest = text.substr(host.size());
  }
  if (rest.empty()) return true;
  const auto port = parse_digits(rest.substr(1));
  return rest.front() == ':' && rest.size() <= 6 && port && *port <= 65535;
}

void request_reader::reset() noexcept {
  lines_.reset();
  head_.fields.clear();
  method_size_ = target_size_ = 0;
  has_request_line_ = false;
  framing_ = {};
  host_offset_ = 0;
  problem_ = defect::none;
}

defect request_reader::read_request_line(std::string_view line) {
  const auto first = line.find(' ');
  const auto last = line.rfind(' ');
  if (first == std::string_view::npos || first == last) return defect::request_line;
  const auto method = line.substr(0, first);
  const auto target = line.substr(first + 1, last - first - 1);
  if (!is_token(method)) return defect::method;
  if (target.size() > limits_.target) return defect::target_too_long;
  if (target.empty() || !all_in(target, target_characters)) return defect::target;
  if (const auto problem = read_version(line.substr(last + 1), head_.minor_version);
      problem != defect::none)
    return problem;
  if (!classify_target(method, target, head_.form)) return defect::target;
  method_size_ = method.size();
  target_size_ = target.size();
  has_request_line_ = true;
  return defect::none;
}

defect request_reader::read_field(std::string_view line, std::size_t offset) {
  if (head_.fields.size() == limits_.field_count) return defect::too_many_fields;
  const auto refusal = read_field_line(line, offset, head_.fields);
  if (refusal != defect::none) return refusal;
  const auto colon = line.find(':');
  const auto hosts = framing_.host_count;
  const auto problem = framing_.add(line.substr(0, colon), line.substr(colon + 1));
  if (framing_.host_count != hosts)
    host_offset_ = offset + static_cast<std::size_t>(framing_.host.data() - line.data());
  return problem;
}

void request_reader::rebind(std::string_view bytes) noexcept {
  head_.method = bytes.substr(0, method_size_);
  head_.target = bytes.substr(method_size_ + 1, target_size_);
  head_.fields.set_text(bytes.substr(0, lines_.size()));
  head_.host = framing_.host_count == 1 ? bytes.substr(host_offset_, framing_.host.size())
                                        : std::string_view{};
}

defect request_reader::finish_head(std::string_view bytes) {
  rebind(bytes);
  const bool has_host = framing_.host_count == 1;
  if (has_host ? !is_host_and_port(head_.host) : head_.minor_version == 1) return defect::host;
  if (has_host && head_.form == target_form::absolute &&
      !equals_ignoring_case(head_.host, authority_of(head_.target)))
    return defect::host;

  if (framing_.length && framing_.chunked) return defect::length_and_coding;
  // HTTP/1.0 has no transfer codings: an older proxy would have passed it on unread.
  if (framing_.chunked && head_.minor_version == 0) return defect::transfer_encoding;
  // CONNECT has no content, so what follows would be read as the tunnel by some.
  if (head_.form == target_form::authority && (framing_.chunked || framing_.length.value_or(0) > 0))
    return framing_.chunked ? defect::transfer_encoding : defect::content_length;
  head_.content_length = framing_.length.value_or(0);
  head_.content = framing_.chunked  ? framing::chunked
                  : framing_.length ? framing::length
                                    : framing::none;
  head_.keep_alive = !framing_.close && (head_.minor_version == 1 || framing_.keep_alive);
  // An expectation in HTTP/1.0 must be ignored (RFC 9110, section 10.1.1).
  if (framing_.has_expectation && !framing_.expects_continue && head_.minor_version == 1)
    return defect::expectation;
  head_.expects_continue = framing_.expects_continue && head_.minor_version == 1 &&
                           (framing_.chunked || head_.content_length > 0);
  return defect::none;
}

read_status request_reader::read_head(std::string_view bytes) {
  if (problem_ != defect::none) return read_status::failed;
  for (;;) {
    const auto line = lines_.next(bytes, limits_, problem_);
    if (line.status == read_status::incomplete) return read_status::incomplete;
    if (line.status == read_status::failed) {
      if (!has_request_line_ && problem_ != defect::line_end) problem_ = defect::target_too_long;
      return read_status::failed;
    }
    if (!has_request_line_) problem_ = read_request_line(line.text);
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
