#include "demo/child_process.hpp"

#include <fcntl.h>
#include <spawn.h>

#include <array>
#include <cerrno>
#include <system_error>

namespace holdfast::cli {

namespace {

[[noreturn]] void fail_to_start(const char* action, int reason) {
  throw error(errc::unavailable, std::string(action) + ": " +
                                     std::generic_category().message(reason) +
                                     "; try again when the machine is less busy");
}

/// Both ends of a pipe. The destructor closes them.
struct pipe_ends {
  std::array<int, 2> ends{-1, -1};

  pipe_ends() {
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) fail_to_start("cannot create a pipe", errno);
  }
  pipe_ends(const pipe_ends&) = delete;
  pipe_ends& operator=(const pipe_ends&) = delete;
  ~pipe_ends() {
    for (int& descriptor : ends) close(descriptor);
  }
  static void close(int& descriptor) {
    if (descriptor >= 0) ::close(descriptor);
    descriptor = -1;
  }
};

}  // namespace

int wait_for_exit(pid_t child) noexcept {
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

std::string run_self(const std::vector<std::string>& arguments) {
  pipe_ends channel;
  std::vector<std::string> words{"holdfast"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);

  posix_spawn_file_actions_t files;
  ::posix_spawn_file_actions_init(&files);
  ::posix_spawn_file_actions_adddup2(&files, channel.ends[1], STDOUT_FILENO);
  pid_t child = 0;
  const int reason =
      ::posix_spawn(&child, "/proc/self/exe", &files, nullptr, argv.data(), ::environ);
  ::posix_spawn_file_actions_destroy(&files);
  if (reason != 0) fail_to_start("cannot start another process", reason);

  // Otherwise read() would never see the end of the output.
  pipe_ends::close(channel.ends[1]);
  std::string text;
  std::array<char, 4096> buffer{};
  for (;;) {
    const ssize_t received = ::read(channel.ends[0], buffer.data(), buffer.size());
    if (received < 0 && errno == EINTR) continue;
    if (received <= 0) break;
    text.append(buffer.data(), static_cast<std::size_t>(received));
  }
  const int status = wait_for_exit(child);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
    throw error(errc::internal, "the second process failed");
  return text;
}

}  // namespace holdfast::cli
