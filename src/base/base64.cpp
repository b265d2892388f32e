#include "base/base64.hpp"

#include <algorithm>
#include <array>
#include <cstdint>

#if defined(__x86_64__)
#include <immintrin.h>
#define HOLDFAST_BASE64_VECTORS 1
#else
#define HOLDFAST_BASE64_VECTORS 0
#endif

namespace HOLDFAST_NAMESPACE {

namespace {

constexpr std::string_view alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr std::uint8_t wrong = 0x80;  // a bit that no digit has

constexpr std::array<std::uint8_t, 256> make_digits() {
  std::array<std::uint8_t, 256> digits{};
  digits.fill(wrong);
  for (std::size_t i = 0; i < alphabet.size(); ++i) digits[static_cast<unsigned char>(alphabet[i])] = static_cast<std::uint8_t>(i);
  return digits;
}
constexpr auto digits = make_digits();

/// What a part of a text was worth: how much of it was read, and whether it was good so far.
struct decoded {
  std::size_t read = 0;
  bool good = true;
};

#if HOLDFAST_BASE64_VECTORS

/// Every byte. Functions with a mask are used even so, because those without make g++ 12 warn about a variable of its own.
constexpr std::uint64_t all = UINT64_MAX;
constexpr std::uint64_t first_of_64(std::size_t count) { return count >= 64 ? all : (std::uint64_t{1} << count) - 1; }

constexpr std::array<std::uint8_t, 64> make_together() {
  std::array<std::uint8_t, 64> order{};
  for (std::size_t i = 0; i < 64; ++i) {
    constexpr std::size_t within[4]{1, 0, 2, 1};
    order[i] = static_cast<std::uint8_t>(i / 4 * 3 + within[i % 4]);
  }
  return order;
}
constexpr std::array<std::uint8_t, 64> make_apart() {
  std::array<std::uint8_t, 64> order{};
  for (std::size_t i = 0; i < 48; ++i) order[i] = static_cast<std::uint8_t>(i / 3 * 4 + 2 - i % 3);
  return order;
}
alignas(64) constexpr auto together_of_64 = make_together();
alignas(64) constexpr auto apart_of_64 = make_apart();

/// 48 bytes become 64 characters with three instructions: bring the three bytes of each four digits together, cut out six bits eight
/// times, look up. Reads and writes whole groups only, and nothing beyond them.
__attribute__((target("avx512f,avx512bw,avx512vbmi"))) std::size_t encode_by_64(const std::byte* from, std::size_t size,
                                                                                char* to) noexcept {
  const __m512i together = _mm512_load_si512(together_of_64.data());
  const __m512i shifts = _mm512_set1_epi64(0x3036242a1016040a);
  const __m512i letters = _mm512_loadu_si512(alphabet.data());
  std::size_t done = 0;
  while (size - done >= 3) {
    const std::size_t now = std::min<std::size_t>(48, (size - done) / 3 * 3);
    const __m512i bytes = _mm512_maskz_permutexvar_epi8(all, together, _mm512_maskz_loadu_epi8(first_of_64(now), from + done));
    const __m512i sixes = _mm512_maskz_multishift_epi64_epi8(all, shifts, bytes);
    const __m512i text = _mm512_maskz_permutexvar_epi8(all, sixes, letters);
    // A store without a mask is cheaper, also for who reads it soon.
    if (now == 48) _mm512_storeu_si512(to, text);
    else _mm512_mask_storeu_epi8(to, first_of_64(now / 3 * 4), text);
    done += now;
    to += 64;
  }
  return done;
}

/// 64 characters become 48 bytes. The text has whole groups only.
__attribute__((target("avx512f,avx512bw,avx512vbmi"))) decoded decode_by_64(std::string_view from, std::byte* to) noexcept {
  const __m512i apart = _mm512_load_si512(apart_of_64.data());
  const __m512i low = _mm512_loadu_si512(digits.data());
  const __m512i high = _mm512_loadu_si512(digits.data() + 64);
  const __m512i blank = _mm512_set1_epi8('A');
  __m512i bad = _mm512_setzero_si512();
  for (std::size_t done = 0; done < from.size(); done += 64, to += 48) {
    const std::size_t now = std::min<std::size_t>(64, from.size() - done);
    const __m512i text = _mm512_mask_loadu_epi8(blank, first_of_64(now), from.data() + done);
    const __m512i sixes = _mm512_permutex2var_epi8(low, text, high);
    bad = _mm512_or_si512(bad, _mm512_or_si512(text, sixes));  // beyond ASCII, or no digit
    const __m512i twelves = _mm512_maddubs_epi16(sixes, _mm512_set1_epi32(0x01400140));
    const __m512i words = _mm512_madd_epi16(twelves, _mm512_set1_epi32(0x00011000));
    const __m512i bytes = _mm512_maskz_permutexvar_epi8(all, apart, words);
    // 16 bytes too many are written over by the next, if it has as many.
    if (from.size() - done >= 64 + 24) _mm512_storeu_si512(to, bytes);
    else _mm512_mask_storeu_epi8(to, first_of_64(now / 4 * 3), bytes);
  }
  return {from.size(), _mm512_movepi8_mask(bad) == 0};
}

/// The same by halves, for processors without those instructions: 24 bytes become 32 characters.
__attribute__((target("avx2"))) std::size_t encode_by_32(const std::byte* from, std::size_t size, char* to) noexcept {
  const __m256i together =
      _mm256_setr_epi8(1, 0, 2, 1, 4, 3, 5, 4, 7, 6, 8, 7, 10, 9, 11, 10, 1, 0, 2, 1, 4, 3, 5, 4, 7, 6, 8, 7, 10, 9, 11, 10);
  // What is added to a digit: by 'a'-26 for 26 to 51, then for each of 52 to 63 its own, and last 'A' for 0 to 25.
  const __m256i offsets = _mm256_setr_epi8(71, -4, -4, -4, -4, -4, -4, -4, -4, -4, -4, -19, -16, 65, 0, 0, 71, -4, -4, -4, -4, -4, -4, -4,
                                           -4, -4, -4, -19, -16, 65, 0, 0);
  std::size_t done = 0;
  for (; size - done >= 28; done += 24, to += 32) {
    const __m128i first = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + done));
    const __m128i second = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + done + 12));
    const __m256i bytes = _mm256_shuffle_epi8(_mm256_set_m128i(second, first), together);
    // Six bits cannot be shifted by themselves: multiplied, they arrive where they should be.
    const __m256i even = _mm256_mulhi_epu16(_mm256_and_si256(bytes, _mm256_set1_epi32(0x0fc0fc00)), _mm256_set1_epi32(0x04000040));
    const __m256i odd = _mm256_mullo_epi16(_mm256_and_si256(bytes, _mm256_set1_epi32(0x003f03f0)), _mm256_set1_epi32(0x01000010));
    const __m256i sixes = _mm256_or_si256(even, odd);
    const __m256i capital = _mm256_and_si256(_mm256_cmpgt_epi8(_mm256_set1_epi8(26), sixes), _mm256_set1_epi8(13));
    const __m256i kind = _mm256_or_si256(_mm256_subs_epu8(sixes, _mm256_set1_epi8(51)), capital);
    const __m256i text = _mm256_add_epi8(sixes, _mm256_shuffle_epi8(offsets, kind));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), text);
  }
  return done;
}

