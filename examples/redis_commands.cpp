// Commands, a pipeline and a script on Redis. The argument is a URL. Without one, the example shows
// the error that a caller gets when no server listens.

#include <holdfast/redis.hpp>

#include <chrono>
#include <iostream>
#include <string>
#include <vector>

namespace redis = holdfast::redis;
using namespace std::chrono_literals;

void greet(const redis::client& server) {
  // region call
  server.call(redis::command("SET").key("greeting").arg("hello").idempotent());
  const std::string hello = server.call(redis::command("GET").key("greeting").idempotent()).text();
  // endregion
  std::cout << hello << '\n';
}

void transfer(const redis::client& server) {
  // region script
  // Created once and kept: it is sent by its hash.
  static const redis::script move(R"(
    redis.call('DECRBY', KEYS[1], ARGV[1])
    return redis.call('INCRBY', KEYS[2], ARGV[1])
  )");
  const std::vector<redis::command> commands{
      redis::command("SET").key("{bank}:a").arg(100),
      redis::command(move).key("{bank}:a").key("{bank}:b").arg(30),
      // On the same connection: the reply is about the script before it.
      redis::wait_for_replicas(1, 100ms),
  };
  const std::vector<redis::reply> replies = server.pipeline(commands);
  const auto in_b = replies[1].integer();       // throws what went wrong with the script
  const bool safe = replies[2].integer() >= 1;  // a replica has it
  // endregion
  std::cout << in_b << ' ' << safe << '\n';
}

int main(int argc, char** argv) {
  const redis::client server(argc > 1 ? argv[1] : "redis://127.0.0.1:1");
  // region doubt
  try {
    greet(server);
    transfer(server);
  } catch (const holdfast::error& problem) {
    if (problem.in_doubt()) std::cout << "it may have happened: look before you repeat it\n";
    else if (problem.transient()) std::cout << "it did not happen: try again later\n";
    else std::cout << "it cannot work: " << problem.what() << '\n';
  }
  // endregion
  std::cout << "calls " << server.count().calls << ", in doubt " << server.count().in_doubt << '\n';
}
