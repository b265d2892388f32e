// Request smuggling: messages that a proxy and a server behind it read differently. The kinds are
// those of the literature: Linhart and others (2005), Kettle's "HTTP Desync Attacks" (2019) and
// "Browser-Powered Desync Attacks" (2022), the T-Reqs study (2021), the notes of RFC 9112, section
// 11, and the work on line ends of chunks (2025). The texts are our own. Each must be refused, or,
// where it is a well-formed message, read with the length that it says.

#include "http/request_reader.hpp"
#include "support/http_messages.hpp"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace holdfast::detail::http;
using holdfast::test::http_transcript;

http_transcript read_requests(std::string_view text) {
  request_reader reader;
  return holdfast::test::read_in_pieces(reader, text, [] { return 1'000'000; }, false);
}

struct smuggled {
  std::string_view kind;
  std::string text;
};

std::string post(std::string_view lines, std::string_view content) {
  return "POST / HTTP/1.1\r\nHost: example.org\r\n" + std::string(lines) + "\r\n" +
         std::string(content);
}

constexpr std::string_view hidden = "GET /admin HTTP/1.1\r\nHost: example.org\r\n\r\n";

std::vector<smuggled> lengths() {
  const std::string chunks = "0\r\n\r\n" + std::string(hidden);
  return {
      {"CL.TE", post("Content-Length: 49\r\nTransfer-Encoding: chunked\r\n", chunks)},
      {"TE.CL",
       post("Transfer-Encoding: chunked\r\nContent-Length: 3\r\n", "8\r\nSMUGGLED\r\n0\r\n\r\n")},
      {"CL.TE with 0", post("Content-Length: 0\r\nTransfer-Encoding: chunked\r\n", chunks)},
      {"CL.CL differing", post("Content-Length: 4\r\nContent-Length: 44\r\n", hidden)},
      {"CL.CL the same", post("Content-Length: 4\r\nContent-Length: 4\r\n", "abcd")},
      {"CL list", post("Content-Length: 4, 4\r\n", "abcd")},
      {"CL list differing", post("Content-Length: 4, 44\r\n", hidden)},
      {"CL plus", post("Content-Length: +4\r\n", "abcd")},
      {"CL minus", post("Content-Length: -4\r\n", hidden)},
      {"CL minus zero", post("Content-Length: -0\r\n", hidden)},
      {"CL hexadecimal", post("Content-Length: 0x4\r\n", "abcd")},
      {"CL exponent", post("Content-Length: 4e0\r\n", "abcd")},
      {"CL decimal", post("Content-Length: 4.0\r\n", "abcd")},
      {"CL text after", post("Content-Length: 4 bytes\r\n", "abcd")},
      {"CL semicolon", post("Content-Length: 4;x\r\n", "abcd")},
      {"CL quoted", post("Content-Length: \"4\"\r\n", "abcd")},
      {"CL empty", post("Content-Length:\r\n", hidden)},
      {"CL overflow 32", post("Content-Length: 4294967300, 4\r\n", "abcd")},
      {"CL overflow 64", post("Content-Length: 18446744073709551620\r\n", "abcd")},
      {"CL underscore digits", post("Content-Length: 1_0\r\n", "abcd")},
      {"CL other digits", post("Content-Length: \xD9\xA4\r\n", "abcd")},
      {"CL vertical tab", post("Content-Length:\x0B"
                               "4\r\n",
                               "abcd")},
      {"CL space before colon", post("Content-Length : 44\r\n", hidden)},
      {"CL tab before colon", post("Content-Length\t: 44\r\n", hidden)},
      {"CL underscore", post("Content_Length: 44\r\n", hidden)},
      {"CL folded", post("Content-Length:\r\n 44\r\n", hidden)},
      {"CL folded after", post("Content-Length: 4\r\n 4\r\n", hidden)},
      {"CL in another field", post("X: y\rContent-Length: 44\r\n", hidden)},
      {"CL after LF", post("X: y\nContent-Length: 44\r\n", hidden)},
      {"CL after NUL", post(std::string("X: y\0Content-Length: 44\r\n", 25), hidden)},
  };
}

