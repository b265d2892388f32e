#include "support/worker.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <utility>

namespace holdfast::test {
namespace {

constexpr std::string_view flag = "--holdfast_worker=";

std::map<std::string, worker_body>& workers() {
  static std::map<std::string, worker_body> all;
  return all;
}

std::vector<std::string> command_line() {
  std::ifstream in("/proc/self/cmdline", std::ios::binary);
  std::vector<std::string> result;
  for (std::string argument; std::getline(in, argument, '\0');) result.push_back(argument);
  return result;
}

// GoogleTest calls it before the first test. In a worker there is no first test.
class worker_environment : public ::testing::Environment {
 public:
  void SetUp() override {
    const auto arguments = command_line();
    if (arguments.size() < 2 || !arguments[1].starts_with(flag)) return;
    const auto found = workers().find(arguments[1].substr(flag.size()));
    int code = 125;
    try {
      if (found == workers().end()) {
        std::cerr << "there is no worker " << arguments[1] << std::endl;
      } else {
        code = found->second({arguments.begin() + 2, arguments.end()});
      }
    } catch (const std::exception& problem) {
      std::cerr << "worker " << found->first << ": " << problem.what() << std::endl;
    }
    std::exit(code);
  }
};

}  // namespace

bool register_worker(const std::string& name, worker_body body) {
  // GoogleTest owns it
  [[maybe_unused]] static auto* const environment =
      ::testing::AddGlobalTestEnvironment(new worker_environment);
  return workers().emplace(name, std::move(body)).second;
}

child_options worker_options(const std::string& name, const std::vector<std::string>& arguments) {
  child_options options;
  options.argv = {std::filesystem::read_symlink("/proc/self/exe").string(),
                  std::string(flag) + name};
  options.argv.insert(options.argv.end(), arguments.begin(), arguments.end());
  // A filter that matches nothing would keep the worker from running, too.
  options.environment = {"GTEST_FILTER", "GTEST_TOTAL_SHARDS", "GTEST_SHARD_INDEX",
                         "GTEST_OUTPUT", "GTEST_REPEAT",       "GTEST_SHARD_STATUS_FILE"};
  return options;
}

}  // namespace holdfast::test
