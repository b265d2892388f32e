#pragma once

/// \file
/// What a forked child may do with the sequences of its parent: nothing.

#include <holdfast/error.hpp>
#include <holdfast/sequence.hpp>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <string>
#include <string_view>
#include <utility>

namespace holdfast::test {

/// Runs `work` in a forked child, and returns the text that it returns.
template <class Work>
std::string in_forked_child(Work work) {
  std::array<int, 2> pipe_ends{};
  EXPECT_EQ(::pipe(pipe_ends.data()), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(pipe_ends[0]);
    std::string text;
    try {
      text = work();
    } catch (const std::exception& e) {
      text = std::string("the child threw: ") + e.what();
    }
    const auto written = ::write(pipe_ends[1], text.data(), text.size());
    ::_exit(written == static_cast<ssize_t>(text.size()) ? 0 : 1);
  }
  ::close(pipe_ends[1]);
  std::string text;
  std::array<char, 4096> buffer{};
  for (ssize_t size = 0; (size = ::read(pipe_ends[0], buffer.data(), buffer.size())) > 0;)
    text.append(buffer.data(), static_cast<std::size_t>(size));
  ::close(pipe_ends[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  return text;
}

/// Empty if the call is refused as it must be in a forked child; else a line about it.
template <class Call>
std::string not_refused(std::string_view name, Call call) {
  std::string outcome = "was served";
  try {
    call();
  } catch (const error& e) {
    if (e.code() == errc::invalid_argument &&
        std::string_view(e.what()).find("in the child") != std::string_view::npos)
      return {};
    outcome = e.what();
  }
  return std::string(name) + ": " + outcome + "\n";
}

/// For a forked child: calls every function of a sequence, then destroys it. Returns a line for
/// each call that was not refused.
inline std::string use_in_child(sequence& ids, sequence_handle& handle) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  std::string problems;
  problems += not_refused("next", [&] { (void)ids.next(); });
  problems += not_refused("next again", [&] { (void)ids.next(); });
  problems += not_refused("next with a deadline", [&] { (void)ids.next(deadline); });
  problems += not_refused("try_next", [&] { (void)ids.try_next(); });
  problems += not_refused("next_n", [&] { (void)ids.next_n(3); });
  problems += not_refused("handle", [&] { (void)ids.handle(); });
  problems += not_refused("next of a handle", [&] { (void)handle.next(); });
  problems += not_refused("next of a handle again", [&] { (void)handle.next(); });
  problems += not_refused("peek", [&] { (void)ids.peek(); });
  problems += not_refused("position", [&] { (void)ids.position(); });
  problems += not_refused("ensure_at_least", [&] { (void)ids.ensure_at_least(1'000'000); });
  problems += not_refused("counter", [&] { (void)ids.counter(); });
  problems += not_refused("reset_unsafe", [&] { ids.reset_unsafe(1, {}); });
  problems += not_refused("invalidate", [&] { ids.invalidate(); });
  problems += not_refused("stats", [&] { (void)ids.stats(); });
  problems += not_refused("close", [&] { (void)ids.close(deadline); });
  const sequence destroyed_first(std::move(ids));
  const sequence_handle destroyed_last(std::move(handle));
  return problems;
}

}  // namespace holdfast::test
