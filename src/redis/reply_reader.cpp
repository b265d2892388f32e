#include "redis/reply_reader.hpp"

#include "redis/server_error.hpp"

#include <charconv>
#include <limits>
#include <utility>

namespace HOLDFAST_NAMESPACE::detail::redis {

namespace {

/// A larger buffer is not kept once its bytes are read: an idle connection needs none.
constexpr std::size_t kept_buffer = std::size_t{64} * 1024;

[[noreturn]] void throw_malformed_reply(const std::string& reason) {
  throw error(errc::malformed, "the reply does not follow the protocol of Redis (" + reason +
                                   "); check that a Redis server listens there");
}

std::int64_t parse_reply_number(std::string_view digits) {
  std::int64_t number = 0;
  const auto [end, failed] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (failed != std::errc{} || end != digits.data() + digits.size())
    throw_malformed_reply("a number is not one");
  return number;
}

/// Parses the length of a text or a list. Returns nothing for -1, which stands for nil.
std::optional<std::size_t> parse_length(std::string_view digits, std::int64_t longest) {
  const auto length = parse_reply_number(digits);
  if (length < -1 || length > longest) throw_malformed_reply("a length is out of range");
  if (length < 0) return std::nullopt;
  return static_cast<std::size_t>(length);
}

}  // namespace

void reply_reader::feed(std::string_view bytes) { buffer_.append(bytes); }

/// Throws if the reply is too large with these bytes.
void reply_reader::reserve(std::size_t bytes) {
  used_ += bytes;
  if (used_ <= max_reply_) return;
  throw error(errc::too_large, "a reply of Redis is larger than " + std::to_string(max_reply_) +
                                   " bytes; ask for less at once, or raise options::max_reply");
}

/// Returns the bytes up to the next line end, or nothing if it has not arrived.
std::optional<std::string_view> reply_reader::peek_line() {
  const std::string_view unread = std::string_view(buffer_).substr(position_);
  const auto end = unread.find("\r\n", scanned_);
  if (end != std::string_view::npos) return unread.substr(0, end);
  // A long line that arrives in pieces is searched once. Its last byte may be the \r.
  scanned_ = unread.empty() ? 0 : unread.size() - 1;
  return std::nullopt;
}

/// Reads a value into `target`. Returns false if its bytes have not all arrived. A list is read
/// when its size is: its elements follow as values of their own.
bool reply_reader::read_value(reply& target) {
  const auto line = peek_line();
  if (!line) return false;
  if (line->empty()) throw_malformed_reply("an empty line");
  const auto content = line->substr(1);
  switch (line->front()) {
    case '$':
      return read_text(content, target);
    case '*':
      read_list(content, target);
      break;
    case ':':
      target.value_.emplace<std::int64_t>(parse_reply_number(content));
      break;
    case '+':
      reserve(content.size());
      target.value_.emplace<std::string>(content);
      break;
    case '-':
      reserve(content.size());
      target.value_ = server_error(content);
      break;
    default:
      throw_malformed_reply("a reply begins with the byte " +
                            std::to_string(static_cast<unsigned char>(line->front())));
  }
  position_ += line->size() + 2;
  scanned_ = 0;
  return true;
}

bool reply_reader::read_text(std::string_view length, reply& target) {
  // The line: the type and the length, until the line end.
  const std::size_t header = length.size() + 3;
  const auto size = parse_length(length, std::numeric_limits<std::int64_t>::max() / 2);
  if (!size) {
    target.value_.emplace<std::monostate>();
    position_ += header;
    scanned_ = 0;
    return true;
  }
  const std::string_view unread = std::string_view(buffer_).substr(position_ + header);
  if (unread.size() < *size + 2) return false;
  if (unread.substr(*size, 2) != "\r\n") throw_malformed_reply("a text has another length");
  reserve(*size);
  target.value_.emplace<std::string>(unread.substr(0, *size));
  position_ += header + *size + 2;
  scanned_ = 0;
  return true;
}

void reply_reader::read_list(std::string_view length, reply& target) {
  const auto size = parse_length(length, std::numeric_limits<std::int32_t>::max());
  if (!size) {
    target.value_.emplace<std::monostate>();
    return;
  }
  if (open_lists_.size() >= max_depth)
    throw error(errc::too_deep, "a reply of Redis has more than " + std::to_string(max_depth) +
                                    " nested lists; ask for it in another form");
  reserve(*size * sizeof(reply));
  auto& elements = target.value_.emplace<reply::list>(*size);
  if (*size > 0) open_lists_.push_back({&elements});
}

std::optional<reply> reply_reader::next() {
  while (position_ < buffer_.size()) {
    open_list* const inner = open_lists_.empty() ? nullptr : &open_lists_.back();
    reply& target = inner == nullptr ? root_ : (*inner->elements)[inner->received];
    const auto depth = open_lists_.size();
    if (inner != nullptr) ++inner->received;
    if (!read_value(target)) {
      if (inner != nullptr) --inner->received;
      // A text is kept until its last byte has arrived. It may have a frame of up to 64 bytes.
      if (buffer_.size() - position_ > max_reply_ + 64) reserve(buffer_.size() - position_);
      break;
    }
    if (open_lists_.size() > depth) continue;  // the elements of a list follow
    while (!open_lists_.empty() &&
           open_lists_.back().received == open_lists_.back().elements->size())
      open_lists_.pop_back();
    if (!open_lists_.empty()) continue;
    used_ = 0;
    if (position_ == buffer_.size()) discard_consumed();
    return std::exchange(root_, reply());
  }
  discard_consumed();
  return std::nullopt;
}

/// Removes the bytes that were read from the buffer.
void reply_reader::discard_consumed() {
  if (position_ == buffer_.size()) {
    if (buffer_.capacity() > kept_buffer) buffer_ = {};
    else buffer_.clear();
  } else {
    buffer_.erase(0, position_);
  }
  position_ = 0;
}

}  // namespace HOLDFAST_NAMESPACE::detail::redis
