#include <holdfast/redis.hpp>

#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <charconv>

namespace HOLDFAST_NAMESPACE::redis {

namespace {

std::string sha1_of(std::string_view text) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned size = 0;
  if (EVP_Digest(text.data(), text.size(), digest.data(), &size, EVP_sha1(), nullptr) != 1 || size != 20)
    throw error(errc::internal, "OpenSSL computes no SHA-1; Redis names scripts by it");
  constexpr std::string_view digits = "0123456789abcdef";
  std::string hex;
  for (unsigned i = 0; i < size; ++i) {
    hex += digits[digest[i] >> 4U];
    hex += digits[digest[i] & 15U];
  }
  return hex;
}

/// `*3\r\n`, `$11\r\n`.
void append_count(std::string& to, char kind, std::size_t count) {
  std::array<char, 24> room{};
  room[0] = kind;
  char* end = std::to_chars(room.data() + 1, room.data() + room.size() - 2, count).ptr;
  *end++ = '\r';
  *end++ = '\n';
  to.append(room.data(), end);
}

void append_text(std::string& to, std::string_view text) {
  append_count(to, '$', text.size());
  to.append(text);
  to.append("\r\n", 2);
}

// Why a client does not send a command.
constexpr std::string_view transaction = "its connection is shared; use one script for what must happen together";
constexpr std::string_view setting = "what it sets would stay for others that use the connection later; use the URL and the options";
constexpr std::string_view listening = "it does not have one reply, and this client does not listen; use one that does";
constexpr std::string_view no_reply = "it does not have one reply like every other command; use redis-cli";
constexpr std::string_view ending = "it would end a connection that others use; connections are closed with the client";

struct refused {
  std::string_view name;
  std::string_view why;
};

// What they change stays when the connection is handed to the next caller; or they have no reply, or several, and the replies behind them
// would be taken for others'.
constexpr std::array refused_commands{
    refused{"MULTI", transaction},
    refused{"EXEC", transaction},
    refused{"DISCARD", transaction},
    refused{"WATCH", transaction},
    refused{"UNWATCH", transaction},
    refused{"SELECT", setting},
    refused{"AUTH", setting},
    refused{"HELLO", setting},
    refused{"ASKING", setting},
    refused{"READONLY", setting},
    refused{"READWRITE", setting},
    refused{"CLIENT SETNAME", setting},
    refused{"CLIENT TRACKING", setting},
    refused{"CLIENT CACHING", setting},
    refused{"CLIENT NO-EVICT", setting},
    refused{"CLIENT NO-TOUCH", setting},
    refused{"CLIENT SETINFO", setting},
    refused{"SCRIPT DEBUG", setting},
    refused{"SUBSCRIBE", listening},
    refused{"PSUBSCRIBE", listening},
    refused{"SSUBSCRIBE", listening},
    refused{"UNSUBSCRIBE", listening},
    refused{"PUNSUBSCRIBE", listening},
    refused{"SUNSUBSCRIBE", listening},
    refused{"MONITOR", listening},
    refused{"SYNC", no_reply},
    refused{"PSYNC", no_reply},
    refused{"REPLCONF", no_reply},
    refused{"SHUTDOWN", no_reply},
    refused{"CLIENT REPLY", no_reply},
    refused{"QUIT", ending},
    refused{"RESET", ending},
};

bool same_word(std::string_view name, std::string_view capitals) noexcept {
  return std::equal(name.begin(), name.end(), capitals.begin(), capitals.end(),
                    [](char a, char b) { return (a >= 'a' && a <= 'z' ? static_cast<char>(a - 'a' + 'A') : a) == b; });
}

/// Its place in the table, counted from 1; 0 when it may be sent. `group` is empty, `CLIENT ` or `SCRIPT `.
std::uint8_t find_refused(std::string_view group, std::string_view word) noexcept {
  if (group.size() + word.size() < 4) return 0;  // none is shorter; GET and SET are common
  for (std::size_t i = 0; i < refused_commands.size(); ++i) {
    const std::string_view name = refused_commands[i].name;
    if (name.size() == group.size() + word.size() && name.starts_with(group) && same_word(word, name.substr(group.size())))
      return static_cast<std::uint8_t>(i + 1);
  }
  return 0;
}

}  // namespace

script::script(std::string text) {
  std::string hash = sha1_of(text);
  state_ = std::make_shared<const state>(state{std::move(text), std::move(hash)});
}

command::command(std::string_view name) {
  if (name.empty() || name.find_first_of(" \r\n\t") != std::string_view::npos)
    throw error(errc::invalid_argument, "a Redis command begins with one word; pass the others with arg() and key()");
  append(name);
  refused_ = find_refused({}, name);
  group_ = same_word(name, "CLIENT") ? 1 : same_word(name, "SCRIPT") ? 2 : 0;
}

command::command(const script& what) : script_(what.state_) {}

void command::append(std::string_view text) {
  // Room for what usually follows, so that a command costs one piece of memory, or two.
  constexpr std::size_t usual = 96;
  constexpr std::size_t frame = 16;
  if (body_.capacity() < body_.size() + text.size() + frame) body_.reserve(std::max(usual, 2 * body_.size() + text.size() + frame));
  append_text(body_, text);
  if (group_ != 0 && count_ == 1) refused_ = find_refused(group_ == 1 ? "CLIENT " : "SCRIPT ", text);
  ++count_;
}

std::string command::refusal() const {
  if (refused_ == 0) return {};
  const auto& found = refused_commands[refused_ - std::size_t{1}];
  return std::string(found.name) + " cannot be sent: " + std::string(found.why);
}

command& command::key(std::string_view name) & {
  if (script_ && key_count_ != count_) throw error(errc::invalid_argument, "the keys of a script come before its other arguments");
  append(name);
  const place here{.at = body_.size() - 2 - name.size(), .length = name.size()};
  if (key_count_++ == 0) first_key_ = here;
  else more_keys_.push_back(here);
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
  const place& where = index == 0 ? first_key_ : more_keys_[index - 1];
  return std::string_view(body_).substr(where.at, where.length);
}

void command::write(std::string& to, bool whole) const {
  if (!script_) {
    append_count(to, '*', count_);
    to.append(body_);
    return;
  }
  append_count(to, '*', count_ + 3);
  if (whole) {
    append_text(to, "EVAL");
    append_text(to, script_->text);
  } else {
    append_text(to, "EVALSHA");
    append_text(to, script_->sha1);
  }
  append_text(to, std::to_string(key_count_));
  to.append(body_);
}

command wait_for_replicas(std::size_t replicas, std::chrono::milliseconds longest) {
  return command("WAIT").arg(replicas).arg(longest.count()).after_previous();
}

command wait_for_disk(std::size_t here, std::size_t replicas, std::chrono::milliseconds longest) {
  return command("WAITAOF").arg(here).arg(replicas).arg(longest.count()).after_previous();
}

}  // namespace HOLDFAST_NAMESPACE::redis
