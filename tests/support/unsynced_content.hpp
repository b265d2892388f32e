#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::test {

/// What a power failure does to writes that no sync has confirmed.
enum class power_loss {
  drop,  ///< none of them reached the disk
  /// Some did, in any order: each sector of 512 bytes holds one of the versions it went through;
  /// the size is one it had
  partial
};

/// The content of a file as a disk knows it: what was synced, and what was only written.
class unsynced_content {
 public:
  static constexpr std::size_t sector = 512;

  /// A file that is safely on disk with this content.
  explicit unsynced_content(std::string durable = {}) : durable_(std::move(durable)) {}

  void write(std::size_t offset, std::string_view data);
  void truncate(std::size_t size);
  /// Everything written so far survives.
  void sync();

  [[nodiscard]] bool synced() const noexcept { return pending_.empty(); }
  /// What is found after a power failure now.
  [[nodiscard]] std::string after(power_loss loss, std::mt19937_64& random) const;

 private:
  struct change {
    bool truncation = false;
    std::size_t offset = 0;  // of a truncation: the new size
    std::string data{};

    [[nodiscard]] std::size_t size_after(std::size_t before) const;
    void apply(std::string& content, std::size_t first) const;
  };

  [[nodiscard]] std::string mixed(std::mt19937_64& random) const;

  std::string durable_;
  std::vector<change> pending_{};
};

}  // namespace holdfast::test
