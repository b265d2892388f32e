#include <holdfast/error.hpp>

#include "stage.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <system_error>

namespace holdfast::cli {

namespace {

[[noreturn]] void cannot_start(const char* what, int reason) {
  throw error(errc::unavailable,
              std::string(what) + ": " + std::generic_category().message(reason) + "; try again when the machine is less busy");
}

/// Has both ends of a pipe until they are closed.
struct pipe_ends {
  std::array<int, 2> ends{-1, -1};

  pipe_ends() {
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) cannot_start("cannot make a pipe", errno);
  }
  pipe_ends(const pipe_ends&) = delete;
  pipe_ends& operator=(const pipe_ends&) = delete;
  ~pipe_ends() {
    for (int& each : ends) close(each);
  }
  static void close(int& descriptor) {
    if (descriptor >= 0) ::close(descriptor);
    descriptor = -1;
  }
};

}  // namespace

std::string run_again(const std::vector<std::string>& words) {
  pipe_ends channel;
  std::vector<std::string> owned{"holdfast"};
  owned.insert(owned.end(), words.begin(), words.end());
  std::vector<char*> arguments;
  for (std::string& each : owned) arguments.push_back(each.data());
  arguments.push_back(nullptr);

  posix_spawn_file_actions_t files;
  ::posix_spawn_file_actions_init(&files);
  ::posix_spawn_file_actions_adddup2(&files, channel.ends[1], STDOUT_FILENO);
  pid_t child = 0;
  const int reason = ::posix_spawn(&child, "/proc/self/exe", &files, nullptr, arguments.data(), ::environ);
  ::posix_spawn_file_actions_destroy(&files);
  if (reason != 0) cannot_start("cannot start another process", reason);

  // Our copy of the writing end would keep the pipe open for ever.
  pipe_ends::close(channel.ends[1]);
  std::string text;
  std::array<char, 4096> room{};
  for (;;) {
    const ssize_t got = ::read(channel.ends[0], room.data(), room.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    text.append(room.data(), static_cast<std::size_t>(got));
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) throw error(errc::internal, "the other process failed");
  return text;
}

}  // namespace holdfast::cli
