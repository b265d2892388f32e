#include "outbox/redis/records.hpp"

#include "outbox/redis/wire.hpp"

#include <array>
#include <charconv>

namespace HOLDFAST_NAMESPACE::detail::outbox {
namespace {

std::optional<std::int64_t> parse_digits(std::string_view digits) {
  std::int64_t number = 0;
  const auto [end, code] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (code != std::errc{} || end != digits.data() + digits.size() || number < 0)
    return std::nullopt;
  return number;
}

}  // namespace

std::optional<claim_record> parse_claim_record(std::string_view text) {
  constexpr std::int64_t number_limit = 9'000'000'000'000'000;
  constexpr std::int64_t count_limit = 1'000'000'000;
  // token, deliveries, attempts, replays, first_failed, run or parked_by
  constexpr std::array<std::int64_t, 6> limits{number_limit, count_limit,  count_limit,
                                               count_limit,  number_limit, number_limit};
  std::array<std::int64_t, limits.size()> numbers{};
  for (std::size_t i = 0; i < limits.size(); ++i) {
    const auto colon = text.find(':');
    if (colon == std::string_view::npos || text.front() == '-') return std::nullopt;
    const auto digits = text.substr(0, colon);
    const auto [parsed, code] =
        std::from_chars(digits.data(), digits.data() + digits.size(), numbers.at(i));
    if (code != std::errc{} || parsed != digits.data() + digits.size() ||
        numbers.at(i) >= limits.at(i))
      return std::nullopt;
    text.remove_prefix(colon + 1);
  }
  return claim_record{.token = numbers[0],
                      .deliveries = static_cast<std::uint32_t>(numbers[1]),
                      .attempts = static_cast<std::uint32_t>(numbers[2]),
                      .replays = static_cast<std::uint32_t>(numbers[3]),
                      .parked_by = numbers[0] == 0 ? numbers[5] : 0,
                      .key = std::string(text)};
}

std::optional<follower_member> parse_follower_member(std::string_view text) {
  constexpr std::size_t sequence_digits = 16;
  constexpr std::size_t due_digits = 15;
  constexpr std::size_t tail = 1 + sequence_digits + due_digits + id_length;
  if (text.size() < tail || text[text.size() - tail] != '\0') return std::nullopt;
  const auto numbers = text.substr(text.size() - tail + 1);
  const auto sequence = parse_digits(numbers.substr(0, sequence_digits));
  const auto due = parse_digits(numbers.substr(sequence_digits, due_digits));
  if (!sequence || !due) return std::nullopt;
  return follower_member{.key = std::string(text.substr(0, text.size() - tail)),
                         .sequence = *sequence,
                         .due = *due,
                         .id = std::string(text.substr(text.size() - id_length))};
}

redis_page read_scan_page(const redis::client& client, std::string_view scan_command,
                          const std::string& key, std::string_view cursor, std::size_t most) {
  auto command = redis::command(scan_command)
                     .key(key)
                     .arg(cursor.empty() ? std::string_view("0") : cursor)
                     .arg("COUNT")
                     .arg(most)
                     .idempotent();
  auto parts = client.call(command).elements();
  redis_page page{.next = parts.at(0).text()};
  if (page.next == "0") page.next.clear();
  auto values = std::move(parts.at(1)).elements();
  for (std::size_t i = 0; i + 1 < values.size(); i += 2)
    page.pairs.emplace_back(std::move(values[i]).text(), std::move(values[i + 1]).text());
  return page;
}

}  // namespace HOLDFAST_NAMESPACE::detail::outbox
