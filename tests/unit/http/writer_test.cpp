// What the writers write is what the readers read, and nothing can be injected.

#include "http/writer.hpp"

#include <holdfast/error.hpp>

#include "http/request_reader.hpp"
#include "http/response_reader.hpp"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace {

using namespace holdfast;
using namespace holdfast::detail::http;

TEST(HttpWriter, RequestIsReadBack) {
  field_block block;
  block.add("X-A", "b c");
  block.add("X-N", std::uint64_t{42});
  std::string text;
  append_request_head(text, "POST", "/x?y", "h:1", block,
                      {.kind = content_framing::length, .bytes = 3});
  EXPECT_EQ(text,
            "POST /x?y HTTP/1.1\r\nHost: h:1\r\nX-A: b c\r\nX-N: 42\r\nContent-Length: 3\r\n\r\n");
  request_reader reader;
  ASSERT_EQ(reader.read_head(text), read_status::complete);
  EXPECT_EQ(reader.head().fields.find("x-a"), "b c");
}

TEST(HttpWriter, ResponseWithChunksIsReadBack) {
  field_block trailers;
  trailers.add("X-T", "t");
  std::string text;
  append_response_head(text, 200, {}, {.kind = content_framing::chunked});
  append_chunk(text, "hello");
  append_chunk(text, "");
  append_chunk(text, std::string(300, 'x'));
  append_last_chunk(text, trailers);
  response_reader reader;
  ASSERT_EQ(reader.read_head(text), read_status::complete);
  std::string_view rest = std::string_view(text).substr(reader.head_size());
  std::string content;
  for (;;) {
    const auto piece = reader.body().read(rest);
    ASSERT_NE(piece.status, read_status::failed);
    content += piece.content;
    rest.remove_prefix(piece.consumed);
    if (piece.status == read_status::complete) break;
  }
  EXPECT_EQ(content, "hello" + std::string(300, 'x'));
  EXPECT_TRUE(rest.empty());
  EXPECT_EQ(reader.body().trailers().find("x-t"), "t");
}

TEST(HttpWriter, NothingIsInjected) {
  field_block block;
  for (const std::string_view value : {"a\r\nX: y", "a\nb", "a\rb", "\x01", " a", "a "})
    EXPECT_THROW(block.add("X", value), error) << value;
  EXPECT_THROW(block.add("X", std::string_view("a\0b", 3)), error);
  for (const std::string_view name : {"", "X Y", "X:", "X\r\n", "\xC3\xBC"})
    EXPECT_THROW(block.add(name, "y"), error) << name;
  EXPECT_TRUE(block.empty()) << "nothing was added";
  std::string text;
  EXPECT_THROW(append_request_head(text, "G T", "/", "h", {}, {}), error);
  EXPECT_THROW(append_request_head(text, "GET", "/ HTTP/1.1\r\nX: y", "h", {}, {}), error);
  EXPECT_THROW(append_request_head(text, "GET", "/", "h\r\nX: y", {}, {}), error);
  EXPECT_THROW(append_request_head(text, "GET", "", "h", {}, {}), error);
  EXPECT_THROW(append_response_head(text, 99, {}, {}), error);
  EXPECT_TRUE(text.empty());
}

TEST(HttpWriter, FieldsAreFoundInABlock) {
  field_block block;
  block.add("A", "1");
  block.add("Bc", "");
  block.add("a", "2");
  EXPECT_EQ(block.find("a"), "1");
  EXPECT_EQ(block.find("BC"), "");
  EXPECT_FALSE(block.has("b"));
}

}  // namespace
