#pragma once

/// \file
/// A part of a test that runs in a process of its own, because it will be killed.
///
///     HOLDFAST_WORKER(writer) {            // const std::vector<std::string>& arguments; returns the exit code
///       database db(arguments.at(0));
///       ...
///       return 0;
///     }
///
///     child_process child(worker_options("writer", {url}));
///
/// The process is the test program itself, executed anew: no threads, locks or open databases come
/// over from the test.

#include "support/child_process.hpp"

#include <functional>
#include <string>
#include <vector>

namespace holdfast::test {

using worker_body = std::function<int(const std::vector<std::string>& arguments)>;

/// For HOLDFAST_WORKER.
bool register_worker(const std::string& name, worker_body body);

/// How to run a worker of this program.
[[nodiscard]] child_options worker_options(const std::string& name,
                                           const std::vector<std::string>& arguments = {});

}  // namespace holdfast::test

#define HOLDFAST_WORKER(name)                                                   \
  static int holdfast_worker_##name(const std::vector<std::string>& arguments); \
  [[maybe_unused]] static const bool holdfast_worker_##name##_known =           \
      ::holdfast::test::register_worker(#name, holdfast_worker_##name);         \
  static int holdfast_worker_##name([[maybe_unused]] const std::vector<std::string>& arguments)
