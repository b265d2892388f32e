#include "bench/raw_redis.hpp"

#include <holdfast/error.hpp>

#include <hiredis/hiredis.h>

#include <array>

namespace holdfast::bench {

namespace {

void free_reply(redisReply* reply) { freeReplyObject(reply); }
void free_connection(redisContext* connection) { redisFree(connection); }

redisContext* connect(const std::string& address) {
  if (address.starts_with('/')) return redisConnectUnix(address.c_str());
  const auto colon = address.rfind(':');
  return redisConnect(address.substr(0, colon).c_str(), std::stoi(address.substr(colon + 1)));
}

}  // namespace

raw_redis::raw_redis(const std::string& address) : connection_(connect(address), &free_connection) {
  if (!connection_ || connection_->err != 0)
    throw error(errc::unavailable, "hiredis cannot connect to " + address, {.transient = true});
}

raw_redis::~raw_redis() = default;

raw_redis::reply raw_redis::call(const arguments& command) {
  std::vector<const char*> texts;
  std::vector<std::size_t> sizes;
  texts.reserve(command.size());
  sizes.reserve(command.size());
  for (const auto& argument : command) {
    texts.push_back(argument.data());
    sizes.push_back(argument.size());
  }
  redisAppendCommandArgv(connection_.get(), static_cast<int>(command.size()), texts.data(),
                         sizes.data());
  return read();
}

void raw_redis::append(std::initializer_list<std::string_view> command) {
  std::array<const char*, 8> texts{};
  std::array<std::size_t, 8> sizes{};
  std::size_t count = 0;
  for (const auto argument : command) {
    texts.at(count) = argument.data();
    sizes.at(count++) = argument.size();
  }
  redisAppendCommandArgv(connection_.get(), static_cast<int>(count), texts.data(), sizes.data());
}

raw_redis::reply raw_redis::read() {
  void* received = nullptr;
  if (redisGetReply(connection_.get(), &received) != REDIS_OK)
    throw error(errc::unavailable, "hiredis lost its connection", {.transient = true});
  reply result(static_cast<redisReply*>(received), &free_reply);
  if (result->type == REDIS_REPLY_ERROR)
    throw error(errc::unavailable,
                "Redis refused a command of hiredis: " + std::string(result->str, result->len));
  return result;
}

}  // namespace holdfast::bench
