#pragma once

/// \file
/// Reads a text as HTTP messages in pieces of any size, and writes down what was read, so that two
/// ways to cut a text can be compared. Used by tests and fuzz targets.

#include "http/request_reader.hpp"
#include "http/response_reader.hpp"

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

namespace holdfast::test {

namespace http = holdfast::detail::http;

/// Everything that a reader reported, as text.
struct http_transcript {
  std::string text{};
  std::size_t messages = 0;
  http::defect problem = http::defect::none;
  bool operator==(const http_transcript&) const = default;
};

inline void append_fields(std::string& out, const http::fields& fields) {
  for (std::size_t i = 0; i < fields.size(); ++i)
    out.append(fields[i].name).append("=").append(fields[i].value).append("|");
}

inline void describe_head(std::string& out, const http::request_head& head) {
  out.append(head.method).append(" ").append(head.target).append(" ");
  out += std::to_string(head.minor_version) + std::to_string(static_cast<int>(head.form));
  out.append(" host=").append(head.host).append(head.expects_continue ? " expects " : " ");
  out += std::to_string(static_cast<int>(head.content)) + std::to_string(head.content_length);
  out += head.keep_alive ? " keep " : " close ";
  append_fields(out, head.fields);
}

inline void describe_head(std::string& out, const http::response_head& head) {
  out += std::to_string(head.status) + " ";
  out.append(head.reason).append(" ");
  out += std::to_string(head.minor_version) + " " + std::to_string(static_cast<int>(head.content)) +
         std::to_string(head.content_length) + (head.keep_alive ? " keep " : " close ");
  append_fields(out, head.fields);
}

/// Reads messages one after the other, as a connection would: `next_size()` says how many bytes
/// arrive next. `ends` says that the connection is closed after the text.
template <class Reader, class NextSize>
http_transcript read_in_pieces(Reader& reader, std::string_view text, NextSize next_size,
                               bool ends) {
  http_transcript result;
  std::string buffer;
  bool in_body = false;
  bool ended = false;
  for (;;) {
    // A new address each time: a view that was kept too long is seen by the sanitizer.
    std::string moved(buffer);
    buffer.swap(moved);
    if (!in_body) {
      const auto status = buffer.empty() ? http::read_status::incomplete : reader.read_head(buffer);
      if (status == http::read_status::failed) break;
      if (status == http::read_status::complete) {
        describe_head(result.text, reader.head());
        result.text += '\n';
        buffer.erase(0, reader.head_size());
        in_body = true;
        continue;
      }
    } else {
      const auto piece = reader.body().read(buffer);
      result.text.append(piece.content);
      buffer.erase(0, piece.consumed);
      if (piece.status == http::read_status::failed) break;
      if (ended && piece.status == http::read_status::incomplete && reader.body().finish())
        continue;
      if (piece.status == http::read_status::complete) {
        result.text += "\ntrailers ";
        append_fields(result.text, reader.body().trailers());
        result.text += "\n--\n";
        ++result.messages;
        reader.reset();
        in_body = false;
        if (!reader.head().keep_alive) break;
        continue;
      }
      if (piece.consumed > 0 && !buffer.empty()) continue;
    }
    if (text.empty()) {
      if (ended || !ends) break;
      ended = true;
      continue;
    }
    const auto size = std::min(std::max<std::size_t>(next_size(), 1), text.size());
    buffer.append(text.substr(0, size));
    text.remove_prefix(size);
  }
  result.problem = reader.problem();
  return result;
}

}  // namespace holdfast::test
