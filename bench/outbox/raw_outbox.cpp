#include "bench/outbox/raw_outbox.hpp"

#include <holdfast/error.hpp>
#include <holdfast/outbox/event.hpp>

#include <hiredis/hiredis.h>

#include <charconv>
#include <utility>

namespace holdfast::bench {

namespace {

bool is_event_id(std::string_view text) {
  return text.size() == 36 && text[8] == '-' && text[13] == '-' && text[18] == '-' &&
         text[23] == '-';
}

/// Reads the character after a backslash, and advances to its last character: `n`, `x0a`, `"`.
char read_escape(std::string_view line, std::size_t& position) {
  const char escaped = line[++position];
  if (escaped == 'x') {
    unsigned value = 0;
    std::from_chars(line.data() + position + 1, line.data() + position + 3, value, 16);
    position += 2;
    return static_cast<char>(value);
  }
  constexpr std::string_view letters = "nrtab";
  constexpr std::string_view characters = "\n\r\t\a\b";
  const auto index = letters.find(escaped);
  return index == std::string_view::npos ? escaped : characters[index];
}

/// Reads a line of MONITOR: `1700000000.123 [0 127.0.0.1:5000] "SET" "a\x00b"`.
raw_redis::arguments read_monitor_line(std::string_view line) {
  raw_redis::arguments command;
  const std::size_t header_end = line.find("] ");
  if (header_end == std::string_view::npos) return command;
  for (std::size_t i = header_end + 2; i < line.size(); ++i) {
    if (line[i] != '"') continue;
    std::string argument;
    for (++i; i < line.size() && line[i] != '"'; ++i)
      argument += line[i] == '\\' ? read_escape(line, i) : line[i];
    command.push_back(std::move(argument));
  }
  return command;
}

/// EVALSHA has: its name, the hash, the number of keys, the keys, the arguments.
std::size_t first_argument(const raw_redis::arguments& command) {
  return 3 + static_cast<std::size_t>(std::stoul(command.at(2)));
}

}  // namespace

std::vector<raw_redis::arguments> record_commands(const std::string& address,
                                                  const std::function<void()>& action) {
  raw_redis monitor(address);
  monitor.call({"MONITOR"});
  action();
  const std::string end_marker = "holdfast-bench-end-of-recording";
  raw_redis(address).call({"ECHO", end_marker});
  std::vector<raw_redis::arguments> commands;
  for (;;) {
    const auto line = monitor.read();
    auto command = read_monitor_line({line->str, line->len});
    if (command.size() == 2 && command[1] == end_marker) return commands;
    commands.push_back(std::move(command));
  }
}

raw_outbox::raw_outbox(const std::string& address, raw_redis::arguments publish,
                       raw_redis::arguments claim, raw_redis::arguments settle)
    : redis_(address),
      publish_(std::move(publish)),
      claim_(std::move(claim)),
      settle_(std::move(settle)) {
  for (std::size_t i = first_argument(publish_); i < publish_.size(); ++i) {
    if (is_event_id(publish_[i])) id_positions_.push_back(i);
  }
  if (id_positions_.empty())
    throw error(errc::internal, "the recorded publish command has no event ids");
  settle_.resize(first_argument(settle_) + 8);
}

void raw_outbox::publish() {
  for (const auto position : id_positions_) publish_[position] = new_event_id();
  redis_.call(publish_);
}

std::size_t raw_outbox::claim() {
  const auto reply = redis_.call(claim_);
  claimed_ids_.clear();
  token_.assign(reply->element[1]->str, reply->element[1]->len);
  // An entry begins with {"v":1,"id":"018f...
  constexpr std::size_t id_offset = 13;
  for (std::size_t i = 4; i + 2 < reply->elements; i += 3)
    claimed_ids_.emplace_back(reply->element[i]->str + id_offset, 36);
  return claimed_ids_.size();
}

void raw_outbox::settle() {
  auto command = settle_;
  command[first_argument(settle_)] = token_;
  for (auto& id : claimed_ids_) {
    command.emplace_back("a");
    command.push_back(std::move(id));
    command.emplace_back();
  }
  redis_.call(command);
}

bool raw_outbox::wait(const std::string& list) {
  return redis_.call({"BLPOP", list, "1"})->type == REDIS_REPLY_ARRAY;
}

void raw_outbox::remove_keys(const std::string& prefix) {
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

double raw_outbox::info(const char* section, std::string_view field) {
  const auto reply = redis_.call({"INFO", section});
  const std::string_view text(reply->str, reply->len);
  const auto position = text.find(field);
  if (position == std::string_view::npos) return 0;
  double value = 0;
  std::from_chars(text.data() + position + field.size() + 1, text.data() + text.size(), value);
  return value;
}

double raw_outbox::server_seconds() {
  return info("cpu", "used_cpu_user_main_thread") + info("cpu", "used_cpu_sys_main_thread");
}
double raw_outbox::server_bytes() { return info("memory", "used_memory"); }

}  // namespace holdfast::bench