std::vector<smuggled> codings() {
  std::vector<smuggled> cases;
  const std::string chunks = "0\r\n\r\n" + std::string(hidden);
  for (const std::string_view lines :
       {"Transfer-Encoding: xchunked\r\n",
        "Transfer-Encoding : chunked\r\n",
        "Transfer-Encoding\t: chunked\r\n",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: x\r\n",
        "Transfer-Encoding: x\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding:\x0B"
        "chunked\r\n",
        "Transfer-Encoding: chunked\x0B\r\n",
        "Transfer-Encoding: \"chunked\"\r\n",
        "Transfer-Encoding: 'chunked'\r\n",
        "Transfer-Encoding: chunked, identity\r\n",
        "Transfer-Encoding: identity, chunked\r\n",
        "Transfer-Encoding: identity\r\n",
        "Transfer-Encoding: chunked, chunked\r\n",
        "Transfer-Encoding: gzip, chunked\r\n",
        "Transfer-Encoding: chunked;q=1\r\n",
        "Transfer-Encoding: chunked,\r\n",
        "Transfer-Encoding: ,chunked\r\n",
        "Transfer-Encoding:\r\n chunked\r\n",
        "Transfer-Encoding: x\r\n chunked\r\n",
        " Transfer-Encoding: chunked\r\n",
        "X: y\r\n Transfer-Encoding: chunked\r\n",
        "X: y\nTransfer-Encoding: chunked\r\n",
        "X: y\rTransfer-Encoding: chunked\r\n",
        "X: y\r\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
        "Transfer_Encoding: chunked\r\n",
        "transfer_encoding: chunked\r\n",
        "Transfer-Encoding\x01: chunked\r\n",
        "Transfer Encoding: chunked\r\n",
        "Transfer-Encoding: chunke\r\n",
        "Transfer-Encoding:\r\n",
        "Transfer-Encoding: chunked\x7F\r\n",
        "Transfer-Encoding: \xC2\xA0"
        "chunked\r\n",
        "Transfer-Encoding\xC2\xA0: chunked\r\n",
        "Transfer-Encoding: ch\xC5\xADnked\r\n",
        "(Transfer-Encoding: chunked\r\n",
        "\"Transfer-Encoding\": chunked\r\n",
        "Transfer-Encoding; chunked\r\n",
        "Transfer-Encoding = chunked\r\n",
        "Connection: close, \x01\r\nTransfer-Encoding: chunked\r\n"})
    cases.push_back({lines, post(lines, chunks)});
  cases.push_back(
      {"TE in 1.0", "POST / HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks});
  cases.push_back(
      {"NUL in coding", post(std::string("Transfer-Encoding: \0chunked\r\n", 29), chunks)});
  return cases;
}

std::vector<smuggled> chunk_lines() {
  std::vector<smuggled> cases;
  for (const std::string_view chunks : {"1\r\nZ\r\nQ\r\n\r\n",
                                        "0x1\r\nZ\r\n0\r\n\r\n",
                                        "+1\r\nZ\r\n0\r\n\r\n",
                                        " 1\r\nZ\r\n0\r\n\r\n",
                                        "1 \r\nZ\r\n0\r\n\r\n",
                                        "1\t\r\nZ\r\n0\r\n\r\n",
                                        "1\nZ\r\n0\r\n\r\n",
                                        "1\r\nZ\n0\r\n\r\n",
                                        "1\r\nZ0\r\n\r\n",
                                        "1\r\nZZ\r\n0\r\n\r\n",
                                        "1\rZ\r\n0\r\n\r\n",
                                        "1;\nxx\r\n0\r\n\r\n",
                                        "1;a\nxx\r\n0\r\n\r\n",
                                        "1;a\rxx\r\n0\r\n\r\n",
                                        "1;a=\"\r\n\"\r\nZ\r\n0\r\n\r\n",
                                        "1 ; a\r\nZ\r\n0\r\n\r\n",
                                        "1;;\r\nZ\r\n0\r\n\r\n",
                                        "1,2\r\nZ\r\n0\r\n\r\n",
                                        "FFFFFFFFFFFFFFFFF\r\nZ\r\n0\r\n\r\n",
                                        "10000000000000001\r\nZ\r\n0\r\n\r\n",
                                        "-1\r\nZ\r\n0\r\n\r\n",
                                        "1\r\r\nZ\r\n0\r\n\r\n",
                                        "\r\n1\r\nZ\r\n0\r\n\r\n",
                                        "1_0\r\nZ\r\n0\r\n\r\n",
                                        "0\n\n",
                                        "0\r\n\n",
                                        "0\n\r\n",
                                        "0\r\nX: y\n\r\n",
                                        "0\r\nContent-Length: 44\r\n\r\n",
                                        "0\r\nTransfer-Encoding: chunked\r\n\r\n",
                                        "0\r\nHost: other\r\n\r\n",
                                        "0\r\n X: y\r\n\r\n",
                                        "0\r\nX : y\r\n\r\n",
                                        "\xEF\xBC\x91\r\nZ\r\n0\r\n\r\n",
                                        "1;\xFF\r\nZ\r\n0\r\n\r\n"})
    cases.push_back({chunks, post("Transfer-Encoding: chunked\r\n", chunks) + std::string(hidden)});
  return cases;
}

std::vector<smuggled> heads() {
  std::vector<smuggled> cases;
  for (const std::string_view text : {"GET / HTTP/1.1\nHost: a\n\n",
                                      "GET / HTTP/1.1\r\nHost: a\r\n\n",
                                      "\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
                                      "\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
                                      "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
                                      "GET / HTTP/1.1\r\nHost: a\r\nhost : b\r\n\r\n",
                                      "GET / HTTP/1.1\r\n\r\n",
                                      "GET http://b/ HTTP/1.1\r\nHost: a\r\n\r\n",
                                      "GET @b/ HTTP/1.1\r\nHost: a\r\n\r\n",
                                      "GET / HTTP/1.1\r\nHost: a@b\r\n\r\n",
                                      "GET / HTTP/1.1\r\nHost: a/b\r\n\r\n",
                                      "GET / HTTP/1.1\r\nHost: a\tb\r\n\r\n",
                                      "GET / HTTP/1.1\r\nHost: a b\r\n\r\n",
                                      "GET /\tx HTTP/1.1\r\nHost: a\r\n\r\n",
                                      "GET / HTTP/1.1 x\r\nHost: a\r\n\r\n",
                                      "GET / HTTP/1.1\r\rHost: a\r\n\r\n",
                                      "GET / x HTTP/1.1\r\nHost: a\r\n\r\n",
                                      "GET /\r\n\r\n",
                                      "GET / HTTP/1.1\r\nHost: a\r\n: b\r\n\r\n",
                                      "GET / HTTP/1.1\r\nHost: a\r\nX\r\n\r\n",
                                      "GET / HTTP/1.1\r\n\tHost: a\r\n\r\n",
                                      "GET / HTTP/1.1\x0B\r\nHost: a\r\n\r\n",
                                      "GET\x0B/ HTTP/1.1\r\nHost: a\r\n\r\n",
                                      "GET\t/\tHTTP/1.1\r\nHost: a\r\n\r\n",
                                      "GET / HTTP/1.1\r\nHost: a\r\nHo_st: b\r\nHOST_: b\r\n\r\n",
                                      "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
                                      "GET / HTTP/01.1\r\nHost: a\r\n\r\n",
                                      "GET / HTTP/1.01\r\nHost: a\r\n\r\n",
                                      "GET / HTTP/1,1\r\nHost: a\r\n\r\n",
                                      "GET / \r\nHost: a\r\n\r\n",
                                      "\x16\x03\x01\x02\r\n\r\n"})
    cases.push_back({text, std::string(text)});
  return cases;
}

void expect_refused(const std::vector<smuggled>& cases) {
  for (const auto& [kind, text] : cases) {
    const auto result = read_requests(text);
    EXPECT_NE(result.problem, defect::none) << kind;
    EXPECT_EQ(result.text.find("/admin"), std::string::npos) << kind;
  }
}

TEST(Smuggling, LengthsAreRefused) { expect_refused(lengths()); }
TEST(Smuggling, TransferCodingsAreRefused) { expect_refused(codings()); }
TEST(Smuggling, ChunkLinesAreRefused) { expect_refused(chunk_lines()); }
TEST(Smuggling, HeadsAreRefused) { expect_refused(heads()); }

// CL.0: a server that ignores the length of some requests reads their content as a request.
TEST(Smuggling, TheLengthOfEveryRequestCounts) {
  for (const std::string_view method : {"GET", "HEAD", "DELETE", "OPTIONS", "TRACE", "FOO"}) {
    const auto result =
        read_requests(std::string(method) + " / HTTP/1.1\r\nHost: a\r\nContent-Length: " +
                      std::to_string(hidden.size()) + "\r\n\r\n" + std::string(hidden));
    EXPECT_EQ(result.problem, defect::none);
    EXPECT_EQ(result.messages, 1U) << method;
  }
  // The answer to an expectation does not change where a request ends.
  const auto expecting = read_requests(post(
      "Expect: 100-continue\r\nContent-Length: " + std::to_string(hidden.size()) + "\r\n", hidden));
  EXPECT_EQ(expecting.messages, 1U);
  EXPECT_EQ(read_requests(post("Expect: x\r\nContent-Length: 44\r\n", hidden)).problem,
            defect::expectation);
}

TEST(Smuggling, NothingIsReadAfterAConnectionThatCloses) {
  const auto result =
      read_requests("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n" + std::string(hidden));
  EXPECT_EQ(result.messages, 1U);
}

}  // namespace
