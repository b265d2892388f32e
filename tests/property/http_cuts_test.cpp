// Messages built from valid and invalid parts are read the same whether they arrive whole, byte by
// byte or in random pieces.

#include "http/structured_field.hpp"
#include "http/target.hpp"
#include "support/http_messages.hpp"
#include "support/seed.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace holdfast::detail::http;
using holdfast::test::http_transcript;
using holdfast::test::read_in_pieces;

constexpr std::size_t corpus_size = 2'000;
constexpr limits small{
    .target = 40, .line = 80, .field_count = 8, .head = 240, .body = 60, .chunk_extensions = 20};

/// Builds messages from parts. The first parts of each list are valid; with `damage`, the others
/// are used, too.
class message_builder {
 public:
  explicit message_builder(std::uint64_t seed) : random_(seed) {}

  std::string requests() {
    std::string text;
    const auto count = below(3) + 1;
    for (std::size_t i = 0; i < count; ++i) {
      static constexpr std::string_view lines[] = {
          "GET / HTTP/1.1",
          "POST /a?b=c HTTP/1.1",
          "OPTIONS * HTTP/1.1",
          "PUT /x HTTP/1.0",
          "GET http://h/ HTTP/1.1",
          "get / HTTP/1.1",
          "GET /  HTTP/1.1",
          "GET / HTTP/2.0",
          "GET",
          "CONNECT h:1 HTTP/1.1",
          "GET /0123456789012345678901234567890123456789012 HTTP/1.1"};
      text += part(lines, 6);
      text += line_end();
      text += chance(20) ? "" : "Host: h" + line_end();
      append_fields_and_content(text);
    }
    return text;
  }

  std::string responses() {
    std::string text;
    const auto count = below(3) + 1;
    for (std::size_t i = 0; i < count; ++i) {
      static constexpr std::string_view lines[] = {"HTTP/1.1 200 OK",
                                                   "HTTP/1.1 404",
                                                   "HTTP/1.1 103 Early Hints",
                                                   "HTTP/1.0 200 ",
                                                   "HTTP/1.1 204 No Content",
                                                   "HTTP/1.1 304 x",
                                                   "HTTP/1.1 20 OK",
                                                   "HTTP/3.0 200 OK",
                                                   "ICY"};
      text += part(lines, 6);
      text += line_end();
      append_fields_and_content(text);
    }
    return text;
  }

  std::size_t below(std::size_t limit) { return static_cast<std::size_t>(random_() % limit); }

 private:
  bool chance(std::size_t one_in) { return damage_ && below(one_in) == 0; }
  std::string line_end() {
    if (!chance(60)) return "\r\n";
    static constexpr std::string_view ends[] = {"\n", "\r", "\r\r\n", "\n\r"};
    return std::string(ends[below(4)]);
  }
  std::string part(std::span<const std::string_view> parts, std::size_t valid) {
    return std::string(parts[chance(4) ? below(parts.size()) : below(valid)]);
  }
  void append_fields_and_content(std::string& text) {
    static constexpr std::string_view lines[] = {"X: y",
                                                 "Connection: keep-alive",
                                                 "Accept:",
                                                 "X-Long: 0123456789012345678901234567890",
                                                 "Expect: 100-continue",
                                                 "Connection: close",
                                                 "X : y",
                                                 " X: y",
                                                 "X: \x01",
                                                 "Content-Length: 1",
                                                 "X",
                                                 "Transfer_Encoding: chunked"};
    for (auto remaining = below(5); remaining > 0; --remaining) text += part(lines, 5) + line_end();
    switch (below(4)) {
      case 0: {
        const auto size = below(12);
        text += "Content-Length: " + std::to_string(size) + line_end() + line_end();
        text += std::string(size, 'c');
        break;
      }
      case 1:
        text += "Transfer-Encoding: chunked" + line_end() + line_end();
        append_chunks(text);
        break;
      case 2:
        if (chance(3)) text += "Transfer-Encoding: gzip" + line_end();
        text += line_end();
        break;
      default:
        text += line_end();
    }
    damage_ = below(2) == 0;
  }
  void append_chunks(std::string& text) {
    static constexpr std::string_view sizes[] = {"3", "3;a", "03;a=b", "3;a=\"\\\"\"",     "3 ",
                                                 "g", "3;",  "3F",     "FFFFFFFFFFFFFFFFF"};
    for (auto remaining = below(4); remaining > 0; --remaining)
      text += part(sizes, 4) + line_end() + "abc" + line_end();
    text += "0" + line_end();
    if (below(3) == 0) text += part(trailer_lines, 1) + line_end();
    text += line_end();
  }

