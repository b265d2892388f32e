// Responses and contents: where a message ends, and what is refused.

#include "http/response_reader.hpp"

#include "support/http_messages.hpp"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace {

using namespace holdfast::detail::http;
using holdfast::test::http_transcript;
using holdfast::test::read_in_pieces;

http_transcript read_response(std::string_view text, bool ends = false,
                              std::string_view method = "GET", const limits& accepted = {}) {
  response_reader reader(accepted);
  reader.set_request_method(method);
  return read_in_pieces(reader, text, [] { return 1'000'000; }, ends);
}

defect response_defect(std::string_view text, const limits& accepted = {}) {
  return read_response(text, false, "GET", accepted).problem;
}

/// The content of one chunked message, and its defect.
http_transcript read_chunks(std::string_view chunks, const limits& accepted = {}) {
  return read_response(
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + std::string(chunks), false, "GET",
      accepted);
}

TEST(ResponseReader, StatusLine) {
  response_reader reader;
  ASSERT_EQ(reader.read_head("HTTP/1.1 404 Not Found\r\nA: b\r\nContent-Length: 0\r\n\r\n"),
            read_status::complete);
  EXPECT_EQ(reader.head().status, 404);
  EXPECT_EQ(reader.head().reason, "Not Found");
  EXPECT_EQ(reader.head().fields.find("a"), "b");
  for (const std::string_view line : {"HTTP/1.1 200 ", "HTTP/1.1 200", "HTTP/1.0 599 x\ty"})
    EXPECT_EQ(response_defect(std::string(line) + "\r\nContent-Length: 0\r\n\r\n"), defect::none);
  for (const std::string_view line :
       {"", "HTTP/1.1", "HTTP/1.1 20", "HTTP/1.1 2000", "HTTP/1.1 099 x", "HTTP/1.1 600 x",
        "HTTP/1.1  200 x", "http/1.1 200 x", "HTTP/1.1 200\tx", "HTTP/1.1 -20 x", "ICY 200 OK",
        "HTTP/1.1 200 a\x01"})
    EXPECT_EQ(response_defect(std::string(line) + "\r\n\r\n"), defect::status_line) << line;
  EXPECT_EQ(response_defect("HTTP/2.0 200 OK\r\n\r\n"), defect::version);
  EXPECT_EQ(response_defect("HTTP/1.1 200 OK\n\r\n"), defect::line_end);
}

TEST(ResponseReader, WhereTheContentEnds) {
  const auto framing_of = [](std::string_view text, std::string_view method = "GET") {
    response_reader reader;
    reader.set_request_method(method);
    EXPECT_EQ(reader.read_head(text), read_status::complete) << text;
    return reader.head().content;
  };
  EXPECT_EQ(framing_of("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"), framing::length);
  EXPECT_EQ(framing_of("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", "HEAD"), framing::none);
  EXPECT_EQ(framing_of("HTTP/1.1 304 x\r\nContent-Length: 5\r\n\r\n"), framing::none);
  EXPECT_EQ(framing_of("HTTP/1.1 204 x\r\n\r\n"), framing::none);
  EXPECT_EQ(framing_of("HTTP/1.1 204 x\r\nContent-Length: 0\r\n\r\n"), framing::none);
  EXPECT_EQ(framing_of("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"), framing::chunked);
  EXPECT_EQ(framing_of("HTTP/1.1 200 OK\r\n\r\n"), framing::until_close);
  for (const std::string_view text :
       {"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 1, 1\r\n\r\n",
        "HTTP/1.1 204 x\r\nContent-Length: 1\r\n\r\n",
        "HTTP/1.1 204 x\r\nTransfer-Encoding: chunked\r\n\r\n",
        "HTTP/1.1 100 x\r\nContent-Length: 1\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n",
        "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"})
    EXPECT_NE(response_defect(text), defect::none) << text;
}

TEST(ResponseReader, ContentUntilTheConnectionEnds) {
  const auto result = read_response("HTTP/1.1 200 OK\r\n\r\nall of it", true);
  EXPECT_EQ(result.messages, 1U);
  EXPECT_NE(result.text.find("all of it"), std::string::npos);
  EXPECT_EQ(read_response("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\ncut", true).messages, 0U);
  EXPECT_EQ(read_response("HTTP/1.1 200 OK\r\n\r\n123456", true, "GET", {.body = 5}).problem,
            defect::body_too_large);
}

TEST(ResponseReader, InterimResponses) {
  const auto result = read_response(
      "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: "
      "1\r\n\r\nx");
  EXPECT_EQ(result.messages, 2U);
  response_reader reader;
  ASSERT_EQ(reader.read_head("HTTP/1.1 101 Switching Protocols\r\n\r\n"), read_status::complete);
  EXPECT_FALSE(reader.head().is_interim());
  EXPECT_FALSE(reader.head().keep_alive);
}

