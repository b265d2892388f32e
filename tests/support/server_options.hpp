#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace holdfast::test {

/// How a private server is to be started.
struct server_options {
  std::vector<std::string> settings{};  ///< `name=value`, in the words of the server; the last one wins
  bool durable = true;                  ///< false: it never waits for the disk, and may lose what it acknowledged
  std::filesystem::path directory{};    ///< an existing directory for the data directory (a small file system, say); empty: a temporary one
};

}  // namespace holdfast::test