/// 32 characters become 24 bytes; each stores 32, so the text must go on.
__attribute__((target("avx2"))) decoded decode_by_32(std::string_view from, std::byte* to) noexcept {
  // A character is no digit when the bits that its two halves forbid meet.
  const __m256i by_low = _mm256_setr_epi8(0x15, 0x11, 0x11, 0x11, 0x11, 0x11, 0x11, 0x11, 0x11, 0x11, 0x13, 0x1a, 0x1b, 0x1b, 0x1b, 0x1a,
                                          0x15, 0x11, 0x11, 0x11, 0x11, 0x11, 0x11, 0x11, 0x11, 0x11, 0x13, 0x1a, 0x1b, 0x1b, 0x1b, 0x1a);
  const __m256i by_high = _mm256_setr_epi8(0x10, 0x10, 0x01, 0x02, 0x04, 0x08, 0x04, 0x08, 0x10, 0x10, 0x10, 0x10, 0x10, 0x10, 0x10, 0x10,
                                           0x10, 0x10, 0x01, 0x02, 0x04, 0x08, 0x04, 0x08, 0x10, 0x10, 0x10, 0x10, 0x10, 0x10, 0x10, 0x10);
  const __m256i offsets =
      _mm256_setr_epi8(0, 16, 19, 4, -65, -65, -71, -71, 0, 0, 0, 0, 0, 0, 0, 0, 0, 16, 19, 4, -65, -65, -71, -71, 0, 0, 0, 0, 0, 0, 0, 0);
  const __m256i apart =
      _mm256_setr_epi8(2, 1, 0, 6, 5, 4, 10, 9, 8, 14, 13, 12, -1, -1, -1, -1, 2, 1, 0, 6, 5, 4, 10, 9, 8, 14, 13, 12, -1, -1, -1, -1);
  __m256i bad = _mm256_setzero_si256();
  std::size_t done = 0;
  for (; from.size() - done >= 48; done += 32, to += 24) {
    const __m256i text = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from.data() + done));
    const __m256i high = _mm256_and_si256(_mm256_srli_epi32(text, 4), _mm256_set1_epi8(0x0f));
    const __m256i low = _mm256_and_si256(text, _mm256_set1_epi8(0x0f));
    bad = _mm256_or_si256(bad, _mm256_and_si256(_mm256_shuffle_epi8(by_low, low), _mm256_shuffle_epi8(by_high, high)));
    const __m256i slash = _mm256_cmpeq_epi8(text, _mm256_set1_epi8('/'));
    const __m256i sixes = _mm256_add_epi8(text, _mm256_shuffle_epi8(offsets, _mm256_add_epi8(slash, high)));
    const __m256i twelves = _mm256_maddubs_epi16(sixes, _mm256_set1_epi32(0x01400140));
    const __m256i words = _mm256_shuffle_epi8(_mm256_madd_epi16(twelves, _mm256_set1_epi32(0x00011000)), apart);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), _mm256_permutevar8x32_epi32(words, _mm256_setr_epi32(0, 1, 2, 4, 5, 6, 3, 7)));
  }
  return {done, _mm256_testz_si256(bad, bad) != 0};
}