TEST(ResponseReader, Chunks) {
  const auto result = read_chunks(
      "3\r\nabc\r\n0A;name;n=v;q=\"a\\\"b;c\"\r\n0123456789\r\n000\r\nX: y\r\nZ:\r\n\r\n");
  EXPECT_EQ(result.problem, defect::none);
  EXPECT_EQ(result.messages, 1U);
  EXPECT_NE(result.text.find("abc0123456789\ntrailers X=y|Z=|\n"), std::string::npos)
      << result.text;
  for (const std::string_view chunks :
       {"\r\n", " 1\r\n", "1 \r\n", "+1\r\n", "0x1\r\n", "g\r\n", "-1\r\n", "1 ;a\r\n", "1\t\r\n",
        "10000000000000000\r\n", "FFFFFFFFFFFFFFFF\r\n", ";a\r\n", "1,\r\n", "1\xC2\xA0\r\n"})
    EXPECT_EQ(read_chunks(chunks).problem, defect::chunk_size) << chunks;
  for (const std::string_view chunks : {"1\n", "1\rx", "1;a\n", "1;a=b\n", "1;a=\"b\"\n", "1;a\rx"})
    EXPECT_EQ(read_chunks(chunks).problem, defect::line_end) << chunks;
  for (const std::string_view chunks :
       {"1;\r\n", "1;;\r\n", "1; a\r\n", "1;a =b\r\n", "1;a=\r\n", "1;a= b\r\n", "1;a=\"b\r\n",
        "1;a=\"b\"c\r\n", "1;a=\"\x01\"\r\n", "1;a=\"\\\x01\"\r\n", "1;=b\r\n", "1;a\xFF\r\n"})
    EXPECT_EQ(read_chunks(chunks).problem, defect::chunk_extension) << chunks;
  for (const std::string_view chunks : {"1\r\nab\r\n", "1\r\na\n", "1\r\na\rx", "2\r\na\r\n\r\n0"})
    EXPECT_EQ(read_chunks(chunks).problem, defect::chunk_end) << chunks;
}

TEST(ResponseReader, ChunkLimits) {
  EXPECT_EQ(read_chunks("5\r\n12345\r\n0\r\n\r\n", {.body = 5}).problem, defect::none);
  EXPECT_EQ(read_chunks("3\r\n123\r\n3\r\n", {.body = 5}).problem, defect::body_too_large)
      << "refused when the size is announced";
  EXPECT_EQ(read_chunks("FFFFFFFFFFFFFFF\r\n").problem, defect::body_too_large);
  std::string extensions;
  for (int i = 0; i < 20; ++i) extensions += "1;" + std::string(100, 'x') + "\r\na\r\n";
  EXPECT_EQ(read_chunks(extensions).problem, defect::chunk_extension) << "2,000 bytes of them";
  EXPECT_EQ(read_chunks("1;" + std::string(1023, 'x') + "\r\na\r\n0\r\n\r\n").problem, defect::none)
      << "1,024 with the end of the line";
  EXPECT_EQ(read_chunks("1;" + std::string(1024, 'x') + "\r\n").problem, defect::chunk_extension);
}

TEST(ResponseReader, Trailers) {
  for (const std::string_view name : {"Content-Length", "transfer-encoding", "Host", "Connection",
                                      "Authorization", "Set-Cookie", "Content_Length", "Trailer"})
    EXPECT_EQ(read_chunks("0\r\n" + std::string(name) + ": 1\r\n\r\n").problem, defect::trailer)
        << name;
  EXPECT_EQ(read_chunks("0\r\nX : y\r\n\r\n").problem, defect::field_name);
  EXPECT_EQ(read_chunks("0\r\nX: y\r\n z\r\n\r\n").problem, defect::folded_line);
  EXPECT_EQ(read_chunks("0\r\nX: y\n\r\n").problem, defect::line_end);
  EXPECT_EQ(read_chunks("0\r\nX: \x02\r\n\r\n").problem, defect::field_value);
  std::string many = "0\r\n";
  for (int i = 0; i < 101; ++i) many += "X: y\r\n";
  EXPECT_EQ(read_chunks(many + "\r\n").problem, defect::too_many_fields);
  EXPECT_EQ(read_chunks("0\r\nX: " + std::string(9'000, 'y')).problem, defect::line_too_long);
  std::string large = "0\r\n";
  for (int i = 0; i < 40; ++i) large += "X: " + std::string(500, 'y') + "\r\n";
  EXPECT_EQ(read_chunks(large).problem, defect::head_too_large);
}

}  // namespace
