// Requests: what is accepted, with what meaning, and what is refused, with which defect.

#include "http/request_reader.hpp"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace {

using namespace holdfast::detail::http;

/// Reads a whole request. Returns its defect, or `none` if it is complete.
defect read_request(request_reader& reader, std::string_view text) {
  const auto status = reader.read_head(text);
  if (status == read_status::failed) return reader.problem();
  EXPECT_EQ(status, read_status::complete) << text;
  std::string_view rest = text.substr(reader.head_size());
  for (;;) {
    const auto piece = reader.body().read(rest);
    if (piece.status == read_status::complete) return defect::none;
    if (piece.status == read_status::failed) return reader.problem();
    rest.remove_prefix(piece.consumed);
    if (rest.empty()) {
      ADD_FAILURE() << "incomplete";
      return defect::none;
    }
  }
}

defect defect_of(std::string_view text, const limits& accepted = {}) {
  request_reader reader(accepted);
  return read_request(reader, text);
}

/// A request with these field lines, each with its line end.
std::string with_fields(std::string_view lines) {
  return "POST /x HTTP/1.1\r\nHost: a\r\n" + std::string(lines) + "\r\n";
}

TEST(RequestReader, ReadsTheParts) {
  const std::string text =
      "PUT /a/b?c=d HTTP/1.1\r\nHost: example.org:81\r\nX-Empty:\r\n"
      "X-Spaces: \t two words \t\r\nContent-Length: 3\r\nX-Bytes: \xC3\xBC\r\n\r\nabc";
  request_reader reader;
  ASSERT_EQ(reader.read_head(text), read_status::complete);
  const auto& head = reader.head();
  EXPECT_EQ(head.method, "PUT");
  EXPECT_EQ(head.target, "/a/b?c=d");
  EXPECT_EQ(head.form, target_form::origin);
  EXPECT_EQ(head.minor_version, 1);
  EXPECT_EQ(head.host, "example.org:81");
  EXPECT_EQ(head.fields.size(), 5U);
  EXPECT_EQ(head.fields.find("x-empty"), "");
  EXPECT_EQ(head.fields.find("X-SPACES"), "two words");
  EXPECT_EQ(head.fields.find("x-bytes"), "\xC3\xBC");
  EXPECT_EQ(head.fields.find("x-other"), std::nullopt);
  EXPECT_EQ(head.content, framing::length);
  EXPECT_EQ(head.content_length, 3U);
  EXPECT_TRUE(head.keep_alive);
  const auto piece = reader.body().read(std::string_view(text).substr(reader.head_size()));
  EXPECT_EQ(piece.status, read_status::complete);
  EXPECT_EQ(piece.content, "abc");
}

TEST(RequestReader, TheTextMayMoveWhileItIsIncomplete) {
  const std::string text = "GET /abc HTTP/1.1\r\nHost: somewhere\r\nX: y\r\n\r\n";
  request_reader reader;
  for (std::size_t size = 1; size < text.size(); ++size) {
    const std::string part = text.substr(0, size);
    ASSERT_EQ(reader.read_head(part), read_status::incomplete) << size;
  }
  const std::string copy = text;
  ASSERT_EQ(reader.read_head(copy), read_status::complete);
  EXPECT_EQ(reader.head().method, "GET");
  EXPECT_EQ(reader.head().host, "somewhere");
  EXPECT_EQ(reader.head().host.data(), copy.data() + copy.find("somewhere"));
  EXPECT_EQ(reader.head().fields.find("x"), "y");
}

TEST(RequestReader, PipelinedRequestsFollowEachOther) {
  const std::string text =
      "POST /1 HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi"
      "GET /2 HTTP/1.1\r\nHost: a\r\n\r\n";
  request_reader reader;
  ASSERT_EQ(reader.read_head(text), read_status::complete);
  std::string_view rest = std::string_view(text).substr(reader.head_size());
  const auto piece = reader.body().read(rest);
  EXPECT_EQ(piece.content, "hi");
  rest.remove_prefix(piece.consumed);
  reader.reset();
  ASSERT_EQ(reader.read_head(rest), read_status::complete);
  EXPECT_EQ(reader.head().target, "/2");
  EXPECT_EQ(reader.head_size(), rest.size());
}

