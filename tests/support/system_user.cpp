#include "support/system_user.hpp"

#include <grp.h>
#include <pwd.h>

#include <array>
#include <stdexcept>

namespace holdfast::test {

system_user find_user(const std::string& name) {
  std::array<char, 16'384> texts{};
  passwd entry{};
  passwd* found = nullptr;
  if (::getpwnam_r(name.c_str(), &entry, texts.data(), texts.size(), &found) != 0 ||
      found == nullptr) {
    throw std::runtime_error("there is no user " + name + " on this machine");
  }
  system_user result{.id = entry.pw_uid, .group = entry.pw_gid};
  int count = 256;
  result.groups.resize(static_cast<std::size_t>(count));
  if (::getgrouplist(name.c_str(), entry.pw_gid, result.groups.data(), &count) < 0)
    throw std::runtime_error(name + " is in too many groups");
  result.groups.resize(static_cast<std::size_t>(count));
  return result;
}

}  // namespace holdfast::test