  static constexpr std::string_view trailer_lines[] = {"T: u", "Content-Length: 3", "T", " T: u"};
  std::mt19937_64 random_;
  bool damage_ = false;
};

template <class Reader>
http_transcript read_all(const std::string& text, auto next_size) {
  Reader reader(small);
  return read_in_pieces(reader, text, next_size, true);
}

template <class Reader>
void expect_same_for_all_cuts(const std::string& text, message_builder& random,
                              std::size_t& accepted, std::size_t& refused) {
  const auto whole = read_all<Reader>(text, [] { return std::size_t{1} << 20U; });
  EXPECT_EQ(read_all<Reader>(text, [] { return 1; }), whole) << text;
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(read_all<Reader>(text, [&] { return 1 + random.below(30); }), whole) << text;
  (whole.problem == defect::none ? accepted : refused) += 1;
}

TEST(HttpCuts, RequestsAreReadTheSame) {
  const auto seed = holdfast::test::first_seed();
  SCOPED_TRACE(holdfast::test::repeated_by(seed));
  message_builder builder(seed);
  std::size_t accepted = 0;
  std::size_t refused = 0;
  for (std::size_t i = 0; i < corpus_size && !testing::Test::HasFailure(); ++i)
    expect_same_for_all_cuts<request_reader>(builder.requests(), builder, accepted, refused);
  EXPECT_GT(accepted, corpus_size / 10);
  EXPECT_GT(refused, corpus_size / 10);
}

TEST(HttpCuts, ResponsesAreReadTheSame) {
  const auto seed = holdfast::test::first_seed();
  SCOPED_TRACE(holdfast::test::repeated_by(seed));
  message_builder builder(seed);
  std::size_t accepted = 0;
  std::size_t refused = 0;
  for (std::size_t i = 0; i < corpus_size && !testing::Test::HasFailure(); ++i)
    expect_same_for_all_cuts<response_reader>(builder.responses(), builder, accepted, refused);
  EXPECT_GT(accepted, corpus_size / 10);
  EXPECT_GT(refused, corpus_size / 10);
}

// What was normalised once stays as it is.
TEST(HttpCuts, NormalisingATargetTwiceChangesNothing) {
  const auto seed = holdfast::test::first_seed();
  SCOPED_TRACE(holdfast::test::repeated_by(seed));
  message_builder random(seed);
  static constexpr std::string_view parts[] = {"/",   "a", ".", "..", "%2e", "%41", "%c3",
                                               "%2F", "?", "%", "~",  ";",   "=",   "//"};
  std::size_t accepted = 0;
  for (int i = 0; i < 20'000; ++i) {
    std::string text = "/";
    for (auto remaining = random.below(10); remaining > 0; --remaining)
      text += parts[random.below(std::size(parts))];
    const auto once = target::parse(text);
    if (!once) continue;
    ++accepted;
    const auto twice = target::parse(once->text());
    ASSERT_TRUE(twice) << text;
    ASSERT_EQ(twice->text(), once->text()) << text;
    ASSERT_EQ(once->path().find("/../"), std::string_view::npos) << text;
  }
  EXPECT_GT(accepted, 1'000U);
}

}  // namespace
