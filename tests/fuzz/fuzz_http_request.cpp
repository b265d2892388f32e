// Reads any bytes as requests, whole and in pieces. What is accepted, and then written again, is
// read the same.
// links: holdfast::http

#include "http/cookie.hpp"
#include "http/writer.hpp"
#include "support/http_messages.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

namespace {

using namespace holdfast::detail::http;

void require(bool condition) {
  if (!condition) std::abort();
}

/// Writes the head again and reads that.
void write_again(const request_head& head) {
  if (head.host.empty() || head.content == framing::chunked) return;
  field_block block;
  for (std::size_t i = 0; i < head.fields.size(); ++i) {
    const auto [name, value] = head.fields[i];
    if (!equals_ignoring_case(name, "host") && !equals_ignoring_case(name, "content-length"))
      block.add(name, value);
  }
  std::string text;
  append_request_head(text, head.method, head.target, head.host, block,
                      {.kind = content_framing::length, .bytes = head.content_length});
  request_reader reader({.line = 1 << 20, .field_count = 1'000, .head = 1 << 20});
  require(reader.read_head(text) == read_status::complete || head.minor_version == 0);
  if (reader.problem() == defect::none)
    require(reader.head().content_length == head.content_length);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const limits accepted{.target = 200, .line = 300, .field_count = 10, .head = 1'000, .body = 500};
  request_reader whole(accepted);
  const auto expected =
      holdfast::test::read_in_pieces(whole, text, [] { return std::size_t{1} << 20U; }, false);
  request_reader pieces(accepted);
  std::size_t step = 0;
  require(holdfast::test::read_in_pieces(
              pieces, text, [&] { return 1 + step++ % 5; }, false) == expected);
  require(!describe(expected.problem).empty() && status_for(expected.problem) >= 400);
  request_reader first;
  if (first.read_head(text) == read_status::complete) {
    (void)find_cookie(first.head().fields, "a");
    write_again(first.head());
  }
  return 0;
}
