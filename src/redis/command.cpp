#include <holdfast/redis.hpp>

#include "base/hex.hpp"

#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <charconv>

namespace HOLDFAST_NAMESPACE::redis {

namespace {

std::string sha1_hex(std::string_view text) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned size = 0;
  if (EVP_Digest(text.data(), text.size(), digest.data(), &size, EVP_sha1(), nullptr) != 1 ||
      size != 20)
    throw error(errc::internal, "OpenSSL does not provide SHA-1, by which Redis names scripts");
  std::string hex(std::size_t{2} * size, '\0');
  holdfast::detail::to_hex(digest.data(), size, hex.data());
  return hex;
}

/// Appends `*3\r\n` or `$11\r\n`.
void append_count(std::string& output, char type, std::size_t count) {
  std::array<char, 24> buffer{};
  buffer[0] = type;
  char* end = std::to_chars(buffer.data() + 1, buffer.data() + buffer.size() - 2, count).ptr;
  *end++ = '\r';
  *end++ = '\n';
  output.append(buffer.data(), end);
}

void append_text(std::string& output, std::string_view text) {
  append_count(output, '$', text.size());
  output.append(text);
  output.append("\r\n", 2);
}

// Reasons why a client does not send a command.
constexpr std::string_view transaction =
    "connections are shared; put commands that must run together into one script";
constexpr std::string_view setting =
    "it would change the connection for the next caller; use the URL and the options";
constexpr std::string_view subscription =
    "it does not have exactly one reply, and this client has no subscriptions; use another client";
constexpr std::string_view no_reply = "it does not have exactly one reply; use redis-cli";
constexpr std::string_view closing =
    "it would close a shared connection; connections are closed with the client";

struct refused_command {
  std::string_view name;
  std::string_view reason;
};

// Commands whose effect would stay when the next caller gets the connection, and commands without
// exactly one reply, after which replies would be matched with the wrong commands.
constexpr std::array refused_commands{
    refused_command{"MULTI", transaction},
    refused_command{"EXEC", transaction},
    refused_command{"DISCARD", transaction},
    refused_command{"WATCH", transaction},
    refused_command{"UNWATCH", transaction},
    refused_command{"SELECT", setting},
    refused_command{"AUTH", setting},
    refused_command{"HELLO", setting},
    refused_command{"ASKING", setting},
    refused_command{"READONLY", setting},
    refused_command{"READWRITE", setting},
    refused_command{"CLIENT SETNAME", setting},
    refused_command{"CLIENT TRACKING", setting},
    refused_command{"CLIENT CACHING", setting},
    refused_command{"CLIENT NO-EVICT", setting},
    refused_command{"CLIENT NO-TOUCH", setting},
    refused_command{"CLIENT SETINFO", setting},
    refused_command{"SCRIPT DEBUG", setting},
    refused_command{"SUBSCRIBE", subscription},
    refused_command{"PSUBSCRIBE", subscription},
    refused_command{"SSUBSCRIBE", subscription},
    refused_command{"UNSUBSCRIBE", subscription},
    refused_command{"PUNSUBSCRIBE", subscription},
    refused_command{"SUNSUBSCRIBE", subscription},
    refused_command{"MONITOR", subscription},
    refused_command{"SYNC", no_reply},
    refused_command{"PSYNC", no_reply},
    refused_command{"REPLCONF", no_reply},
    refused_command{"SHUTDOWN", no_reply},
    refused_command{"CLIENT REPLY", no_reply},
    refused_command{"QUIT", closing},
    refused_command{"RESET", closing},
};

bool equals_ignoring_case(std::string_view word, std::string_view capitals) noexcept {
  return std::equal(word.begin(), word.end(), capitals.begin(), capitals.end(), [](char a, char b) {
    return (a >= 'a' && a <= 'z' ? static_cast<char>(a - 'a' + 'A') : a) == b;
  });
}

bool is_script_name(std::string_view name) noexcept {
  constexpr std::array names{std::string_view("EVAL"),     std::string_view("EVALSHA"),
                             std::string_view("FCALL"),    std::string_view("EVAL_RO"),
                             std::string_view("FCALL_RO"), std::string_view("EVALSHA_RO")};
  return std::ranges::any_of(
      names, [&](std::string_view each) { return equals_ignoring_case(name, each); });
}

/// Returns the index in the table, from 1, or 0 if the command may be sent. `group` is empty,
/// `CLIENT ` or `SCRIPT `.
std::uint8_t find_refused(std::string_view group, std::string_view word) noexcept {
  if (group.size() + word.size() < 4) return 0;  // fast path for GET and SET
  for (std::size_t i = 0; i < refused_commands.size(); ++i) {
    const std::string_view name = refused_commands[i].name;
    if (name.size() == group.size() + word.size() && name.starts_with(group) &&
        equals_ignoring_case(word, name.substr(group.size())))
      return static_cast<std::uint8_t>(i + 1);
  }
  return 0;
}

}  // namespace

