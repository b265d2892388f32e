#include "redis/server_error.hpp"

#include "net/address.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <initializer_list>
#include <utility>

namespace HOLDFAST_NAMESPACE::detail::redis {

namespace {

struct error_class {
  std::string_view word;
  errc code;
  bool transient;
  std::string_view advice;
};

// A transient error means that the server did not run the command: a retry can succeed and does no
// harm.
constexpr std::array error_classes{
    error_class{"MOVED", errc::unavailable, true,
                "this server is part of a Cluster: use redis+cluster://"},
    error_class{"ASK", errc::unavailable, true,
                "this server is part of a Cluster: use redis+cluster://"},
    error_class{"TRYAGAIN", errc::unavailable, true, "try again when the slot has moved"},
    error_class{"CLUSTERDOWN", errc::unavailable, true, "try again when the Cluster has recovered"},
    error_class{"LOADING", errc::unavailable, true, "try again when it has loaded its data"},
    error_class{"MASTERDOWN", errc::unavailable, true,
                "try again when it is connected to its master"},
    error_class{"READONLY", errc::unavailable, true, "connect to the master"},
    error_class{"BUSY", errc::unavailable, true,
                "a script runs for too long; end it with SCRIPT KILL"},
    error_class{"UNBLOCKED", errc::unavailable, true,
                "the server became a replica while the command waited; try again"},
    error_class{"NOREPLICAS", errc::unavailable, true,
                "try again when enough replicas are connected"},
    error_class{"MISCONF", errc::unavailable, true,
                "the server cannot write to its disk; check its log"},
    error_class{"OOM", errc::unavailable, true,
                "the memory of the server is full; delete data, or raise maxmemory"},
    error_class{"NOAUTH", errc::permission, false, "give a user and a password"},
    error_class{"WRONGPASS", errc::permission, false, "check the user and the password"},
    error_class{"NOPERM", errc::permission, false, "grant the user this command (ACL SETUSER)"},
    error_class{"DENIED", errc::permission, false,
                "set a password on the server, or connect from its own machine"},
    // From the scripts of Holdfast.
    error_class{"NEWSCHEMA", errc::unsupported_type, false, "update the program"},
    error_class{"NOSCRIPT", errc::not_found, false, ""},
    error_class{"BUSYKEY", errc::duplicate, false, ""},
    error_class{"BUSYGROUP", errc::duplicate, false, ""},
};

bool starts_with_any(std::string_view text, std::initializer_list<std::string_view> prefixes) {
  return std::any_of(prefixes.begin(), prefixes.end(),
                     [&](std::string_view prefix) { return text.starts_with(prefix); });
}

/// Returns the first word if it is an error code, which has only capitals, digits and underscores;
/// otherwise ERR.
std::string_view code_word(std::string_view text) {
  const auto word = text.substr(0, text.find(' '));
  for (const char c : word) {
    if ((c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '_') return "ERR";
  }
  return word.empty() ? "ERR" : word;
}

/// Returns true if the server did not run the command.
///
/// The code word alone does not tell: a script may end with an error of its own that begins with
/// BUSY or TRYAGAIN, and such a script has run. So this compares the sentences of the server. Forks
/// of Redis put their own name into some of them.
bool was_not_run(std::string_view text) {
  const bool raised_in_script = text.find(" script: ") != std::string_view::npos;
  if (raised_in_script) return false;
  if (text.starts_with("LOADING "))
    return text.find(" is loading the dataset") != std::string_view::npos;
  if (text.starts_with("BUSY ")) return text.find(" is busy running ") != std::string_view::npos;
  return starts_with_any(
      text, {"TRYAGAIN Multiple keys request", "CLUSTERDOWN The cluster is down",
             "CLUSTERDOWN Hash slot not served", "MASTERDOWN Link with MASTER is down",
             "READONLY You can't write against a read only", "UNBLOCKED force unblock"});
}

/// Parses `3999 127.0.0.1:6381`. Returns `accept` if the text is not a redirect.
reply_action parse_redirect(reply_action::kind kind, std::string_view text, std::string_view node) {
  const auto space = text.find(' ');
  if (space == std::string_view::npos) return {};
  const auto digits = text.substr(0, space);
  unsigned slot = 0;
  const auto [end, failed] = std::from_chars(digits.data(), digits.data() + digits.size(), slot);
  if (failed != std::errc{} || end != digits.data() + digits.size() || slot >= 16384) return {};
  auto address = net::parse_address(text.substr(space + 1), net::host_of(node));
  if (!address) return {};
  return {.action = kind, .slot = static_cast<std::uint16_t>(slot), .address = std::move(*address)};
}

}  // namespace

error server_error(std::string_view text) {
  if (text.empty()) text = "ERR (the server gives no reason)";
  const auto word = code_word(text);
  error::details details{.backend_code = std::string(word)};
  for (const auto& entry : error_classes) {
    if (entry.word != word) continue;
    details.transient = entry.transient;
    std::string message(text);
    if (!entry.advice.empty()) message.append("; ").append(entry.advice);
    return {entry.code, message, std::move(details)};
  }
  if (text.starts_with("ERR max number of clients reached")) {
    details.transient = true;
    return {errc::unavailable, std::string(text) + "; raise maxclients, or use fewer connections",
            std::move(details)};
  }
  errc code = errc::invalid_argument;
  // "invalid password" is from servers before Redis 6.
  if (starts_with_any(text, {"ERR AUTH", "ERR invalid password", "ERR Client sent AUTH"}))
    code = errc::permission;
  else if (starts_with_any(text, {"ERR unknown command", "ERR unknown subcommand",
                                  "ERR wrong number of arguments", "ERR syntax error",
                                  "ERR Error compiling script"}))
    code = errc::grammar;
  return {code, std::string(text), std::move(details)};
}

reply_action action_for(const reply& answer, std::string_view node) {
  using kind = reply_action::kind;
  if (!answer.is_error()) return {};
  // This compares the whole sentence, because a script may end with a NOSCRIPT error of its own.
  const std::string_view message = answer.problem().message();
  if (message.starts_with("NOSCRIPT No matching script")) return {.action = kind::send_script};
  if (was_not_run(message)) return {.action = kind::retry};
  const auto& word = answer.problem().backend_code();
  if (word != "MOVED" && word != "ASK") return {};
  // The message ends with the advice that server_error added.
  const auto redirect = message.substr(word.size() + 1);
  return parse_redirect(word == "MOVED" ? kind::moved : kind::ask,
                        redirect.substr(0, redirect.find(';')), node);
}

}  // namespace HOLDFAST_NAMESPACE::detail::redis
