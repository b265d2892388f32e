#include "redis_bench.hpp"

#include <holdfast/key/redis.hpp>
#include <holdfast/redis.hpp>

#include <hiredis/hiredis.h>
#include <unistd.h>

#include <array>
#include <memory>
#include <stdexcept>
#include <string_view>
#include <utility>

namespace holdfast::bench {

namespace {

using redis::client;
using redis::command;
using work = std::function<void(std::uint64_t)>;

constexpr std::size_t at_once = 100;
constexpr std::size_t rows_of_keys = 1'000;
const std::string payload(100, 'x');
constexpr std::string_view script_text = "return redis.call('SET', KEYS[1], ARGV[1])";

// One tag, one slot: the Cluster's client works on the very node that the plain one is measured on.
std::string key_of(std::uint64_t number) {
  static const std::string prefix = "{holdfast-bench-" + std::to_string(::getpid()) + "}:";
  return prefix + std::to_string(number % rows_of_keys);
}

/// hiredis as well as one can use it by hand: one connection, blocking.
class floor_connection {
 public:
  explicit floor_connection(const std::string& address)
      : held_(address.starts_with('/')
                  ? redisConnectUnix(address.c_str())
                  : redisConnect(address.substr(0, address.rfind(':')).c_str(), std::stoi(address.substr(address.rfind(':') + 1))),
              &redisFree) {
    if (!held_ || held_->err != 0) throw error(errc::unavailable, "hiredis cannot connect to " + address, {.transient = true});
  }

  void append(std::initializer_list<std::string_view> words) {
    std::array<const char*, 8> texts{};
    std::array<std::size_t, 8> sizes{};
    std::size_t count = 0;
    for (const auto each : words) {
      texts.at(count) = each.data();
      sizes.at(count++) = each.size();
    }
    redisAppendCommandArgv(held_.get(), static_cast<int>(count), texts.data(), sizes.data());
  }

  void read() {
    void* found = nullptr;
    if (redisGetReply(held_.get(), &found) != REDIS_OK) throw error(errc::unavailable, "hiredis lost its connection", {.transient = true});
    const std::unique_ptr<redisReply, decltype(&freeReplyObject)> reply(static_cast<redisReply*>(found), &freeReplyObject);
    if (reply->type == REDIS_REPLY_ERROR)
      throw error(errc::unavailable, "Redis refused the floor's command: " + std::string(reply->str, reply->len));
    keep(*reply);
  }

 private:
  std::unique_ptr<redisContext, decltype(&redisFree)> held_;
};

void check(const std::vector<redis::reply>& replies) {
  for (const auto& each : replies) each.checked();
  keep(replies);
}

/// Keys that are gone when this is, whatever happened.
class own_keys {
 public:
  explicit own_keys(const client& on) : on_(on) {}
  own_keys(const own_keys&) = delete;
  own_keys& operator=(const own_keys&) = delete;
  ~own_keys() {
    try {
      command remove("UNLINK");
      for (std::uint64_t i = 0; i < rows_of_keys; ++i) remove.key(key_of(i));
      on_.call(remove);
    } catch (...) {
      // The server is gone, and so is our way to its keys.
    }
  }

 private:
  const client& on_;
};

work set_pipeline(const client& with) {
  return [with, number = std::uint64_t{0}](std::uint64_t times) mutable {
    for (std::uint64_t i = 0; i < times; ++i) {
      std::vector<command> commands;
      commands.reserve(at_once);
      for (std::size_t k = 0; k < at_once; ++k) commands.push_back(command("SET").key(key_of(++number)).arg(payload));
      check(with.pipeline(commands));
    }
  };
}

work script_pipeline(const client& with) {
  return [with, body = redis::script(std::string(script_text)), number = std::uint64_t{0}](std::uint64_t times) mutable {
    for (std::uint64_t i = 0; i < times; ++i) {
      std::vector<command> commands;
      commands.reserve(at_once);
      for (std::size_t k = 0; k < at_once; ++k) commands.push_back(command(body).key(key_of(++number)).arg(payload));
      check(with.pipeline(commands));
    }
  };
}

work calls(const client& with) {
  return [with, number = std::uint64_t{0}](std::uint64_t times) mutable {
    for (std::uint64_t i = 0; i < times; ++i) keep(with.call(command("SET").key(key_of(++number)).arg(payload)));
  };
}

contest versus(std::string name, double bar, work ours, work floor) {
  contest made;
  made.name = std::move(name);
  made.bar = bar;
  made.ours = std::move(ours);
  made.floor = std::move(floor);
  return made;
}

/// The node that serves our keys, by its address.
std::string node_of(const client& cluster) {
  const auto info = cluster.call(command("CLUSTER").arg("SLOTS").idempotent());
  const auto slot = key::redis_slot(key_of(0));
  for (const auto& range : info.elements()) {
    const auto& parts = range.elements();
    if (parts.at(0).integer() > slot || parts.at(1).integer() < slot) continue;
    const auto& master = parts.at(2).elements();
    return master.at(0).text() + ':' + std::to_string(master.at(1).integer());
  }
  throw error(errc::unavailable, "no node of the Cluster serves the slot " + std::to_string(slot), {.transient = true});
}

constexpr double nine_tenths = 1 / 0.9;
constexpr double cluster_bar = 1 / 0.85;

}  // namespace

std::vector<row> measure_redis(const redis_bench& what) {
  if (what.url.starts_with("rediss"))
    throw error(errc::invalid_argument, "hiredis speaks no TLS, so there is nothing to measure beside; give redis:// or redis+cluster://");
  const client given(what.url);
  const std::string node = given.is_cluster() ? node_of(given) : given.nodes().front().address;
  const client plain = given.is_cluster() ? client("redis://" + node) : given;
  const own_keys kept(plain);
  if (const auto problem = plain.health()) throw error(*problem);

  const auto floor = std::make_shared<floor_connection>(node);
  const redis::script body{std::string(script_text)};
  plain.call(command("SCRIPT").arg("LOAD").arg(body.text()));
  auto number = std::make_shared<std::uint64_t>(0);
  std::vector<contest> contests;
  contests.push_back(versus("redis.set_pipeline", nine_tenths, set_pipeline(plain), [floor, number](std::uint64_t times) {
    for (std::uint64_t i = 0; i < times; ++i) {
      for (std::size_t k = 0; k < at_once; ++k) floor->append({"SET", key_of(++*number), payload});
      for (std::size_t k = 0; k < at_once; ++k) floor->read();
    }
  }));
  contests.push_back(versus("redis.evalsha_pipeline", nine_tenths, script_pipeline(plain), [floor, number, body](std::uint64_t times) {
    for (std::uint64_t i = 0; i < times; ++i) {
      for (std::size_t k = 0; k < at_once; ++k) floor->append({"EVALSHA", body.sha1(), "1", key_of(++*number), payload});
      for (std::size_t k = 0; k < at_once; ++k) floor->read();
    }
  }));
  contests.push_back(versus("redis.call", nine_tenths, calls(plain), [floor, number](std::uint64_t times) {
    for (std::uint64_t i = 0; i < times; ++i) {
      floor->append({"SET", key_of(++*number), payload});
      floor->read();
    }
  }));
  if (given.is_cluster()) {
    contests.push_back(versus("redis.cluster_pipeline", cluster_bar, set_pipeline(given), set_pipeline(plain)));
    contests.push_back(versus("redis.cluster_call", cluster_bar, calls(given), calls(plain)));
  }
  std::vector<row> rows;
  rows.reserve(contests.size());
  for (const auto& each : contests) rows.push_back(measure(each, what.how));
  return rows;
}

}  // namespace holdfast::bench