TEST(RequestReader, FormsOfTheTarget) {
  const auto form_of = [](std::string_view line) {
    request_reader reader;
    EXPECT_EQ(read_request(reader, std::string(line) + " HTTP/1.1\r\nHost: a.b:8\r\n\r\n"),
              defect::none)
        << line;
    return reader.head().form;
  };
  EXPECT_EQ(form_of("GET /"), target_form::origin);
  EXPECT_EQ(form_of("GET http://a.b:8/x"), target_form::absolute);
  EXPECT_EQ(form_of("GET HTTP://A.B:8?x"), target_form::absolute);
  EXPECT_EQ(form_of("OPTIONS *"), target_form::asterisk);
  EXPECT_EQ(form_of("CONNECT a.b:443"), target_form::authority);
  for (const std::string_view line :
       {"GET *", "GET a.b:443", "CONNECT /", "CONNECT a.b", "GET x/y", "GET ftp://a.b:8/",
        "GET http://", "GET http://u@a.b:8/", "GET /#x", "GET /\x7F", "GET /\xC3\xBC"})
    EXPECT_EQ(defect_of(std::string(line) + " HTTP/1.1\r\nHost: a.b:8\r\n\r\n"), defect::target)
        << line;
  EXPECT_EQ(defect_of("GET http://other/ HTTP/1.1\r\nHost: a\r\n\r\n"), defect::host);
}

TEST(RequestReader, RequestLine) {
  const auto line_defect = [](std::string_view line) {
    return defect_of(std::string(line) + "\r\nHost: a\r\n\r\n");
  };
  for (const std::string_view line :
       {"", "GET", "GET /", "get", "GET / http/1.1", "GET / HTTP/1.1.1", "GET / HTTP/11",
        "GET / HTTPS/1.1", "GET / HTTP/1.x"})
    EXPECT_EQ(line_defect(line), defect::request_line) << line;
  for (const std::string_view line : {" GET / HTTP/1.1", "G(T / HTTP/1.1", "G\tT / HTTP/1.1"})
    EXPECT_EQ(line_defect(line), defect::method) << line;
  for (const std::string_view line : {"GET /  ", "GET / HTTP/1.1 ", "GET  / HTTP/1.1",
                                      "GET /  HTTP/1.1", "GET / x HTTP/1.1", "GET /\tx HTTP/1.1"})
    EXPECT_EQ(line_defect(line), defect::target) << line;
  for (const std::string_view line : {"GET / HTTP/2.0", "GET / HTTP/0.9", "GET / HTTP/1.2"})
    EXPECT_EQ(line_defect(line), defect::version) << line;
  EXPECT_EQ(defect_of("\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n"), defect::request_line)
      << "an empty line in front is not skipped";
}

TEST(RequestReader, Lines) {
  EXPECT_EQ(defect_of("GET / HTTP/1.1\nHost: a\r\n\r\n"), defect::line_end);
  EXPECT_EQ(defect_of("GET / HTTP/1.1\r\nHost: a\n\r\n"), defect::line_end);
  EXPECT_EQ(defect_of("GET / HTTP/1.1\r\nHost: a\r\n\n"), defect::line_end);
  EXPECT_EQ(defect_of(with_fields("X: a\rb\r\n")), defect::field_value);
  EXPECT_EQ(defect_of(with_fields("X: a\r\r\n")), defect::field_value);
  EXPECT_EQ(defect_of(with_fields("X: a\r\n b\r\n")), defect::folded_line);
  EXPECT_EQ(defect_of(with_fields("X: a\r\n\tb\r\n")), defect::folded_line);
  EXPECT_EQ(defect_of("GET / HTTP/1.1\r\n Host: a\r\n\r\n"), defect::folded_line);
}

// nginx takes the tab for a part of the value.
TEST(RequestReader, TabsBesideValuesThatFrame) {
  for (const std::string_view value : {"\tchunked", "chunked\t", " \tchunked", "chunked \t "})
    EXPECT_EQ(defect_of(with_fields("Transfer-Encoding:" + std::string(value) + "\r\n")),
              defect::transfer_encoding)
        << value;
  EXPECT_EQ(defect_of(with_fields("Content-Length:\t0\r\n")), defect::content_length);
  EXPECT_EQ(defect_of("GET / HTTP/1.1\r\nHost:\ta\r\n\r\n"), defect::host);
  EXPECT_EQ(defect_of(with_fields("Accept:\ta\t\r\n")), defect::none);
}

