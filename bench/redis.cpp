#include "bench/redis.hpp"

#include <holdfast/key/redis.hpp>
#include <holdfast/redis.hpp>

#include "bench/raw_redis.hpp"

#include <hiredis/hiredis.h>
#include <unistd.h>

#include <memory>
#include <string_view>
#include <utility>

namespace holdfast::bench {

namespace {

using redis::client;
using redis::command;

constexpr std::size_t pipeline_length = 100;
constexpr std::size_t key_count = 1'000;
const std::string payload(100, 'x');
constexpr std::string_view script_text = "return redis.call('SET', KEYS[1], ARGV[1])";

// The hash tag puts all keys into one slot: the Cluster client then uses the same node as the
// others.
std::string key_at(std::uint64_t number) {
  static const std::string prefix = "{holdfast-bench-" + std::to_string(::getpid()) + "}:";
  return prefix + std::to_string(number % key_count);
}

/// Removes the keys when it is destroyed.
class key_cleanup {
 public:
  explicit key_cleanup(const client& server) : server_(server) {}
  key_cleanup(const key_cleanup&) = delete;
  key_cleanup& operator=(const key_cleanup&) = delete;
  ~key_cleanup() {
    try {
      command unlink("UNLINK");
      for (std::uint64_t i = 0; i < key_count; ++i) unlink.key(key_at(i));
      server_.call(unlink);
    } catch (...) {
      // The server is not reachable any more, so the keys cannot be removed.
    }
  }

 private:
  const client& server_;
};

/// Sends pipelines of the command that `make_command` returns for a key.
template <class MakeCommand>
workload send_pipelines(const client& server, MakeCommand make_command) {
  return [server, make_command, number = std::uint64_t{0}](std::uint64_t iterations) mutable {
    for (std::uint64_t i = 0; i < iterations; ++i) {
      std::vector<command> commands;
      commands.reserve(pipeline_length);
      for (std::size_t k = 0; k < pipeline_length; ++k)
        commands.push_back(make_command(key_at(++number)));
      const auto replies = server.pipeline(commands);
      for (const auto& reply : replies) reply.checked();
      do_not_optimize(replies);
    }
  };
}

command set_command(const std::string& key) { return command("SET").key(key).arg(payload); }

workload send_calls(const client& server) {
  return [server, number = std::uint64_t{0}](std::uint64_t iterations) mutable {
    for (std::uint64_t i = 0; i < iterations; ++i)
      do_not_optimize(server.call(set_command(key_at(++number))));
  };
}

/// The floor: queues a command for each of `length` keys, then reads the replies.
template <class Append>
workload send_raw(std::shared_ptr<raw_redis> server, std::size_t length, Append append) {
  return [server = std::move(server), length, append,
          number = std::uint64_t{0}](std::uint64_t iterations) mutable {
    for (std::uint64_t i = 0; i < iterations; ++i) {
      for (std::size_t k = 0; k < length; ++k) append(*server, key_at(++number));
      for (std::size_t k = 0; k < length; ++k) do_not_optimize(*server->read());
    }
  };
}

void append_set(raw_redis& server, const std::string& key) { server.append({"SET", key, payload}); }

/// Returns the address of the node that serves our keys.
std::string node_of_keys(const client& cluster) {
  const auto slots = cluster.call(command("CLUSTER").arg("SLOTS").idempotent());
  const auto slot = key::redis_slot(key_at(0));
  for (const auto& range : slots.elements()) {
    const auto& parts = range.elements();
    if (parts.at(0).integer() > slot || parts.at(1).integer() < slot) continue;
    const auto& master = parts.at(2).elements();
    return master.at(0).text() + ':' + std::to_string(master.at(1).integer());
  }
  throw error(errc::unavailable, "no node of the Cluster serves the slot " + std::to_string(slot),
              {.transient = true});
}

}  // namespace

std::vector<row> measure_redis(const redis_bench_options& options) {
  if (options.url.starts_with("rediss"))
    throw error(errc::invalid_argument,
                "hiredis is used without TLS, so rediss:// cannot be compared; give redis:// or "
                "redis+cluster://");
  const client target(options.url);
  const std::string node =
      target.is_cluster() ? node_of_keys(target) : target.nodes().front().address;
  const client one_node = target.is_cluster() ? client("redis://" + node) : target;
  const key_cleanup cleanup(one_node);
  if (const auto problem = one_node.health()) throw error(*problem);

  const auto raw = std::make_shared<raw_redis>(node);
  const redis::script script{std::string(script_text)};
  one_node.call(command("SCRIPT").arg("LOAD").arg(script.text()));
  constexpr double raw_bar = 1 / 0.9;
  std::vector<comparison> comparisons;
  comparisons.push_back({.name = "redis.set_pipeline",
                         .bar = raw_bar,
                         .ours = send_pipelines(one_node, set_command),
                         .floor = send_raw(raw, pipeline_length, append_set)});
  comparisons.push_back(
      {.name = "redis.evalsha_pipeline",
       .bar = raw_bar,
       .ours = send_pipelines(
           one_node,
           [script](const std::string& key) { return command(script).key(key).arg(payload); }),
       .floor = send_raw(raw, pipeline_length, [script](raw_redis& server, const std::string& key) {
         server.append({"EVALSHA", script.sha1(), "1", key, payload});
       })});
  comparisons.push_back({.name = "redis.call",
                         .bar = raw_bar,
                         .ours = send_calls(one_node),
                         .floor = send_raw(raw, 1, append_set)});
  if (target.is_cluster()) {
    constexpr double cluster_bar = 1 / 0.85;
    comparisons.push_back({.name = "redis.cluster_pipeline",
                           .bar = cluster_bar,
                           .ours = send_pipelines(target, set_command),
                           .floor = send_pipelines(one_node, set_command)});
    comparisons.push_back({.name = "redis.cluster_call",
                           .bar = cluster_bar,
                           .ours = send_calls(target),
                           .floor = send_calls(one_node)});
  }
  std::vector<row> rows;
  rows.reserve(comparisons.size());
  for (const auto& compared : comparisons) rows.push_back(measure(compared, options.measuring));
  return rows;
}

}  // namespace holdfast::bench
