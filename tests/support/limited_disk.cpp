#include "support/limited_disk.hpp"

#include <sched.h>
#include <sys/mount.h>
#include <sys/statvfs.h>

#include <cerrno>
#include <string>
#include <system_error>

namespace holdfast::test {
namespace {

void check(int result, const char* what) {
  if (result != 0) throw std::system_error(errno, std::generic_category(), what);
}

}  // namespace

limited_disk::limited_disk() {
  check(::unshare(CLONE_NEWNS), "cannot make a mount namespace (are you root?)");
  check(::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr),
        "cannot keep mounts to ourselves");
  mount(4ULL << 30U, 0);
}

limited_disk::~limited_disk() { ::umount2(directory_.path().c_str(), MNT_DETACH); }

std::uint64_t limited_disk::used() const {
  struct statvfs numbers{};
  check(::statvfs(directory_.path().c_str(), &numbers), "cannot ask how full the disk is");
  return static_cast<std::uint64_t>(numbers.f_blocks - numbers.f_bfree) * numbers.f_frsize;
}

void limited_disk::leave(std::uint64_t bytes) { mount(used() + bytes, MS_REMOUNT); }

void limited_disk::mount(std::uint64_t size, unsigned long flags) const {
  const auto options = "mode=0755,size=" + std::to_string(size);
  check(::mount("tmpfs", directory_.path().c_str(), "tmpfs", flags, options.c_str()),
        "cannot mount a small disk");
}

}  // namespace holdfast::test
