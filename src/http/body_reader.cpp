#include "http/body_reader.hpp"

#include "base/hex.hpp"

#include <algorithm>
#include <array>

namespace HOLDFAST_NAMESPACE::detail::http {

namespace {

/// Fields that a recipient must know before the content (RFC 9110, section 6.5.1): in a trailer
/// they would change what was decided already.
bool is_forbidden_trailer(std::string_view name) noexcept {
  constexpr std::array<std::string_view, 13> forbidden = {
      "content-length", "transfer-encoding", "host",          "connection",
      "expect",         "authorization",     "cookie",        "set-cookie",
      "content-type",   "content-encoding",  "content-range", "trailer",
      "cache-control"};
  return is_look_alike(name) || std::ranges::any_of(forbidden, [&](std::string_view entry) {
           return equals_ignoring_case(name, entry);
         });
}

}  // namespace

void body_reader::begin(framing kind, std::uint64_t length, const limits& accepted) noexcept {
  limits_ = accepted;
  problem_ = defect::none;
  remaining_ = length;
  size_ = 0;
  digits_ = 0;
  extension_bytes_ = 0;
  trailer_text_.clear();
  trailer_lines_.reset();
  trailers_.clear();
  switch (kind) {
    case framing::none:
      state_ = state::done;
      break;
    case framing::length:
      state_ = length == 0 ? state::done : state::counted;
      break;
    case framing::chunked:
      state_ = state::size;
      break;
    case framing::until_close:
      state_ = state::until_close;
      break;
  }
}

read_status body_reader::status() const noexcept {
  if (state_ == state::done) return read_status::complete;
  return state_ == state::failed ? read_status::failed : read_status::incomplete;
}

bool body_reader::finish() noexcept {
  if (state_ == state::until_close) state_ = state::done;
  return state_ == state::done;
}

body_piece body_reader::fail(defect problem, std::size_t consumed) noexcept {
  problem_ = problem;
  state_ = state::failed;
  return {.status = read_status::failed, .consumed = consumed};
}

defect body_reader::begin_data() noexcept {
  if (remaining_ > limits_.body - size_) return defect::body_too_large;
  state_ = remaining_ == 0 ? state::trailers : state::data;
  return defect::none;
}

/// Reads one byte of the line with the size of a chunk, extensions included.
defect body_reader::read_size_line(char c) noexcept {
  if (is_extension() && ++extension_bytes_ > limits_.chunk_extensions)
    return defect::chunk_extension;
  switch (state_) {
    case state::size:
      remaining_ = 0;
      digits_ = 0;
      [[fallthrough]];
    case state::more_size: {
      const int digit = hex_digit(c);
      if (digit >= 0) {
        // 15 digits are below 2^60: neither the size nor the sum can overflow.
        if (++digits_ > 15) return defect::chunk_size;
        remaining_ = remaining_ * 16 + static_cast<std::uint64_t>(digit);
        state_ = state::more_size;
        return defect::none;
      }
      if (state_ == state::size) return defect::chunk_size;
      if (c == '\r') state_ = state::size_line_feed;
      else if (c == ';') state_ = state::extension_name;
      else return c == '\n' ? defect::line_end : defect::chunk_size;
      return defect::none;
    }
    case state::extension_name:
      if (!is_token_character(c)) return defect::chunk_extension;
      state_ = state::in_name;
      return defect::none;
    case state::in_name:
      if (is_token_character(c)) return defect::none;
      if (c == '=') state_ = state::extension_value;
      else if (c == ';') state_ = state::extension_name;
      else if (c == '\r') state_ = state::size_line_feed;
      else return c == '\n' ? defect::line_end : defect::chunk_extension;
      return defect::none;
    case state::extension_value:
      if (c == '"') state_ = state::in_quotes;
      else if (is_token_character(c)) state_ = state::in_token;
      else return defect::chunk_extension;
      return defect::none;
    case state::in_token:
      if (is_token_character(c)) return defect::none;
      [[fallthrough]];
    case state::after_quotes:
      if (c == ';') state_ = state::extension_name;
      else if (c == '\r') state_ = state::size_line_feed;
      else return c == '\n' ? defect::line_end : defect::chunk_extension;
      return defect::none;
    case state::in_quotes:
      if (c == '"') state_ = state::after_quotes;
      else if (c == '\\') state_ = state::escaped;
      else if (!is_field_value({&c, 1})) return defect::chunk_extension;
      return defect::none;
    case state::escaped:
      if (!is_field_value({&c, 1})) return defect::chunk_extension;
      state_ = state::in_quotes;
      return defect::none;
    case state::size_line_feed:
      return c == '\n' ? begin_data() : defect::line_end;
    default:
      return defect::chunk_size;
  }
}

/// Content with a known number of bytes, or up to the end of the connection.
body_piece body_reader::read_data(std::string_view input, std::size_t offset) {
  std::size_t count = input.size() - offset;
  if (state_ == state::until_close) {
    count = static_cast<std::size_t>(std::min<std::uint64_t>(count, limits_.body - size_));
    if (count == 0) return fail(defect::body_too_large, offset);
  } else {
    count = static_cast<std::size_t>(std::min<std::uint64_t>(count, remaining_));
    remaining_ -= count;
    if (remaining_ == 0) state_ = state_ == state::data ? state::data_return : state::done;
  }
  size_ += count;
  return {.status = status(), .consumed = offset + count, .content = input.substr(offset, count)};
}

body_piece body_reader::read_trailers(std::string_view input, std::size_t offset) {
  // Copied, because a line may have come in pieces. Not more than can be accepted.
  const std::size_t before = trailer_text_.size();
  const std::size_t room = limits_.head + 1 - std::min(before, limits_.head);
  trailer_text_.append(input.substr(offset, room));
  for (;;) {
    const auto line = trailer_lines_.next(trailer_text_, limits_, problem_);
    if (line.status == read_status::failed) return fail(problem_, input.size());
    if (line.status == read_status::incomplete)
      return {.status = read_status::incomplete, .consumed = input.size()};
    if (line.text.empty()) {
      const std::size_t consumed = offset + trailer_lines_.size() - before;
      trailer_text_.resize(trailer_lines_.size());
      trailers_.set_text(trailer_text_);
      state_ = state::done;
      return {.status = read_status::complete, .consumed = consumed};
    }
    if (trailers_.size() == limits_.field_count) return fail(defect::too_many_fields, input.size());
    const auto problem = read_field_line(line.text, line.offset, trailers_);
    if (problem != defect::none) return fail(problem, input.size());
    if (is_forbidden_trailer(line.text.substr(0, line.text.find(':'))))
      return fail(defect::trailer, input.size());
  }
}

body_piece body_reader::read(std::string_view input) {
  if (state_ == state::failed) return {.status = read_status::failed};
  if (state_ == state::counted && remaining_ > limits_.body - size_)
    return fail(defect::body_too_large, 0);
  for (std::size_t offset = 0;; ++offset) {
    if (state_ == state::done) return {.status = read_status::complete, .consumed = offset};
    if (offset == input.size()) return {.status = status(), .consumed = offset};
    switch (state_) {
      case state::data:
      case state::counted:
      case state::until_close:
        return read_data(input, offset);
      case state::trailers:
        return read_trailers(input, offset);
      case state::data_return:
        if (input[offset] != '\r') return fail(defect::chunk_end, offset);
        state_ = state::data_line_feed;
        break;
      case state::data_line_feed:
        if (input[offset] != '\n') return fail(defect::chunk_end, offset);
        state_ = state::size;
        break;
      default:
        if (const auto problem = read_size_line(input[offset]); problem != defect::none)
          return fail(problem, offset);
    }
  }
}

}  // namespace HOLDFAST_NAMESPACE::detail::http
