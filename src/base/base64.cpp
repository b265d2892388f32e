// Base64 with AVX-512 or AVX2, and a plain loop for the rest of a text and for other processors.
// The method is that of Muła and Lemire, "Faster Base64 Encoding and Decoding Using AVX2
// Instructions" (2018) and "Base64 encoding and decoding at almost the speed of a memory copy"
// (2020).
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

namespace HOLDFAST_NAMESPACE::detail {

namespace {

constexpr std::string_view alphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr std::uint8_t invalid = 0x80;  // a bit that no digit has

constexpr std::array<std::uint8_t, 256> make_digits() {
  std::array<std::uint8_t, 256> digits{};
  digits.fill(invalid);
  for (std::size_t i = 0; i < alphabet.size(); ++i)
    digits[static_cast<unsigned char>(alphabet[i])] = static_cast<std::uint8_t>(i);
  return digits;
}
constexpr auto digits = make_digits();

/// The part of a text that the vector code decoded_part, and whether it is valid.
struct decoded_part {
  std::size_t characters = 0;
  bool valid = true;
};

#if HOLDFAST_BASE64_VECTORS

/// A mask of all bytes. For functions without a mask, g++ 12 warns about a variable of its own
/// headers.
constexpr std::uint64_t all_bytes = UINT64_MAX;
constexpr std::uint64_t first_bytes(std::size_t count) {
  return count >= 64 ? all_bytes : (std::uint64_t{1} << count) - 1;
}

/// The order that brings the three bytes of each four characters together.
constexpr std::array<std::uint8_t, 64> make_encode_order() {
  std::array<std::uint8_t, 64> order{};
  for (std::size_t i = 0; i < 64; ++i) {
    constexpr std::size_t within[4]{1, 0, 2, 1};
    order[i] = static_cast<std::uint8_t>(i / 4 * 3 + within[i % 4]);
  }
  return order;
}
/// The order that removes the unused byte of each word of three bytes.
constexpr std::array<std::uint8_t, 64> make_decode_order() {
  std::array<std::uint8_t, 64> order{};
  for (std::size_t i = 0; i < 48; ++i) order[i] = static_cast<std::uint8_t>(i / 3 * 4 + 2 - i % 3);
  return order;
}
alignas(64) constexpr auto encode_order = make_encode_order();
alignas(64) constexpr auto decode_order = make_decode_order();

/// Encodes 48 bytes to 64 characters at a time: order the bytes, extract groups of six bits, look
/// up the characters. Processes whole groups of 3 bytes and returns the number of bytes processed.
__attribute__((target("avx512f,avx512bw,avx512vbmi"))) std::size_t encode_avx512(
    const std::byte* input, std::size_t size, char* output) noexcept {
  const __m512i order = _mm512_load_si512(encode_order.data());
  const __m512i shifts = _mm512_set1_epi64(0x3036242a1016040a);
  const __m512i letters = _mm512_loadu_si512(alphabet.data());
  std::size_t done = 0;
  while (size - done >= 3) {
    const std::size_t now = std::min<std::size_t>(48, (size - done) / 3 * 3);
    const __m512i bytes = _mm512_maskz_permutexvar_epi8(
        all_bytes, order, _mm512_maskz_loadu_epi8(first_bytes(now), input + done));
    const __m512i sixes = _mm512_maskz_multishift_epi64_epi8(all_bytes, shifts, bytes);
    const __m512i text = _mm512_maskz_permutexvar_epi8(all_bytes, sixes, letters);
    // A store without a mask is faster, and so are loads that follow it.
    if (now == 48) _mm512_storeu_si512(output, text);
    else _mm512_mask_storeu_epi8(output, first_bytes(now / 3 * 4), text);
    done += now;
    output += 64;
  }
  return done;
}

/// Decodes 64 characters to 48 bytes at a time. The text has whole groups of 4 characters only.
__attribute__((target("avx512f,avx512bw,avx512vbmi"))) decoded_part
decode_avx512(std::string_view input, std::byte* output) noexcept {
  const __m512i order = _mm512_load_si512(decode_order.data());
  const __m512i low = _mm512_loadu_si512(digits.data());
  const __m512i high = _mm512_loadu_si512(digits.data() + 64);
  const __m512i zero_digits = _mm512_set1_epi8('A');
  __m512i bad = _mm512_setzero_si512();
  for (std::size_t done = 0; done < input.size(); done += 64, output += 48) {
    const std::size_t now = std::min<std::size_t>(64, input.size() - done);
    const __m512i text = _mm512_mask_loadu_epi8(zero_digits, first_bytes(now), input.data() + done);
    const __m512i sixes = _mm512_permutex2var_epi8(low, text, high);
    bad = _mm512_or_si512(bad, _mm512_or_si512(text, sixes));  // not ASCII, or not a digit
    const __m512i twelves = _mm512_maddubs_epi16(sixes, _mm512_set1_epi32(0x01400140));
    const __m512i words = _mm512_madd_epi16(twelves, _mm512_set1_epi32(0x00011000));
    const __m512i bytes = _mm512_maskz_permutexvar_epi8(all_bytes, order, words);
    // Writes 16 bytes too many, which the next step overwrites if it is long enough.
    if (input.size() - done >= 64 + 24) _mm512_storeu_si512(output, bytes);
    else _mm512_mask_storeu_epi8(output, first_bytes(now / 4 * 3), bytes);
  }
  return {input.size(), _mm512_movepi8_mask(bad) == 0};
}

/// As encode_avx512, for processors without AVX-512: encodes 24 bytes to 32 characters at a time.
__attribute__((target("avx2"))) std::size_t encode_avx2(const std::byte* input, std::size_t size,
                                                        char* output) noexcept {
  const __m256i order = _mm256_setr_epi8(1, 0, 2, 1, 4, 3, 5, 4, 7, 6, 8, 7, 10, 9, 11, 10, 1, 0, 2,
                                         1, 4, 3, 5, 4, 7, 6, 8, 7, 10, 9, 11, 10);
  // The difference between a character and its digit: first for 26 to 51, then one for each of 52
  // to 63, last for 0 to 25.
  const __m256i offsets =
      _mm256_setr_epi8(71, -4, -4, -4, -4, -4, -4, -4, -4, -4, -4, -19, -16, 65, 0, 0, 71, -4, -4,
                       -4, -4, -4, -4, -4, -4, -4, -4, -19, -16, 65, 0, 0);
  std::size_t done = 0;
  for (; size - done >= 28; done += 24, output += 32) {
    const __m128i first = _mm_loadu_si128(reinterpret_cast<const __m128i*>(input + done));
    const __m128i second = _mm_loadu_si128(reinterpret_cast<const __m128i*>(input + done + 12));
    const __m256i bytes = _mm256_shuffle_epi8(_mm256_set_m128i(second, first), order);
    // AVX2 cannot shift single bytes. A multiplication moves groups of six bits to their position.
    const __m256i even = _mm256_mulhi_epu16(_mm256_and_si256(bytes, _mm256_set1_epi32(0x0fc0fc00)),
                                            _mm256_set1_epi32(0x04000040));
    const __m256i odd = _mm256_mullo_epi16(_mm256_and_si256(bytes, _mm256_set1_epi32(0x003f03f0)),
                                           _mm256_set1_epi32(0x01000010));
    const __m256i sixes = _mm256_or_si256(even, odd);
    const __m256i capital =
        _mm256_and_si256(_mm256_cmpgt_epi8(_mm256_set1_epi8(26), sixes), _mm256_set1_epi8(13));
    const __m256i kind = _mm256_or_si256(_mm256_subs_epu8(sixes, _mm256_set1_epi8(51)), capital);
    const __m256i text = _mm256_add_epi8(sixes, _mm256_shuffle_epi8(offsets, kind));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(output), text);
  }
  return done;
}

/// Decodes 32 characters to 24 bytes at a time. Each step stores 32 bytes, so it stops before the
/// end of the text.
__attribute__((target("avx2"))) decoded_part decode_avx2(std::string_view input,
                                                         std::byte* output) noexcept {
  // A character is invalid if its low and its high half have a common bit in these tables.
  const __m256i by_low =
      _mm256_setr_epi8(0x15, 0x11, 0x11, 0x11, 0x11, 0x11, 0x11, 0x11, 0x11, 0x11, 0x13, 0x1a, 0x1b,
                       0x1b, 0x1b, 0x1a, 0x15, 0x11, 0x11, 0x11, 0x11, 0x11, 0x11, 0x11, 0x11, 0x11,
                       0x13, 0x1a, 0x1b, 0x1b, 0x1b, 0x1a);
  const __m256i by_high =
      _mm256_setr_epi8(0x10, 0x10, 0x01, 0x02, 0x04, 0x08, 0x04, 0x08, 0x10, 0x10, 0x10, 0x10, 0x10,
                       0x10, 0x10, 0x10, 0x10, 0x10, 0x01, 0x02, 0x04, 0x08, 0x04, 0x08, 0x10, 0x10,
                       0x10, 0x10, 0x10, 0x10, 0x10, 0x10);
  const __m256i offsets =
      _mm256_setr_epi8(0, 16, 19, 4, -65, -65, -71, -71, 0, 0, 0, 0, 0, 0, 0, 0, 0, 16, 19, 4, -65,
                       -65, -71, -71, 0, 0, 0, 0, 0, 0, 0, 0);
  const __m256i order = _mm256_setr_epi8(2, 1, 0, 6, 5, 4, 10, 9, 8, 14, 13, 12, -1, -1, -1, -1, 2,
                                         1, 0, 6, 5, 4, 10, 9, 8, 14, 13, 12, -1, -1, -1, -1);
  __m256i bad = _mm256_setzero_si256();
  std::size_t done = 0;
  for (; input.size() - done >= 48; done += 32, output += 24) {
    const __m256i text = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(input.data() + done));
    const __m256i high = _mm256_and_si256(_mm256_srli_epi32(text, 4), _mm256_set1_epi8(0x0f));
    const __m256i low = _mm256_and_si256(text, _mm256_set1_epi8(0x0f));
    bad = _mm256_or_si256(bad, _mm256_and_si256(_mm256_shuffle_epi8(by_low, low),
                                                _mm256_shuffle_epi8(by_high, high)));
    const __m256i slash = _mm256_cmpeq_epi8(text, _mm256_set1_epi8('/'));
    const __m256i sixes =
        _mm256_add_epi8(text, _mm256_shuffle_epi8(offsets, _mm256_add_epi8(slash, high)));
    const __m256i twelves = _mm256_maddubs_epi16(sixes, _mm256_set1_epi32(0x01400140));
    const __m256i words =
        _mm256_shuffle_epi8(_mm256_madd_epi16(twelves, _mm256_set1_epi32(0x00011000)), order);
    _mm256_storeu_si256(
        reinterpret_cast<__m256i*>(output),
        _mm256_permutevar8x32_epi32(words, _mm256_setr_epi32(0, 1, 2, 4, 5, 6, 3, 7)));
  }
  return {done, _mm256_testz_si256(bad, bad) != 0};
}