TEST(RequestReader, Fields) {
  for (const std::string_view line : {"X : a", "X\t: a", ": a", "X", "X Y: a", "X(: a", "X\x01: a",
                                      "\xC3\xBC: a", "\"X\": a", "X;: a", "X@: a", "X/: a"})
    EXPECT_EQ(defect_of(with_fields(std::string(line) + "\r\n")), defect::field_name) << line;
  for (const std::string_view value : {"a\x01", "\x7F", "a\x0B"})
    EXPECT_EQ(defect_of(with_fields("X: " + std::string(value) + "\r\n")), defect::field_value);
  EXPECT_EQ(defect_of(with_fields(std::string("X: a\0b\r\n", 8))), defect::field_value);
  EXPECT_EQ(defect_of(with_fields("X: a\tb \xFF\r\n")), defect::none);
  for (const std::string_view name : {"Content_Length", "TRANSFER_ENCODING", "Transfer_Encoding",
                                      "Host_", "_Host", "content_length_"})
    EXPECT_EQ(defect_of(with_fields(std::string(name) + ": 1\r\n")), defect::look_alike_field)
        << name;
  EXPECT_EQ(defect_of(with_fields("X_Y: 1\r\n")), defect::none);
}

TEST(RequestReader, Host) {
  const auto host_defect = [](std::string_view lines) {
    return defect_of("GET / HTTP/1.1\r\n" + std::string(lines) + "\r\n");
  };
  EXPECT_EQ(host_defect(""), defect::host);
  EXPECT_EQ(host_defect("Host: a\r\nHost: a\r\n"), defect::host);
  EXPECT_EQ(host_defect("Host: a\r\nhost: b\r\n"), defect::host);
  for (const std::string_view value :
       {"", "a b", "a/b", "a@b", "a:b", "a:", "a:123456", "a:65536", "a,b:1", "[::1", "[]", "[a]",
        "[::1]x", "a:1:2", "http://a", "a?b", "a#b", "a\\b", ":80"}) {
    if (value == "a,b:1") continue;  // a comma is allowed in a registered name
    EXPECT_EQ(host_defect("Host: " + std::string(value) + "\r\n"), defect::host) << value;
  }
  for (const std::string_view value :
       {"a", "A.b-c_d~", "a:1", "127.0.0.1:80", "[::1]", "[::1]:80", "a%20b", "[fe80::1%25eth0]:1"})
    EXPECT_EQ(host_defect("Host: " + std::string(value) + "\r\n"), defect::none) << value;
  EXPECT_EQ(defect_of("GET / HTTP/1.0\r\n\r\n"), defect::none);
  EXPECT_EQ(defect_of("GET / HTTP/1.0\r\nHost: a\r\nHost: a\r\n\r\n"), defect::host);
}