script::script(std::string text) {
  std::string hash = sha1_hex(text);
  state_ = std::make_shared<const state>(state{std::move(text), std::move(hash)});
}

command::command(std::string_view name) {
  if (name.empty() || name.find_first_of(" \r\n\t") != std::string_view::npos)
    throw error(errc::invalid_argument,
                "the name of a Redis command is one word; pass its arguments with arg() and key()");
  append(name);
  refused_ = find_refused({}, name);
  runs_script_ = is_script_name(name);
  group_ = equals_ignoring_case(name, "CLIENT") ? 1 : equals_ignoring_case(name, "SCRIPT") ? 2 : 0;
}

command::command(const script& lua) : script_(lua.state_), runs_script_(true) {}

void command::append(std::string_view text) {
  // Reserves memory for the usual arguments, so that a command needs one allocation or two.
  constexpr std::size_t usual_size = 96;
  constexpr std::size_t frame = 16;
  if (body_.capacity() < body_.size() + text.size() + frame)
    body_.reserve(std::max(usual_size, 2 * body_.size() + text.size() + frame));
  append_text(body_, text);
  if (group_ != 0 && count_ == 1)
    refused_ = find_refused(group_ == 1 ? "CLIENT " : "SCRIPT ", text);
  ++count_;
}

std::string command::refusal() const {
  if (refused_ == 0) return {};
  const auto& refused = refused_commands[refused_ - std::size_t{1}];
  return std::string(refused.name) + " cannot be sent: " + std::string(refused.reason);
}

command& command::key(std::string_view name) & {
  if (script_ && key_count_ != count_)
    throw error(errc::invalid_argument, "the keys of a script come before its other arguments");
  append(name);
  const argument_range range{.offset = body_.size() - 2 - name.size(), .length = name.size()};
  if (key_count_++ == 0) first_key_ = range;
  else other_keys_.push_back(range);
  return *this;
}

command& command::arg(std::string_view text) & {
  append(text);
  return *this;
}

command& command::idempotent(bool yes) & noexcept {
  idempotent_ = yes;
  return *this;
}

command& command::after_previous(bool yes) & noexcept {
  after_previous_ = yes;
  return *this;
}

std::string_view command::key_at(std::size_t index) const noexcept {
  const argument_range& range = index == 0 ? first_key_ : other_keys_[index - 1];
  return std::string_view(body_).substr(range.offset, range.length);
}

void command::write(std::string& output, bool with_script_text) const {
  if (!script_) {
    append_count(output, '*', count_);
    output.append(body_);
    return;
  }
  append_count(output, '*', count_ + 3);
  append_text(output, with_script_text ? "EVAL" : "EVALSHA");
  append_text(output, with_script_text ? script_->text : script_->sha1);
  append_text(output, std::to_string(key_count_));
  output.append(body_);
}

command wait_for_replicas(std::size_t replicas, std::chrono::milliseconds timeout) {
  return command("WAIT").arg(replicas).arg(timeout.count()).after_previous();
}

command wait_for_disk(std::size_t local, std::size_t replicas, std::chrono::milliseconds timeout) {
  return command("WAITAOF").arg(local).arg(replicas).arg(timeout.count()).after_previous();
}

}  // namespace HOLDFAST_NAMESPACE::redis
