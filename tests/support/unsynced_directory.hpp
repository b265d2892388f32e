#pragma once

#include "support/unsynced_content.hpp"

#include <filesystem>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

namespace holdfast::test {

/// Names and files as a disk knows them: which names survive a power failure, and with which
/// content. The changes of one directory reach the disk in their order.
class unsynced_directories {
 public:
  using file = std::shared_ptr<unsynced_content>;

  /// The file behind a name: the one known, or what is on disk now; nullptr when there is neither.
  [[nodiscard]] file find(const std::string& path);
  /// A new, empty file.
  [[nodiscard]] file create(const std::string& path);
  void remove(const std::string& path);

  /// The content survives, and so does the name, with every earlier change of its directory, if the
  /// file is new.
  void sync_file(const std::string& path, unsynced_content& content);
  void sync_directory_of(const std::string& path);

  /// Writes to the real disk what a power failure leaves, and starts anew from that.
  void lose_power(power_loss loss, bool deletions_may_be_lost, std::mt19937_64& random);

 private:
  struct change {
    std::string path{};
    file added{};  // nullptr: removed
  };
  struct directory {
    std::map<std::string, file> seen{};     // what programs see; a removed file is a null pointer
    std::map<std::string, file> durable{};  // what is on disk
    std::vector<change> pending{};          // from durable to seen
    void flush(std::size_t count);
  };

  [[nodiscard]] directory& directory_of(const std::string& path) {
    return directories_[std::filesystem::path(path).parent_path()];
  }

  std::map<std::string, directory> directories_{};
};

}  // namespace holdfast::test
