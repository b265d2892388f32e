#include "http/writer.hpp"

#include <holdfast/error.hpp>

#include "http/request_reader.hpp"

#include <algorithm>
#include <array>
#include <charconv>

namespace HOLDFAST_NAMESPACE::detail::http {

namespace {

void append_number(std::string& out, std::uint64_t number, int base = 10) {
  std::array<char, 20> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number, base).ptr;
  out.append(digits.data(), static_cast<std::size_t>(end - digits.data()));
}

void append_framing(std::string& out, content_length content) {
  switch (content.kind) {
    case content_framing::none:
      break;
    case content_framing::length:
      out += "Content-Length: ";
      append_number(out, content.bytes);
      out += "\r\n";
      break;
    case content_framing::chunked:
      out += "Transfer-Encoding: chunked\r\n";
      break;
  }
}

}  // namespace

std::string_view reason_of(int status) noexcept {
  switch (status) {
    case 100:
      return "Continue";
    case 101:
      return "Switching Protocols";
    case 103:
      return "Early Hints";
    case 200:
      return "OK";
    case 201:
      return "Created";
    case 202:
      return "Accepted";
    case 203:
      return "Non-Authoritative Information";
    case 204:
      return "No Content";
    case 205:
      return "Reset Content";
    case 206:
      return "Partial Content";
    case 207:
      return "Multi-Status";
    case 300:
      return "Multiple Choices";
    case 301:
      return "Moved Permanently";
    case 302:
      return "Found";
    case 303:
      return "See Other";
    case 304:
      return "Not Modified";
    case 307:
      return "Temporary Redirect";
    case 308:
      return "Permanent Redirect";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 406:
      return "Not Acceptable";
    case 408:
      return "Request Timeout";
    case 409:
      return "Conflict";
    case 410:
      return "Gone";
    case 411:
      return "Length Required";
    case 412:
      return "Precondition Failed";
    case 413:
      return "Content Too Large";
    case 414:
      return "URI Too Long";
    case 415:
      return "Unsupported Media Type";
    case 416:
      return "Range Not Satisfiable";
    case 417:
      return "Expectation Failed";
    case 421:
      return "Misdirected Request";
    case 422:
      return "Unprocessable Content";
    case 426:
      return "Upgrade Required";
    case 428:
      return "Precondition Required";
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    case 500:
      return "Internal Server Error";
    case 501:
      return "Not Implemented";
    case 502:
      return "Bad Gateway";
    case 503:
      return "Service Unavailable";
    case 504:
      return "Gateway Timeout";
    case 505:
      return "HTTP Version Not Supported";
    case 508:
      return "Loop Detected";
    default:
      return {};
  }
}

void append_request_head(std::string& out, std::string_view method, std::string_view target,
                         std::string_view host, const field_block& block, content_length content) {
  const auto is_target_character = [](char c) { return c > ' ' && c < 0x7F && c != '#'; };
  if (!is_token(method)) throw error(errc::invalid_argument, "the method is not a token");
  if (target.empty() || !std::ranges::all_of(target, is_target_character))
    throw error(errc::invalid_argument,
                "the request target is empty, or has a space or a control character; encode it");
  if (!is_host_and_port(host))
    throw error(errc::invalid_argument, "the host is not a name or address with an optional port");
  out.append(method).append(1, ' ').append(target).append(" HTTP/1.1\r\nHost: ");
  out.append(host).append("\r\n").append(block.text());
  append_framing(out, content);
  out += "\r\n";
}

void append_status_line(std::string& out, int status) {
  if (status < 100 || status > 599)
    throw error(errc::invalid_argument, "a status is a number between 100 and 599");
  out += "HTTP/1.1 ";
  append_number(out, static_cast<std::uint64_t>(status));
  out.append(1, ' ').append(reason_of(status)).append("\r\n");
}

void append_end_of_head(std::string& out, content_length content) {
  append_framing(out, content);
  out += "\r\n";
}

void append_response_head(std::string& out, int status, const field_block& block,
                          content_length content) {
  append_status_line(out, status);
  out += block.text();
  append_end_of_head(out, content);
}

void append_chunk(std::string& out, std::string_view content) {
  if (content.empty()) return;
  append_number(out, content.size(), 16);
  out.append("\r\n").append(content).append("\r\n");
}

void append_last_chunk(std::string& out, const field_block& trailers) {
  out.append("0\r\n").append(trailers.text()).append("\r\n");
}

}  // namespace HOLDFAST_NAMESPACE::detail::http