bool has_avx512() noexcept {
  static const bool has =
      __builtin_cpu_supports("avx512vbmi") != 0 && __builtin_cpu_supports("avx512bw") != 0;
  return has;
}
bool has_avx2() noexcept {
  static const bool has = __builtin_cpu_supports("avx2") != 0;
  return has;
}

#endif

std::size_t encode_vectors([[maybe_unused]] std::span<const std::byte> input,
                           [[maybe_unused]] char* output,
                           [[maybe_unused]] base64_instructions instructions) noexcept {
#if HOLDFAST_BASE64_VECTORS
  if (instructions == base64_instructions::best && has_avx512())
    return encode_avx512(input.data(), input.size(), output);
  if (instructions != base64_instructions::scalar && has_avx2())
    return encode_avx2(input.data(), input.size(), output);
#endif
  return 0;
}

decoded_part decode_vectors([[maybe_unused]] std::string_view input,
                            [[maybe_unused]] std::byte* output,
                            [[maybe_unused]] base64_instructions instructions) noexcept {
#if HOLDFAST_BASE64_VECTORS
  if (instructions == base64_instructions::best && has_avx512())
    return decode_avx512(input, output);
  if (instructions != base64_instructions::scalar && has_avx2()) return decode_avx2(input, output);
#endif
  return {};
}