TEST(RequestReader, Framing) {
  EXPECT_EQ(defect_of(with_fields("Content-Length: 0\r\n")), defect::none);
  EXPECT_EQ(defect_of(with_fields("Content-Length: 00\r\n")), defect::none);
  for (const std::string_view value : {"", "+1", "-1", "1 ", "1,1", "1, 1", "0x1", "1.0", "1e1",
                                       "a", "1 1", "9999999999999999999", "18446744073709551616"}) {
    if (value == "1 ") continue;  // spaces at the end do not belong to the value
    EXPECT_EQ(defect_of(with_fields("Content-Length: " + std::string(value) + "\r\n")),
              defect::content_length)
        << value;
  }
  EXPECT_EQ(defect_of(with_fields("Content-Length: 0\r\nContent-Length: 0\r\n")),
            defect::content_length);
  EXPECT_EQ(defect_of(with_fields("Content-Length: 0\r\nTransfer-Encoding: chunked\r\n")),
            defect::length_and_coding);
  for (const std::string_view value :
       {"", "identity", "gzip", "gzip, chunked", "chunked, chunked", "chunked, identity",
        "xchunked", "chunked;a=b", "chunked,", ",chunked", "\"chunked\"", "chunked\x0B", "cow"}) {
    if (value == "chunked\x0B") continue;  // refused as a value before
    EXPECT_EQ(defect_of(with_fields("Transfer-Encoding: " + std::string(value) + "\r\n")),
              defect::transfer_encoding)
        << value;
  }
  EXPECT_EQ(defect_of(with_fields("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n")),
            defect::transfer_encoding);
  EXPECT_EQ(defect_of("POST / HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
            defect::transfer_encoding);
  EXPECT_EQ(defect_of(with_fields("Transfer-Encoding: CHUNKED\r\n") + "0\r\n\r\n"), defect::none);
  EXPECT_EQ(defect_of("CONNECT a:1 HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx"),
            defect::content_length);
  request_reader reader;
  ASSERT_EQ(read_request(reader, "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx"),
            defect::none)
      << "a length counts for every method";
  EXPECT_EQ(reader.body().size(), 1U);
}

TEST(RequestReader, ConnectionAndExpectation) {
  const auto head_of = [](const std::string& text) {
    static std::string kept;
    kept = text;
    request_reader reader;
    EXPECT_EQ(reader.read_head(kept), read_status::complete) << text;
    return reader.head();
  };
  EXPECT_FALSE(head_of(with_fields("Connection: close\r\n")).keep_alive);
  EXPECT_FALSE(head_of(with_fields("Connection: x, CLOSE\r\n")).keep_alive);
  EXPECT_FALSE(head_of(with_fields("Connection: x\r\nConnection: close\r\n")).keep_alive);
  EXPECT_TRUE(head_of(with_fields("Connection: x\r\n")).keep_alive);
  EXPECT_FALSE(head_of("GET / HTTP/1.0\r\n\r\n").keep_alive);
  EXPECT_TRUE(head_of("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n").keep_alive);
  EXPECT_EQ(defect_of(with_fields("Connection: a b\r\n")), defect::connection);
  EXPECT_TRUE(
      head_of(with_fields("Expect: 100-Continue\r\nContent-Length: 1\r\n")).expects_continue);
  EXPECT_FALSE(head_of(with_fields("Expect: 100-continue\r\n")).expects_continue)
      << "there is no content to wait for";
  EXPECT_EQ(defect_of(with_fields("Expect: 200-ok\r\n")), defect::expectation);
  EXPECT_EQ(defect_of(with_fields("Expect: 200-ok\r\nExpect: 100-continue\r\n")),
            defect::expectation);
  EXPECT_EQ(defect_of(with_fields("Expect: 100-continue\r\nExpect: 100-continue\r\n")),
            defect::expectation);
  EXPECT_FALSE(head_of("POST / HTTP/1.0\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\n")
                   .expects_continue);
}

TEST(RequestReader, LimitsHoldWhetherALineIsCompleteOrNot) {
  const limits small{.target = 10, .line = 60, .field_count = 3, .head = 100, .body = 5};
  const auto both_ways = [&](const std::string& text) {
    const auto whole = defect_of(text, small);
    request_reader reader(small);
    auto status = read_status::incomplete;
    for (std::size_t size = 1; size <= text.size() && status == read_status::incomplete; ++size)
      status = reader.read_head(std::string_view(text).substr(0, size));
    if (status == read_status::failed) {
      EXPECT_EQ(reader.problem(), whole);
    }
    return whole;
  };
  const std::string start = "GET / HTTP/1.1\r\nHost: a\r\n";
  EXPECT_EQ(both_ways("GET /123456789 HTTP/1.1\r\nHost: a\r\n\r\n"), defect::none);
  EXPECT_EQ(both_ways("GET /1234567890 HTTP/1.1\r\nHost: a\r\n\r\n"), defect::target_too_long);
  EXPECT_EQ(both_ways(std::string(61, 'x')), defect::target_too_long);
  EXPECT_EQ(both_ways(start + "X: " + std::string(55, 'y') + "\r\n\r\n"), defect::none);
  EXPECT_EQ(both_ways(start + "X: " + std::string(56, 'y') + "\r\n\r\n"), defect::line_too_long);
  EXPECT_EQ(both_ways(start + "X: " + std::string(55, 'y') + "\r\nY: " + std::string(20, 'z') +
                      "\r\n\r\n"),
            defect::head_too_large);
  EXPECT_EQ(both_ways(start + "A: 1\r\nB: 2\r\n\r\n"), defect::none);
  EXPECT_EQ(both_ways(start + "A: 1\r\nB: 2\r\nC: 3\r\n\r\n"), defect::too_many_fields);
  EXPECT_EQ(both_ways(start + "Content-Length: 5\r\n\r\n12345"), defect::none);
  EXPECT_EQ(both_ways(start + "Content-Length: 6\r\n\r\n123456"), defect::body_too_large);
  EXPECT_EQ(status_for(defect::target_too_long), 414);
  EXPECT_EQ(status_for(defect::too_many_fields), 431);
  EXPECT_EQ(status_for(defect::body_too_large), 413);
  EXPECT_EQ(status_for(defect::version), 505);
  EXPECT_EQ(status_for(defect::expectation), 417);
  EXPECT_EQ(status_for(defect::line_end), 400);
}

TEST(RequestReader, EveryDefectHasASentence) {
  for (int code = 0; code <= static_cast<int>(defect::body_too_large); ++code) {
    EXPECT_GT(describe(static_cast<defect>(code)).size(), 10U);
    EXPECT_NE(describe(static_cast<defect>(code)), "the message is invalid") << code;
  }
}

}  // namespace
