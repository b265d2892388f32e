#include "support/temporary_directory.hpp"

#include "support/system_user.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <string_view>
#include <system_error>
#include <utility>

namespace holdfast::test {
namespace {

// Like nobody else's, for what has this name and no living owner is removed.
constexpr std::string_view prefix = "holdfast-temporary.";

constexpr std::uintmax_t enough_room = std::uintmax_t{2} << 30U;

std::string place_on(medium on) {
  const char* place = std::getenv("TMPDIR");
  if (place != nullptr && *place != '\0') return place;
  if (on == medium::memory) {
    const std::filesystem::path shared_memory = "/dev/shm";
    std::error_code problem;
    // Containers often have one of 64 MB.
    if (std::filesystem::space(shared_memory, problem).available >= enough_room && !problem)
      return shared_memory;
  }
  return "/tmp";
}

bool keep() {
  const char* value = std::getenv("HOLDFAST_KEEP");
  return value != nullptr && std::string_view(value) == "1";
}

// A lock on the directory itself, held while its owner lives.
int lock_directory(const std::filesystem::path& path, int how) {
  const int file = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (file >= 0 && ::flock(file, how) == 0) return file;
  if (file >= 0) ::close(file);
  return -1;
}

// Removes what programs that were killed left in this place, and not what is so new that its owner
// may not have locked it yet.
void sweep(const std::filesystem::path& place) {
  std::error_code problem;
  for (const auto& entry : std::filesystem::directory_iterator(place, problem)) {
    if (!entry.path().filename().string().starts_with(prefix) || !entry.is_directory(problem))
      continue;
    const auto changed = entry.last_write_time(problem);
    if (problem ||
        std::filesystem::file_time_type::clock::now() - changed < std::chrono::minutes(1))
      continue;
    const int lock = lock_directory(entry.path(), LOCK_EX | LOCK_NB);
    if (lock < 0) continue;
    std::filesystem::remove_all(entry.path(), problem);
    ::close(lock);
  }
}

}  // namespace

temporary_directory::temporary_directory(const std::string& purpose, const std::string& owner,
                                         medium on) {
  const auto place = place_on(on);
  if (!keep()) sweep(place);
  std::string name = place + '/' + std::string(prefix) + purpose + "-XXXXXX";
  if (::mkdtemp(name.data()) == nullptr)
    throw std::system_error(errno, std::generic_category(), "mkdtemp " + name);
  path_ = name;
  lock_ = lock_directory(path_, LOCK_SH);
  if (!owner.empty() && ::geteuid() == 0) {
    const auto user = find_user(owner);
    if (::chown(name.c_str(), user.id, user.group) != 0)
      throw std::system_error(errno, std::generic_category(), "chown " + name);
  }
}

temporary_directory::temporary_directory(temporary_directory&& other) noexcept
    : path_(std::exchange(other.path_, {})), lock_(std::exchange(other.lock_, -1)) {}

temporary_directory::~temporary_directory() {
  if (path_.empty()) return;
  // A process that is just ending may still create a file; leaving it is better than failing a test
  std::error_code ignored;
  if (keep()) {
    const auto kept = path_.parent_path() / ("kept-" + path_.filename().string());
    std::filesystem::rename(path_, kept, ignored);
    std::cerr << "kept: " << kept.string() << '\n';
  } else {
    std::filesystem::remove_all(path_, ignored);
  }
  if (lock_ >= 0) ::close(lock_);
}

}  // namespace holdfast::test
