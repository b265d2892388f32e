#include "base/uuid.hpp"

#include <holdfast/error.hpp>
#include <holdfast/uuid.hpp>

#include <openssl/sha.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <mutex>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail {
namespace {

void set_version(uuid_bytes& bytes, std::uint8_t version) noexcept {
  bytes[6] = static_cast<std::uint8_t>((bytes[6] & 0x0FU) | (std::uint32_t{version} << 4U));
  bytes[8] = static_cast<std::uint8_t>((bytes[8] & 0x3FU) | 0x80U);
}

/// Asks the kernel: OpenSSL would keep a generator for each thread, which is lost if the thread is
/// still ending when the process does.
void fill_uuid_random(std::uint8_t* output, std::size_t size) {
  if (::getentropy(output, size) != 0)
    throw error(errc::internal, "the system cannot provide random numbers for a UUID");
}

/// Creates UUIDs of version 7. Of the 74 bits that are not the time, the first 42 are a counter
/// that starts at random in each millisecond, and the other 32 are random. A child does not repeat
/// the random numbers of its parent, because they are the kernel's.
class uuid_v7_generator {
 public:
  uuid_bytes next() {
    std::array<std::uint8_t, 4> tail{};
    fill_uuid_random(tail.data(), tail.size());
    const std::scoped_lock lock(mutex_);
    const auto wall = std::chrono::duration_cast<std::chrono::milliseconds>(
                          std::chrono::system_clock::now().time_since_epoch())
                          .count();
    const auto now = static_cast<std::uint64_t>(wall);
    if (now > time_) {
      time_ = now;
      std::array<std::uint8_t, 8> start{};
      fill_uuid_random(start.data(), start.size());
      counter_ = 0;
      for (const auto byte : start) counter_ = (counter_ << 8U) | byte;
      counter_ &= (std::uint64_t{1} << 41U) - 1;  // leaves half of the range for counting
    } else if (++counter_ >> 42U != 0) {
      counter_ = 0;
      ++time_;  // stays larger than the last one, a millisecond ahead of the clock
    }
    uuid_bytes bytes{};
    for (std::size_t i = 0; i < 6; ++i)
      bytes.at(i) = static_cast<std::uint8_t>(time_ >> (40U - 8U * i));
    bytes[6] = static_cast<std::uint8_t>((counter_ >> 38U) & 0x0FU);
    bytes[7] = static_cast<std::uint8_t>(counter_ >> 30U);
    bytes[8] = static_cast<std::uint8_t>((counter_ >> 24U) & 0x3FU);
    bytes[9] = static_cast<std::uint8_t>(counter_ >> 16U);
    bytes[10] = static_cast<std::uint8_t>(counter_ >> 8U);
    bytes[11] = static_cast<std::uint8_t>(counter_);
    std::copy(tail.begin(), tail.end(), bytes.begin() + 12);
    return bytes;
  }

 private:
  std::mutex mutex_{};
  std::uint64_t time_ = 0;
  std::uint64_t counter_ = 0;
};

}  // namespace

bool is_uuid(std::string_view text) noexcept {
  if (text.size() != 36) return false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (i == 8 || i == 13 || i == 18 || i == 23) {
      if (c != '-') return false;
    } else if ((c < '0' || c > '9') && (c < 'a' || c > 'f')) {
      return false;
    }
  }
  return true;
}

uuid_bytes uuid_v4_bytes() {
  uuid_bytes bytes{};
  fill_uuid_random(bytes.data(), bytes.size());
  set_version(bytes, 4);
  return bytes;
}

uuid_bytes uuid_v7_bytes() {
  static uuid_v7_generator source;
  uuid_bytes bytes = source.next();
  set_version(bytes, 7);
  return bytes;
}

std::string uuid_v4() { return uuid_text(uuid_v4_bytes()); }
std::string uuid_v7() { return uuid_text(uuid_v7_bytes()); }

std::string uuid_v5(const uuid_bytes& name_space, std::string_view name) {
  std::vector<std::uint8_t> input(name_space.begin(), name_space.end());
  input.insert(input.end(), name.begin(), name.end());
  std::array<std::uint8_t, SHA_DIGEST_LENGTH> digest{};
  SHA1(input.data(), input.size(), digest.data());
  uuid_bytes bytes{};
  std::copy_n(digest.begin(), bytes.size(), bytes.begin());
  set_version(bytes, 5);
  return uuid_text(bytes);
}

}  // namespace HOLDFAST_NAMESPACE::detail

namespace HOLDFAST_NAMESPACE {

uuid uuid::v4() { return {.bytes = detail::uuid_v4_bytes()}; }

uuid uuid::v7() { return {.bytes = detail::uuid_v7_bytes()}; }

uuid uuid::parse(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'F') c = static_cast<char>(c - 'A' + 'a');
  }
  if (!detail::is_uuid(lower))
    throw error(errc::invalid_argument,
                "a UUID is 8-4-4-4-12 hexadecimal digits, as in "
                "550e8400-e29b-41d4-a716-446655440000");
  const auto digit = [](char c) {
    return static_cast<unsigned>(c <= '9' ? c - '0' : c - 'a' + 10);
  };
  uuid parsed;
  std::size_t position = 0;
  for (auto& byte : parsed.bytes) {
    if (lower[position] == '-') ++position;
    byte = static_cast<std::uint8_t>(digit(lower[position]) * 16U + digit(lower[position + 1]));
    position += 2;
  }
  return parsed;
}

std::string uuid::to_string() const { return detail::uuid_text(bytes); }

}  // namespace HOLDFAST_NAMESPACE
