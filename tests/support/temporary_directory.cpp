#include "support/temporary_directory.hpp"

#include <pwd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <stdexcept>
#include <string_view>
#include <system_error>
#include <utility>

namespace holdfast::test {
namespace {

constexpr std::uintmax_t enough_room = std::uintmax_t{2} << 30U;

std::string place_on(medium on) {
  const char* place = std::getenv("TMPDIR");
  if (place != nullptr && *place != '\0') return place;
  if (on == medium::memory) {
    const std::filesystem::path shared_memory = "/dev/shm";
    std::error_code problem;
    // Containers often have one of 64 MB.
    if (std::filesystem::space(shared_memory, problem).available >= enough_room && !problem) return shared_memory;
  }
  return "/tmp";
}

}  // namespace

temporary_directory::temporary_directory(const std::string& purpose, const std::string& owner, medium on) {
  std::string name = place_on(on) + "/holdfast-" + purpose + "-XXXXXX";
  if (::mkdtemp(name.data()) == nullptr) throw std::system_error(errno, std::generic_category(), "mkdtemp " + name);
  path_ = name;
  if (!owner.empty() && ::geteuid() == 0) {
    const passwd* entry = ::getpwnam(owner.c_str());
    if (entry == nullptr) throw std::runtime_error("there is no user " + owner + " on this machine");
    if (::chown(name.c_str(), entry->pw_uid, entry->pw_gid) != 0) throw std::system_error(errno, std::generic_category(), "chown " + name);
  }
}

temporary_directory::temporary_directory(temporary_directory&& other) noexcept : path_(std::exchange(other.path_, {})) {}

temporary_directory::~temporary_directory() {
  if (path_.empty()) return;
  const char* keep = std::getenv("HOLDFAST_KEEP");
  if (keep != nullptr && std::string_view(keep) == "1") {
    std::cerr << "kept: " << path_.string() << '\n';
    return;
  }
  std::error_code ignored;  // a process that is just ending may still create a file; leaving it is better than failing a test
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace holdfast::test
