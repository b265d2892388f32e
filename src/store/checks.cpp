#include "store/checks.hpp"

#include "base/utf8.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <tuple>

namespace HOLDFAST_NAMESPACE::detail::store {

namespace {

/// Returns whether all bytes are ASCII and none is NUL, reading a word at a time. The text has at
/// least one word. The last word overlaps the previous one: assembling a word from single bytes
/// would stall the processor.
template <class Word>
bool is_plain_by_words(std::string_view text) noexcept {
  constexpr auto ones = static_cast<Word>(0x0101010101010101);
  Word bad = 0;  // the high bit of a byte is set if it is not ASCII or is NUL
  const auto add_word = [&bad](const char* position) {
    Word bytes = 0;
    std::memcpy(&bytes, position, sizeof bytes);
    bad |= bytes | (bytes - ones);  // the high bit of (byte - 1) is set for NUL
  };
  for (std::size_t i = 0; i + sizeof(Word) < text.size(); i += sizeof(Word))
    add_word(text.data() + i);
  add_word(text.data() + text.size() - sizeof(Word));
  return (bad & (ones << 7U)) == 0;
}

/// Returns whether all bytes are ASCII and none is NUL.
bool is_plain(std::string_view text) noexcept {
  if (text.size() >= sizeof(std::uint64_t)) return is_plain_by_words<std::uint64_t>(text);
  if (text.size() >= sizeof(std::uint32_t)) return is_plain_by_words<std::uint32_t>(text);
  return std::ranges::all_of(text,
                             [](char c) { return static_cast<unsigned char>(c) - 1U < 0x7fU; });
}

enum class empty_text : std::uint8_t { refused, allowed };

/// Throws if the text is refused. Most texts are plain and are not checked here.
[[gnu::cold]] void check_unusual_text(std::string_view text, std::string_view column,
                                      std::size_t max_length, empty_text when_empty) {
  const auto fail = [&](errc code, const std::string& problem) {
    throw error(code, "the " + std::string(column) + " " + problem, {.path = std::string(column)});
  };
  if (text.empty() && when_empty == empty_text::refused) fail(errc::invalid_argument, "is empty");
  if (!is_utf8(text)) fail(errc::ill_formed_text, "is not well-formed UTF-8");
  if (text.find('\0') != std::string_view::npos)
    fail(errc::invalid_argument, "contains a NUL character");
  const auto length = count_code_points(text);
  if (length > max_length)
    fail(errc::too_large, "has " + std::to_string(length) + " characters; the table holds " +
                              std::to_string(max_length));
}

inline void check_text(std::string_view text, std::string_view column, std::size_t max_length,
                       empty_text when_empty = empty_text::refused) {
  if (!text.empty() && text.size() <= max_length && is_plain(text)) return;
  check_unusual_text(text, column, max_length, when_empty);
}

bool same_row(const entry& a, const entry& b) {
  return a.realm == b.realm && a.name == b.name && a.key == b.key;
}

}  // namespace

void check_name(std::string_view name) { check_text(name, "name", max_name_length); }
void check_key(std::string_view key) { check_text(key, "key", max_key_length); }

void check_entry(const entry& e) {
  check_name(e.name);
  check_key(e.key);
  check_text(e.payload_class, "payload class", max_class_length, empty_text::allowed);
  if (e.expire_on < e.as_of) {
    throw error(errc::invalid_argument, "expire_on is before as_of; set a later expire_on",
                {.path = e.name + "/" + e.key});
  }
}

void check_max_skew(std::chrono::microseconds max_skew) {
  if (max_skew.count() < 0)
    throw error(errc::invalid_argument, "max_skew must not be negative", {.path = "max_skew"});
}

std::vector<const entry*> entries_to_write(std::span<const entry> entries, timestamp now,
                                           timestamp horizon) {
  std::vector<const entry*> result;
  result.reserve(entries.size());
  for (const entry& e : entries) {
    check_entry(e);
    if (e.expire_on >= now) result.push_back(&e);
  }
  keep_newest(result, horizon);
  return result;
}

void check_expiry_times(std::span<const timestamp> times) {
  if (times.size() > holdfast::store::max_expiry_times)
    throw error(errc::invalid_argument,
                "expiring takes at most " + std::to_string(holdfast::store::max_expiry_times) +
                    " times; ask twice",
                {.path = "times"});
}

void keep_newest(std::vector<const entry*>& entries, timestamp horizon) {
  if (entries.size() < 2) return;
  struct arrival {
    const entry* value;
    std::size_t position;
  };
  std::vector<arrival> arrivals;
  arrivals.reserve(entries.size());
  for (const entry* e : entries) arrivals.push_back({e, arrivals.size()});
  // Within a key, an entry replaces those before it in this order: as_of beyond the horizon first,
  // then older before newer, and of equal versions the earlier arrival.
  std::ranges::sort(arrivals, {}, [horizon](const arrival& each) {
    const entry& e = *each.value;
    return std::make_tuple(std::string_view(e.realm), std::string_view(e.name),
                           std::string_view(e.key), e.as_of <= horizon, e.as_of, each.position);
  });
  std::ranges::transform(arrivals, entries.begin(), &arrival::value);
  // Keeps the last of each run of entries with the same key.
  const auto end = std::unique(entries.rbegin(), entries.rend(),
                               [](const entry* a, const entry* b) { return same_row(*a, *b); });
  entries.erase(entries.begin(), end.base());
}

}  // namespace HOLDFAST_NAMESPACE::detail::store
