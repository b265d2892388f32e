#include "support/data_template.hpp"

#include "support/child_process.hpp"
#include "support/temporary_directory.hpp"

#include <unistd.h>

#include <cstdlib>
#include <stdexcept>

namespace holdfast::test {
namespace {

std::filesystem::path cache_directory() {
  const char* place = std::getenv("HOLDFAST_TEST_CACHE");
  return place != nullptr && *place != '\0' ? place : HOLDFAST_TEST_CACHE_DIRECTORY;
}

// With owners and modes, which the servers insist on; a copy-on-write clone where the file system
// can.
void copy_tree(const std::filesystem::path& from, const std::filesystem::path& to) {
  const auto result =
      run_program({.argv = {"cp", "-a", "--reflink=auto", "-T", from.string(), to.string()}});
  if (!result.status.success())
    throw std::runtime_error("cannot copy " + from.string() + ": " + result.error);
}

}  // namespace

void copy_data_template(const std::string& name, const std::string& owner,
                        const std::filesystem::path& target,
                        const std::function<void(const std::filesystem::path&)>& make) {
  const auto kept = cache_directory() / name;
  if (!std::filesystem::exists(kept)) {
    // Made elsewhere: the servers' own users may be kept out of the build directory.
    const temporary_directory workshop("template", owner, medium::memory);
    make(workshop.path() / "data");
    std::filesystem::create_directories(kept.parent_path());
    const auto unfinished = kept.string() + '.' + std::to_string(::getpid());
    copy_tree(workshop.path() / "data", unfinished);
    std::error_code lost_the_race;  // somebody else was faster; theirs is as good
    std::filesystem::rename(unfinished, kept, lost_the_race);
    if (lost_the_race) std::filesystem::remove_all(unfinished);
  }
  copy_tree(kept, target);
}

}  // namespace holdfast::test
