#include "commands/serve/process_user.hpp"

#include <holdfast/error.hpp>

#include <grp.h>
#include <pwd.h>
#include <unistd.h>

#include <vector>

namespace holdfast::cli {

bool is_root() noexcept { return ::geteuid() == 0; }

void become_user(const std::string& name) {
  std::vector<char> buffer(16'384);
  passwd entry{};
  passwd* found = nullptr;
  if (::getpwnam_r(name.c_str(), &entry, buffer.data(), buffer.size(), &found) != 0 ||
      found == nullptr)
    throw error(errc::invalid_argument,
                "--user: there is no user '" + name + "'; give the name of one");
  if (::geteuid() == entry.pw_uid) return;
  // The groups first: afterwards the process may not change them.
  if (::initgroups(name.c_str(), entry.pw_gid) != 0 || ::setgid(entry.pw_gid) != 0 ||
      ::setuid(entry.pw_uid) != 0 || ::setuid(0) == 0)
    throw error(errc::permission, "--user: this process may not become " + name +
                                      "; start it as root, or as that user");
}

}  // namespace holdfast::cli