bool has_64() noexcept {
  static const bool has = __builtin_cpu_supports("avx512vbmi") != 0 && __builtin_cpu_supports("avx512bw") != 0;
  return has;
}
bool has_32() noexcept {
  static const bool has = __builtin_cpu_supports("avx2") != 0;
  return has;
}

#endif

std::size_t encode_by_vectors([[maybe_unused]] std::span<const std::byte> from, [[maybe_unused]] char* to,
                              [[maybe_unused]] base64_by by) noexcept {
#if HOLDFAST_BASE64_VECTORS
  if (by == base64_by::best && has_64()) return encode_by_64(from.data(), from.size(), to);
  if (by != base64_by::single && has_32()) return encode_by_32(from.data(), from.size(), to);
#endif
  return 0;
}

decoded decode_by_vectors([[maybe_unused]] std::string_view from, [[maybe_unused]] std::byte* to, [[maybe_unused]] base64_by by) noexcept {
#if HOLDFAST_BASE64_VECTORS
  if (by == base64_by::best && has_64()) return decode_by_64(from, to);
  if (by != base64_by::single && has_32()) return decode_by_32(from, to);
#endif
  return {};
}

std::uint32_t octet(std::byte b) noexcept { return static_cast<std::uint32_t>(b); }
std::uint32_t digit(char c) noexcept { return digits[static_cast<unsigned char>(c)]; }

}  // namespace

void encode_base64(std::span<const std::byte> from, char* to, base64_by by) noexcept {
  const std::size_t done = encode_by_vectors(from, to, by);
  to += done / 3 * 4;
  from = from.subspan(done);
  for (; from.size() >= 3; from = from.subspan(3)) {
    const std::uint32_t word = octet(from[0]) << 16U | octet(from[1]) << 8U | octet(from[2]);
    for (const unsigned shift : {18U, 12U, 6U, 0U}) *to++ = alphabet[word >> shift & 63U];
  }
  if (from.empty()) return;
  const std::uint32_t word = octet(from[0]) << 16U | (from.size() == 2 ? octet(from[1]) << 8U : 0U);
  *to++ = alphabet[word >> 18U & 63U];
  *to++ = alphabet[word >> 12U & 63U];
  *to++ = from.size() == 2 ? alphabet[word >> 6U & 63U] : '=';
  *to = '=';
}

bool decode_base64(std::string_view from, std::byte* to, base64_by by) noexcept {
  const auto size = decoded_base64_size(from);
  if (!size) return false;
  const std::size_t tail = *size % 3;
  std::string_view whole = from.substr(0, *size / 3 * 4);
  const auto [read, good] = decode_by_vectors(whole, to, by);
  to += read / 4 * 3;
  std::uint32_t bad = good ? 0 : wrong;
  for (whole.remove_prefix(read); !whole.empty(); whole.remove_prefix(4)) {
    bad |= digit(whole[0]) | digit(whole[1]) | digit(whole[2]) | digit(whole[3]);
    const std::uint32_t word = digit(whole[0]) << 18U | digit(whole[1]) << 12U | digit(whole[2]) << 6U | digit(whole[3]);
    for (const unsigned shift : {16U, 8U, 0U}) *to++ = static_cast<std::byte>(word >> shift & 0xffU);
  }
  if (tail != 0) {
    const std::string_view last = from.substr(from.size() - 4);
    const std::uint32_t third = tail == 2 ? digit(last[2]) : 0;
    bad |= digit(last[0]) | digit(last[1]) | third;
    // Bits behind the last byte must be zero, so that one value has one text.
    if ((tail == 1 ? digit(last[1]) & 15U : third & 3U) != 0) return false;
    const std::uint32_t word = digit(last[0]) << 18U | digit(last[1]) << 12U | third << 6U;
    *to++ = static_cast<std::byte>(word >> 16U & 0xffU);
    if (tail == 2) *to = static_cast<std::byte>(word >> 8U & 0xffU);
  }
  return (bad & wrong) == 0;
}

}  // namespace HOLDFAST_NAMESPACE
