// Reads any bytes as responses, whole and in pieces, and their fields as a cache reads them.
// links: holdfast::http

#include "http/cache_control.hpp"
#include "http/conditional.hpp"
#include "http/date.hpp"
#include "support/http_messages.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

namespace {

using namespace holdfast::detail::http;

void require(bool condition) {
  if (!condition) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const limits accepted{.line = 300, .field_count = 10, .head = 1'000, .body = 500};
  response_reader whole(accepted);
  const auto expected =
      holdfast::test::read_in_pieces(whole, text, [] { return std::size_t{1} << 20U; }, true);
  response_reader pieces(accepted);
  std::size_t step = 0;
  require(holdfast::test::read_in_pieces(
              pieces, text, [&] { return 1 + step++ % 5; }, true) == expected);
  response_reader first;
  if (first.read_head(text) != read_status::complete) return 0;
  const std::chrono::sys_seconds now{std::chrono::seconds(1'795'000'000)};
  const auto& fields = first.head().fields;
  (void)cache_control::of(fields);
  (void)evaluate("GET", fields, validators{.tag = parse_entity_tag("\"a\""), .last_modified = now},
                 now);
  const auto ranges = read_range("GET", fields, {}, 100, now);
  for (const auto& range : ranges.ranges) require(range.first <= range.last && range.last < 100);
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const auto date = parse_date(fields[i].value, now);
    if (date && *date < std::chrono::sys_days{std::chrono::year(9999) / 12 / 31} &&
        *date >= std::chrono::sys_days{std::chrono::year(1000) / 1 / 1})
      require(parse_date(format_date(*date), now) == date);
  }
  return 0;
}
