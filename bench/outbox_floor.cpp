#include "outbox_floor.hpp"

#include <holdfast/error.hpp>
#include <holdfast/outbox/event.hpp>

#include <hiredis/hiredis.h>

#include <charconv>
#include <utility>

namespace holdfast::bench {

namespace {

void free_reply(redisReply* reply) { freeReplyObject(reply); }
void free_context(redisContext* context) { redisFree(context); }

bool is_id(std::string_view word) { return word.size() == 36 && word[8] == '-' && word[13] == '-' && word[18] == '-' && word[23] == '-'; }

/// The words of a line of MONITOR: `1700000000.123 [0 127.0.0.1:5000] "SET" "a\x00b"`.
raw_redis::words words_of(std::string_view line) {
  raw_redis::words found;
  std::size_t at = line.find("] ");
  if (at == std::string_view::npos) return found;
  for (at += 2; at < line.size(); ++at) {
    if (line[at] != '"') continue;
    std::string word;
    for (++at; at < line.size() && line[at] != '"'; ++at) {
      if (line[at] != '\\') {
        word += line[at];
        continue;
      }
      const char escaped = line[++at];
      if (escaped == 'x') {
        unsigned value = 0;
        std::from_chars(line.data() + at + 1, line.data() + at + 3, value, 16);
        word += static_cast<char>(value);
        at += 2;
      } else {
        constexpr std::string_view letters = "nrtab";
        constexpr std::string_view meant = "\n\r\t\a\b";
        const auto which = letters.find(escaped);
        word += which == std::string_view::npos ? escaped : meant[which];
      }
    }
    found.push_back(std::move(word));
  }
  return found;
}

// EVALSHA, hash, number of keys, the keys; then the arguments.
std::size_t first_argument(const raw_redis::words& command) { return 3 + static_cast<std::size_t>(std::stoul(command.at(2))); }

}  // namespace

raw_redis::raw_redis(const std::string& address)
    : held_(address.starts_with('/')
                ? redisConnectUnix(address.c_str())
                : redisConnect(address.substr(0, address.rfind(':')).c_str(), std::stoi(address.substr(address.rfind(':') + 1))),
            &free_context) {
  if (!held_ || held_->err != 0) throw error(errc::unavailable, "hiredis cannot connect to " + address, {.transient = true});
}

raw_redis::~raw_redis() = default;

raw_redis::answer raw_redis::read() {
  void* found = nullptr;
  if (redisGetReply(held_.get(), &found) != REDIS_OK) throw error(errc::unavailable, "hiredis lost its connection", {.transient = true});
  answer reply(static_cast<redisReply*>(found), &free_reply);
  if (reply->type == REDIS_REPLY_ERROR)
    throw error(errc::unavailable, "Redis refused the floor's command: " + std::string(reply->str, reply->len));
  return reply;
}

raw_redis::answer raw_redis::call(const words& what) {
  std::vector<const char*> texts;
  std::vector<std::size_t> sizes;
  texts.reserve(what.size());
  sizes.reserve(what.size());
  for (const auto& each : what) {
    texts.push_back(each.data());
    sizes.push_back(each.size());
  }
  redisAppendCommandArgv(held_.get(), static_cast<int>(what.size()), texts.data(), sizes.data());
  return read();
}

std::vector<raw_redis::words> watch(const std::string& address, const std::function<void()>& meanwhile) {
  raw_redis monitor(address);
  monitor.call({"MONITOR"});
  meanwhile();
  const std::string end = "holdfast-bench-end-of-watching";
  raw_redis(address).call({"ECHO", end});
  std::vector<raw_redis::words> seen;
  for (;;) {
    const auto line = monitor.read();
    auto found = words_of({line->str, line->len});
    if (found.size() == 2 && found[1] == end) return seen;
    seen.push_back(std::move(found));
  }
}

raw_outbox::raw_outbox(const std::string& address, raw_redis::words publish, raw_redis::words claim, raw_redis::words settle)
    : redis_(address), publish_(std::move(publish)), claim_(std::move(claim)), settle_(std::move(settle)) {
  for (std::size_t i = first_argument(publish_); i < publish_.size(); ++i) {
    if (is_id(publish_[i])) ids_.push_back(i);
  }
  if (ids_.empty()) throw error(errc::internal, "the script that publishes has no ids among its arguments");
  settle_.resize(first_argument(settle_) + 8);
}

void raw_outbox::publish() {
  for (const auto at : ids_) publish_[at] = new_event_id();
  redis_.call(publish_);
}

std::size_t raw_outbox::claim() {
  const auto reply = redis_.call(claim_);
  claimed_.clear();
  token_.assign(reply->element[1]->str, reply->element[1]->len);
  // {"v":1,"id":"018f...
  constexpr std::size_t id_at = 13;
  for (std::size_t i = 4; i + 2 < reply->elements; i += 3) claimed_.emplace_back(reply->element[i]->str + id_at, 36);
  return claimed_.size();
}

void raw_outbox::settle() {
  auto command = settle_;
  command[first_argument(settle_)] = token_;
  for (auto& id : claimed_) {
    command.emplace_back("a");
    command.push_back(std::move(id));
    command.emplace_back();
  }
  redis_.call(command);
}

bool raw_outbox::wait(const std::string& list) { return redis_.call({"BLPOP", list, "1"})->type == REDIS_REPLY_ARRAY; }

void raw_outbox::remove(const std::string& prefix) {
  std::string cursor = "0";
  do {
    const auto page = redis_.call({"SCAN", cursor, "COUNT", "1000"});
    cursor.assign(page->element[0]->str, page->element[0]->len);
    const auto* keys = page->element[1];
    for (std::size_t i = 0; i < keys->elements; ++i) {
      const std::string key(keys->element[i]->str, keys->element[i]->len);
      if (key.starts_with(prefix)) redis_.call({"UNLINK", key});
    }
  } while (cursor != "0");
}

double raw_outbox::info(const char* section, std::string_view name) {
  const auto reply = redis_.call({"INFO", section});
  const std::string_view text(reply->str, reply->len);
  const auto at = text.find(name);
  if (at == std::string_view::npos) return 0;
  double value = 0;
  std::from_chars(text.data() + at + name.size() + 1, text.data() + text.size(), value);
  return value;
}

double raw_outbox::server_seconds() { return info("cpu", "used_cpu_user_main_thread") + info("cpu", "used_cpu_sys_main_thread"); }
double raw_outbox::server_bytes() { return info("memory", "used_memory"); }

}  // namespace holdfast::bench
