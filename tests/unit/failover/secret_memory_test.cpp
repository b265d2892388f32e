// Secrets of a configuration are not in the memory of the process after an engine was made from it.
// Reads the memory as a core dump would.

#include <holdfast/failover.hpp>
#include <holdfast/store/sealed.hpp>

#include "base/aes_gcm.hpp"
#include "base/base64.hpp"
#include "support/temporary_directory.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstring>
#include <fstream>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::test {
namespace {

/// A random key as text. Kept with other bits, so that this test does not find its own copy.
class planted_key {
 public:
  planted_key() {
    std::array<std::byte, 32> bytes{};
    detail::fill_random(bytes);
    detail::encode_base64(bytes, text_.data());
    flip();
  }

  void write_to(int file) {
    flip();
    EXPECT_EQ(::write(file, text_.data(), text_.size()), static_cast<ssize_t>(text_.size()));
    flip();
  }

  /// How often the text is in the writable memory of this process.
  [[nodiscard]] int copies_in_memory() const {
    const int memory = ::open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
    EXPECT_GE(memory, 0);
    constexpr std::size_t room = std::size_t{1} << 20U;
    auto* const window = static_cast<char*>(
        ::mmap(nullptr, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    int copies = 0;
    std::ifstream maps("/proc/self/maps");
    std::vector<std::pair<std::size_t, std::size_t>> regions;
    for (std::string line; std::getline(maps, line);) {
      std::size_t after = 0;
      const auto begin = std::stoull(line, &after, 16);
      const auto end = std::stoull(line.substr(after + 1), nullptr, 16);
      if (line.substr(line.find(' ') + 1).starts_with("rw")) regions.emplace_back(begin, end);
    }
    for (const auto& [begin, end] : regions) {
      // Windows overlap, so that no copy is cut in two.
      for (auto position = begin; position < end; position += room - text_.size()) {
        const auto address = reinterpret_cast<std::size_t>(window);
        if (position < address + room && address < std::min(position + room, end)) continue;
        const auto size =
            ::pread(memory, window, std::min(room, end - position), static_cast<off_t>(position));
        for (ssize_t i = 0; i + static_cast<ssize_t>(text_.size()) <= size; ++i)
          copies += is_at(window + i) ? 1 : 0;
        detail::wipe(std::as_writable_bytes(std::span(window, room)));
      }
    }
    ::munmap(window, room);
    ::close(memory);
    return copies;
  }

 private:
  static constexpr char bits = 0x55;

  void flip() {
    for (auto& c : text_) c = static_cast<char>(c ^ bits);
  }
  [[nodiscard]] bool is_at(const char* place) const {
    for (std::size_t i = 0; i < text_.size(); ++i) {
      if ((place[i] ^ bits) != text_[i]) return false;
    }
    return true;
  }

  std::array<char, 44> text_{};
};

class SecretMemory : public ::testing::Test {
 protected:
  int create(const std::string& name) const {
    return ::open((directory.path() / name).c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
  }
  [[nodiscard]] std::string path(const std::string& name) const {
    return (directory.path() / name).string();
  }
  static void write(int file, std::string_view text) {
    EXPECT_EQ(::write(file, text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }

  temporary_directory directory{};
  planted_key key{};
};

TEST_F(SecretMemory, FindsWhatIsThere) {
  const int file = create("key");
  key.write_to(file);
  ::close(file);
  std::ifstream stream(path("key"));
  const std::string copy{std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
  EXPECT_GE(key.copies_in_memory(), 1) << "this test would not see a leak";
  EXPECT_EQ(copy.size(), 44U);
}

TEST_F(SecretMemory, AKeyOfAConfigurationIsWiped) {
  const int file = create("app.toml");
  write(file, "[failover.store]\nurl = \"sqlite://" + path("answers.db") +
                  "\"\ncreate-schema = true\nencryption.enabled = true\nencryption.key = \"");
  key.write_to(file);
  write(file, "\"\n");
  ::close(file);
  const auto engine = engine::from_config(path("app.toml"));
  EXPECT_EQ(key.copies_in_memory(), 0);
}

TEST_F(SecretMemory, AKeyFileIsWiped) {
  const int file = create("keys");
  write(file, "main:");
  key.write_to(file);
  write(file, "\n");
  ::close(file);
  const auto ring = sealing_ring::from_file(path("keys"));
  EXPECT_EQ(ring.keys().size(), 1U);
  EXPECT_EQ(key.copies_in_memory(), 0);
}

}  // namespace
}  // namespace holdfast::test
