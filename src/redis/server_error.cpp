#include "redis/server_error.hpp"

#include "redis/address.hpp"

#include <array>
#include <charconv>

namespace HOLDFAST_NAMESPACE::redis {

namespace {

struct meaning {
  std::string_view word;
  errc code;
  bool transient;
  std::string_view advice;
};

// Those marked transient were not run: trying again later can succeed and does no harm.
constexpr std::array meanings{
    meaning{"MOVED", errc::unavailable, true, "this server is part of a Cluster: use redis+cluster://"},
    meaning{"ASK", errc::unavailable, true, "this server is part of a Cluster: use redis+cluster://"},
    meaning{"TRYAGAIN", errc::unavailable, true, "try again when the slot has moved"},
    meaning{"CLUSTERDOWN", errc::unavailable, true, "try again when the Cluster has healed"},
    meaning{"LOADING", errc::unavailable, true, "try again when it has read its data"},
    meaning{"MASTERDOWN", errc::unavailable, true, "try again when it has found its master"},
    meaning{"READONLY", errc::unavailable, true, "connect to the master"},
    meaning{"BUSY", errc::unavailable, true, "a script runs for too long; end it with SCRIPT KILL"},
    meaning{"UNBLOCKED", errc::unavailable, true, "the server stepped down while the command waited; try again"},
    meaning{"NOREPLICAS", errc::unavailable, true, "try again when enough replicas are connected"},
    meaning{"MISCONF", errc::unavailable, true, "the server cannot write to its disk; look at its log"},
    meaning{"OOM", errc::unavailable, true, "the server's memory is full; make room, or raise maxmemory"},
    meaning{"NOAUTH", errc::permission, false, "give a user and a password"},
    meaning{"WRONGPASS", errc::permission, false, "check the user and the password"},
    meaning{"NOPERM", errc::permission, false, "ask for the right to do it (ACL SETUSER)"},
    meaning{"DENIED", errc::permission, false, "give the server a password, or connect from its own machine"},
    meaning{"NOSCRIPT", errc::not_found, false, ""},
    meaning{"BUSYKEY", errc::duplicate, false, ""},
    meaning{"BUSYGROUP", errc::duplicate, false, ""},
};

bool begins(std::string_view text, std::initializer_list<std::string_view> words) {
  for (const auto word : words) {
    if (text.starts_with(word)) return true;
  }
  return false;
}

/// The words of an error code are capitals; anything else is plain talk.
std::string_view first_word(std::string_view text) {
  const auto word = text.substr(0, text.find(' '));
  for (const char c : word) {
    if ((c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '_') return "ERR";
  }
  return word.empty() ? "ERR" : word;
}

/// A script that ended with an error has run, whatever the word it ends with.
bool from_script(std::string_view text) { return text.find(" script: ") != std::string_view::npos; }

/// In the server's own words, whatever it calls itself: a script may end with an error of its own that begins with BUSY or TRYAGAIN, and it
/// has run.
bool was_not_run(std::string_view text) {
  if (from_script(text)) return false;
  if (text.starts_with("LOADING ")) return text.find(" is loading the dataset") != std::string_view::npos;
  if (text.starts_with("BUSY ")) return text.find(" is busy running ") != std::string_view::npos;
  return begins(text, {"TRYAGAIN Multiple keys request", "CLUSTERDOWN The cluster is down", "CLUSTERDOWN Hash slot not served",
                       "MASTERDOWN Link with MASTER is down", "READONLY You can't write against a read only", "UNBLOCKED force unblock"});
}

}  // namespace

error server_error(std::string_view text) {
  if (text.empty()) text = "ERR (the server says no more)";
  const auto word = first_word(text);
  error::details more{.backend_code = std::string(word)};
  for (const auto& known : meanings) {
    if (known.word != word) continue;
    more.transient = known.transient;
    std::string message(text);
    if (!known.advice.empty()) message.append("; ").append(known.advice);
    return {known.code, message, std::move(more)};
  }
  if (text.starts_with("ERR max number of clients reached")) {
    more.transient = true;
    return {errc::unavailable, std::string(text) + "; raise maxclients, or use fewer connections", std::move(more)};
  }
  const auto code = begins(text, {"ERR unknown command", "ERR unknown subcommand", "ERR wrong number of arguments", "ERR syntax error",
                                  "ERR Error compiling script"})
                        ? errc::grammar
                        : errc::invalid_argument;
  // "invalid password": servers before Redis 6.
  if (begins(text, {"ERR AUTH", "ERR invalid password", "ERR Client sent AUTH"}))
    return {errc::permission, std::string(text), std::move(more)};
  return {code, std::string(text), std::move(more)};
}

verdict judge(const reply& answer, std::string_view asked) {
  if (!answer.is_error()) return {};
  const auto& problem = answer.problem();
  const auto& word = problem.backend_code();
  // In full: a script may end with an error of its own that begins with this word, and it has run.
  if (problem.message().starts_with("NOSCRIPT No matching script")) return {.what = verdict::kind::no_script};
  if (was_not_run(problem.message())) return {.what = verdict::kind::again};
  if (word != "MOVED" && word != "ASK") return {};

  // MOVED 3999 127.0.0.1:6381; behind it, our advice.
  std::string_view text = problem.message();
  text.remove_prefix(word.size() + 1);
  text = text.substr(0, text.find(';'));
  verdict found{.what = word == "MOVED" ? verdict::kind::moved : verdict::kind::ask};
  const auto space = text.find(' ');
  if (space == std::string_view::npos) return {};
  const auto digits = text.substr(0, space);
  unsigned slot = 0;
  const auto [end, failed] = std::from_chars(digits.data(), digits.data() + digits.size(), slot);
  if (failed != std::errc{} || end != digits.data() + digits.size() || slot >= 16384) return {};
  const auto where = read_address(text.substr(space + 1), host_of(asked));
  if (!where) return {};
  found.slot = static_cast<std::uint16_t>(slot);
  found.address = *where;
  return found;
}

}  // namespace HOLDFAST_NAMESPACE::redis