std::uint32_t octet(std::byte b) noexcept { return static_cast<std::uint32_t>(b); }
std::uint32_t digit(char c) noexcept { return digits[static_cast<unsigned char>(c)]; }

}  // namespace

void encode_base64(std::span<const std::byte> input, char* output,
                   base64_instructions instructions) noexcept {
  const std::size_t done = encode_vectors(input, output, instructions);
  output += done / 3 * 4;
  input = input.subspan(done);
  for (; input.size() >= 3; input = input.subspan(3)) {
    const std::uint32_t word = octet(input[0]) << 16U | octet(input[1]) << 8U | octet(input[2]);
    for (const unsigned shift : {18U, 12U, 6U, 0U}) *output++ = alphabet[word >> shift & 63U];
  }
  if (input.empty()) return;
  const std::uint32_t word =
      octet(input[0]) << 16U | (input.size() == 2 ? octet(input[1]) << 8U : 0U);
  *output++ = alphabet[word >> 18U & 63U];
  *output++ = alphabet[word >> 12U & 63U];
  *output++ = input.size() == 2 ? alphabet[word >> 6U & 63U] : '=';
  *output = '=';
}

bool decode_base64(std::string_view input, std::byte* output,
                   base64_instructions instructions) noexcept {
  const auto size = decoded_base64_size(input);
  if (!size) return false;
  const std::size_t tail = *size % 3;
  std::string_view whole = input.substr(0, *size / 3 * 4);
  const auto [done, valid] = decode_vectors(whole, output, instructions);
  output += done / 4 * 3;
  std::uint32_t bad = valid ? 0 : invalid;
  for (whole.remove_prefix(done); !whole.empty(); whole.remove_prefix(4)) {
    bad |= digit(whole[0]) | digit(whole[1]) | digit(whole[2]) | digit(whole[3]);
    const std::uint32_t word =
        digit(whole[0]) << 18U | digit(whole[1]) << 12U | digit(whole[2]) << 6U | digit(whole[3]);
    for (const unsigned shift : {16U, 8U, 0U})
      *output++ = static_cast<std::byte>(word >> shift & 0xffU);
  }
  if (tail != 0) {
    const std::string_view last = input.substr(input.size() - 4);
    const std::uint32_t third = tail == 2 ? digit(last[2]) : 0;
    bad |= digit(last[0]) | digit(last[1]) | third;
    // Bits after the last byte must be zero, so that each value has only one text.
    if ((tail == 1 ? digit(last[1]) & 15U : third & 3U) != 0) return false;
    const std::uint32_t word = digit(last[0]) << 18U | digit(last[1]) << 12U | third << 6U;
    *output++ = static_cast<std::byte>(word >> 16U & 0xffU);
    if (tail == 2) *output = static_cast<std::byte>(word >> 8U & 0xffU);
  }
  return (bad & invalid) == 0;
}

}  // namespace HOLDFAST_NAMESPACE::detail
