#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace holdfast::test {

/// A user of this machine.
struct system_user {
  uid_t id = 0;
  gid_t group = 0;
  std::vector<gid_t> groups{};  ///< all of them
};

/// Throws std::runtime_error when there is no such user. Thread-safe.
[[nodiscard]] system_user find_user(const std::string& name);

}  // namespace holdfast::test
