// The servers of a whole test run. CTest runs `test_servers start DIR` before the first test that
// needs them and `test_servers stop DIR` after the last one. In between a keeper process owns them:
// it ends, and they with it, when it is told to, when the test run that asked for them is gone
// (interrupted, killed), when DIR disappears, or after 45 minutes.

#include "support/h2_server.hpp"
#include "support/mariadb_server.hpp"
#include "support/postgres_server.hpp"
#include "support/redis_cluster.hpp"
#include "support/redis_sentinels.hpp"
#include "support/redis_server.hpp"
#include "support/server_registry.hpp"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <exception>
#include <fstream>
#include <future>
#include <iostream>
#include <memory>
#include <string>
#include <string_view>
#include <thread>

namespace {

using namespace holdfast::test;
using std::chrono::steady_clock;

constexpr auto longest_life = std::chrono::minutes(45);
constexpr auto start_timeout = std::chrono::minutes(3);
constexpr auto stop_timeout = std::chrono::minutes(1);

std::atomic<bool> told_to_stop = false;

// Why the keeper should end, or nothing. Called often.
const char* reason_to_end(server_registry& registry, const process_identity& self,
                          steady_clock::time_point begin) {
  if (told_to_stop) return "told to";
  if (registry.keeper() != self) return "the registry is gone";
  if (steady_clock::now() - begin > longest_life) return "45 minutes are over";
  if (!registry.in_use()) {
    // Under the lock, so that no test run can register itself between this look and the end.
    const registry_lock lock(registry, false);
    if (lock.held() && !registry.in_use()) {
      registry.unpublish();
      return "nobody uses them any more";
    }
  }
  return nullptr;
}

int keep(const std::filesystem::path& directory) {
  server_registry registry(directory);
  const auto begin = steady_clock::now();
  const auto self = identify(::getpid()).value();
  registry.set_keeper(self);

  auto mariadb = std::async(std::launch::async, [] { return std::make_unique<mariadb_server>(); });
  auto redis_nodes =
      std::async(std::launch::async, [] { return std::make_unique<redis_cluster>(); });
  auto redis_masters =
      std::async(std::launch::async, [] { return std::make_unique<redis_sentinels>(); });
  auto java = std::async(std::launch::async, [] { return std::make_unique<h2_server>(); });
  const auto postgres = std::make_unique<postgres_server>();
  const auto redis = std::make_unique<redis_server>();
  const auto maria = mariadb.get();
  const auto cluster = redis_nodes.get();
  const auto sentinels = redis_masters.get();
  const auto h2 = java.get();
  registry.publish({{std::string(postgres->kind), postgres->port()},
                    {std::string(maria->kind), maria->port()},
                    {std::string(h2->kind), h2->port()},
                    {std::string(redis->kind), redis->port()},
                    {std::string(cluster->kind), cluster->port()},
                    {std::string(sentinels->kind), sentinels->port()}});
  std::clog
      << "ready after "
      << std::chrono::duration_cast<std::chrono::milliseconds>(steady_clock::now() - begin).count()
      << " ms" << std::endl;

  const char* reason = nullptr;
  while ((reason = reason_to_end(registry, self, begin)) == nullptr)
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  std::clog << "ends: " << reason << std::endl;
  if (registry.keeper() == self) registry.unpublish();
  return 0;
}

// The keeper leaves the session and the descriptors of the test run: CTest waits until nobody holds
// its pipes.
void detach(const std::filesystem::path& log) {
  ::setsid();
  const int nothing = ::open("/dev/null", O_RDONLY);
  const int file = ::open(log.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0644);
  ::dup2(nothing, 0);
  ::dup2(file, 1);
  ::dup2(file, 2);
  ::close_range(3, ~0U, 0);
  const auto stop = [](int) { told_to_stop = true; };
  for (const int number : {SIGTERM, SIGINT, SIGHUP}) ::signal(number, stop);
}

int start(const std::filesystem::path& directory) {
  std::filesystem::create_directories(directory / "users");
  server_registry registry(directory);
  const registry_lock lock(registry);
  const auto user = identify(::getppid()).value();
  if (registry.servers().empty()) {
    registry.unpublish();
    registry.add_user(user);
    const pid_t keeper = ::fork();
    if (keeper == 0) {
      int result = 1;
      try {
        detach(registry.log_file());
        result = keep(directory);
      } catch (const std::exception& problem) {
        std::clog << problem.what() << std::endl;
      }
      std::exit(result);
    }
    const auto deadline = steady_clock::now() + start_timeout;
    int status = 0;
    while (registry.servers().empty()) {
      if (::waitpid(keeper, &status, WNOHANG) == keeper || steady_clock::now() > deadline) {
        ::kill(keeper, SIGTERM);
        std::cerr << "the servers did not start:\n"
                  << std::ifstream(registry.log_file()).rdbuf() << '\n';
        return 1;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
  }
  registry.add_user(user);
  for (const auto& [kind, port] : registry.servers())
    std::cout << kind << " on port " << port << '\n';
  return 0;
}

int stop(const std::filesystem::path& directory) {
  if (!std::filesystem::exists(directory)) return 0;
  server_registry registry(directory);
  const registry_lock lock(registry);
  registry.remove_user(identify(::getppid()).value());
  const auto keeper = registry.keeper();
  if (!keeper || registry.in_use()) return 0;
  ::kill(keeper->pid, SIGTERM);
  const auto deadline = steady_clock::now() + stop_timeout;
  while (process_alive(*keeper)) {
    if (steady_clock::now() > deadline) {
      ::kill(keeper->pid, SIGKILL);  // its servers die with it
      std::cerr << "the keeper of the servers did not end by itself\n";
      return 1;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  registry.unpublish();
  return 0;
}

}  // namespace

int main(int argc, char** argv) try {
  const std::string_view command = argc == 3 ? argv[1] : "";
  if (command == "start") return start(argv[2]);
  if (command == "stop") return stop(argv[2]);
  std::cerr << "test_servers start|stop DIRECTORY\n";
  return 2;
} catch (const std::exception& problem) {
  std::cerr << "test_servers: " << problem.what() << '\n';
  return 1;
}
