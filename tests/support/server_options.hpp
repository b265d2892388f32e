#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace holdfast::test {

/// How a private server is to be started.
///
/// Data in memory is ten times faster and proves the same: what kill -9 can lose is what the server
/// had not yet written, and what it has written is in the kernel's hands on any file system. A test
/// of what a disk loses, or a measurement, says `.directory`.
struct server_options {
  /// `name=value`, in the words of the server; the last one wins
  std::vector<std::string> settings{};
  /// false: it never waits for the disk, and may lose what it acknowledged
  bool durable = true;
  /// Where to make the data directory (a small file system, say); empty: a temporary one, in memory
  std::filesystem::path directory{};
};

}  // namespace holdfast::test
