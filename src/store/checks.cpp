#include "store/checks.hpp"

#include "base/utf8.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <tuple>

namespace HOLDFAST_NAMESPACE {

namespace {

/// Whether all bytes are ASCII and none is NUL, a word at a time. The last word overlaps the one before: to copy single bytes into a word and
/// read it back makes the processor wait.
template <class Word>
bool is_plain_by(std::string_view text) noexcept {
  constexpr auto ones = static_cast<Word>(0x0101010101010101);
  Word bad = 0;
  const auto look = [&bad](const char* at) {
    Word bytes = 0;
    std::memcpy(&bytes, at, sizeof bytes);
    bad |= bytes | (bytes - ones);
  };
  for (std::size_t at = 0; at + sizeof(Word) < text.size(); at += sizeof(Word)) look(text.data() + at);
  look(text.data() + text.size() - sizeof(Word));
  return (bad & (ones << 7U)) == 0;
}

/// True of nearly every name and key. False may be wrong.
bool is_plain(std::string_view text) noexcept {
  if (text.size() >= sizeof(std::uint64_t)) return is_plain_by<std::uint64_t>(text);
  if (text.size() >= sizeof(std::uint32_t)) return is_plain_by<std::uint32_t>(text);
  return std::ranges::all_of(text, [](char c) { return static_cast<unsigned char>(c) - 1U < 0x7fU; });
}

void check_text(std::string_view text, std::string_view what, std::size_t longest, bool may_be_empty) {
  const auto fail = [&](errc code, const std::string& why) {
    throw error(code, "the " + std::string(what) + " " + why, {.path = std::string(what)});
  };
  if (!text.empty() && text.size() <= longest && is_plain(text)) return;
  if (text.empty() && !may_be_empty) fail(errc::invalid_argument, "is empty");
  if (!is_utf8(text)) fail(errc::ill_formed_text, "is not well-formed UTF-8");
  if (text.find('\0') != std::string_view::npos) fail(errc::invalid_argument, "contains a NUL character");
  const auto length = count_code_points(text);
  if (length > longest) fail(errc::too_large, "has " + std::to_string(length) + " characters; the table holds " + std::to_string(longest));
}

bool same_row(const entry& a, const entry& b) { return a.realm == b.realm && a.name == b.name && a.key == b.key; }

}  // namespace

void check_name(std::string_view name) { check_text(name, "name", max_name_length, false); }
void check_key(std::string_view key) { check_text(key, "key", max_key_length, false); }

void check_entry(const entry& e) {
  check_name(e.name);
  check_key(e.key);
  check_text(e.payload_class, "payload class", max_class_length, true);
  if (e.expire_on < e.as_of) {
    throw error(errc::invalid_argument, "the entry expires before its call started; set expire_on", {.path = e.name + "/" + e.key});
  }
}

void check_skew(std::chrono::microseconds max_skew) {
  if (max_skew.count() < 0) throw error(errc::invalid_argument, "max_skew must not be negative", {.path = "max_skew"});
}

timestamp skew_horizon(timestamp now, std::chrono::microseconds max_skew) {
  return max_skew >= timestamp::max() - now ? timestamp::max() : now + max_skew;
}

std::vector<const entry*> to_be_written(std::span<const entry> entries, timestamp now, timestamp horizon) {
  std::vector<const entry*> chosen;
  chosen.reserve(entries.size());
  for (const entry& each : entries) {
    check_entry(each);
    if (each.expire_on >= now) chosen.push_back(&each);
  }
  // The order in which one after the other would have replaced the one before: a stamp from the future is not believed, the newer
  // follows the older, and of two with the same as_of the later arrival (which lies behind in memory) stays.
  const auto rank = [horizon](const entry* e) {
    return std::make_tuple(std::string_view(e->realm), std::string_view(e->name), std::string_view(e->key), e->as_of <= horizon, e->as_of,
                           e);
  };
  std::sort(chosen.begin(), chosen.end(), [&rank](const entry* a, const entry* b) { return rank(a) < rank(b); });
  std::vector<const entry*> newest;
  newest.reserve(chosen.size());
  for (const entry* each : chosen) {
    if (!newest.empty() && same_row(*newest.back(), *each)) newest.back() = each;
    else newest.push_back(each);
  }
  return newest;
}

}  // namespace HOLDFAST_NAMESPACE
