#include <holdfast/error.hpp>
#include <holdfast/outbox/relay.hpp>

#include "outbox/entry.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <memory>
#include <mutex>
#include <system_error>
#include <utility>

namespace HOLDFAST_NAMESPACE::relay {

namespace {

std::string iso_text(timestamp at) {
  const auto day = std::chrono::floor<std::chrono::days>(at);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss time(std::chrono::floor<std::chrono::milliseconds>(at - day));
  std::array<char, 64> room{};
  (void)std::snprintf(room.data(), room.size(), "%04d-%02u-%02uT%02ld:%02ld:%02ld.%03ldZ", static_cast<int>(date.year()),
                      static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()), static_cast<long>(time.hours().count()),
                      static_cast<long>(time.minutes().count()), static_cast<long>(time.seconds().count()),
                      static_cast<long>(time.subseconds().count()));
  return room.data();
}

/// The name as receivers compare it: in lower case, and with `-` for `_`, since CGI, WSGI and others take both for the same.
std::string compared_name(std::string_view header) {
  std::string name(header);
  std::ranges::transform(name, name.begin(), [](char c) {
    if (c == '_') return '-';
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return name;
}

bool is_credential(std::string_view name) {
  constexpr std::array<std::string_view, 8> credentials{"authorization", "cookie",      "cookie2",   "proxy-authorization",
                                                        "set-cookie",    "set-cookie2", "x-api-key", "x-auth-token"};
  return std::ranges::find(credentials, name) != credentials.end();
}

/// Headers that are not an event's to say. Ours: it would forge another event. The connection's: it would cut its request, or smuggle in
/// another. The proxies': it would choose the sender, method or path that the receiver believes in (CGI reads `Proxy` as HTTP_PROXY).
bool is_reserved(std::string_view name) {
  constexpr std::array<std::string_view, 3> ours{"content-encoding", "content-type", "idempotency-key"};
  constexpr std::array<std::string_view, 11> of_the_connection{"connection",     "content-length",    "expect", "host",
                                                               "http2-settings", "keep-alive",        "te",     "trailer",
                                                               "trailers",       "transfer-encoding", "upgrade"};
  constexpr std::array<std::string_view, 9> of_proxies{
      "forwarded",         "proxy",          "via",       "x-http-method", "x-http-method-override",
      "x-method-override", "x-original-url", "x-real-ip", "x-rewrite-url"};
  const auto has = [&](const auto& names) { return std::ranges::find(names, name) != names.end(); };
  return name.starts_with("ce-") || name.starts_with("x-forwarded-") || (name.starts_with("proxy-") && !is_credential(name)) || has(ours) ||
         has(of_the_connection) || has(of_proxies);
}

/// As the HTTP binding of CloudEvents wants the values of its headers.
std::string percent_encoded(std::string_view text) {
  constexpr std::string_view digits = "0123456789ABCDEF";
  std::string out;
  out.reserve(text.size());
  for (const char each : text) {
    const auto byte = static_cast<unsigned char>(each);
    if (byte > 0x20 && byte < 0x7F && byte != '"' && byte != '%') out += each;
    else out.append(1, '%').append(1, digits[byte >> 4U]).append(1, digits[byte & 0xFU]);
  }
  return out;
}

[[noreturn]] void fail(const std::string& what, const std::string& file, int reason) {
  throw error(errc::unavailable, what + " " + file + ": " + std::generic_category().message(reason), {.transient = true});
}

/// A file that lines are appended to.
class line_file {
 public:
  line_file(std::string name, json_lines_options how) : name_(std::move(name)), how_(how) {
    // Events are for the receiver of the file, not for every user of the machine. A file that exists keeps its mode.
    descriptor_ = name_ == "-" ? ::dup(STDOUT_FILENO) : ::open(name_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (descriptor_ < 0) fail("cannot open", name_, errno);
  }
  line_file(const line_file&) = delete;
  line_file& operator=(const line_file&) = delete;
  ~line_file() { ::close(descriptor_); }

  /// False: it is a pipe, and nobody reads it any more.
  [[nodiscard]] bool append(std::string line) {
    line += '\n';
    const std::scoped_lock lock(mutex_);
    std::string_view left = line;
    while (!left.empty()) {
      const ssize_t wrote = ::write(descriptor_, left.data(), left.size());
      if (wrote < 0 && errno == EINTR) continue;
      if (wrote < 0 && errno == EPIPE) return false;
      if (wrote < 0) fail("cannot write to", name_, errno);
      left.remove_prefix(static_cast<std::size_t>(wrote));
    }
    if (how_.sync && ::fdatasync(descriptor_) != 0 && errno != EINVAL) fail("cannot sync", name_, errno);
    return true;
  }

 private:
  std::string name_;
  json_lines_options how_;
  std::mutex mutex_{};
  int descriptor_ = -1;
};

}  // namespace

std::string to_json(const delivery& what) {
  const auto& claimed = what.claimed();
  const auto created = std::chrono::floor<std::chrono::milliseconds>(claimed.created_at).time_since_epoch().count();
  // The payload itself: where it lay, it is dropped when the event is acknowledged.
  auto whole = claimed.event;
  whole.payload_ref.clear();
  std::string text = outboxes::entry_text(whole.id, outboxes::entry_body(whole), created, claimed.sequence);
  text.pop_back();
  text.append(",\"attempts\":").append(std::to_string(claimed.attempts));
  text.append(",\"deliveries\":").append(std::to_string(claimed.deliveries));
  text.append(",\"fence\":").append(std::to_string(what.fence())).append("}");
  return text;
}

event_handler json_lines(const std::string& file, json_lines_options how) {
  return [to = std::make_shared<line_file>(file, how)](const delivery& what) {
    if (to->append(to_json(what))) return outcome::done();
    // Not the event's fault: it must not be parked for it.
    return outcome::throttled(std::chrono::seconds(1), "the reader of the pipe went away");
  };
}

std::map<std::string, std::string> cloud_event_headers(const delivery& what, std::string_view source, cloud_event_options options) {
  const auto& about = what.event();
  std::map<std::string, std::string> made;
  for (const auto& [name, value] : about.headers) {
    const auto compared = compared_name(name);
    if (!is_reserved(compared) && (options.credentials || !is_credential(compared))) made.emplace(name, value);
  }
  made["ce-specversion"] = "1.0";
  made["ce-id"] = about.id;
  made["ce-type"] = percent_encoded(about.type);
  made["ce-source"] = percent_encoded(source);
  made["ce-time"] = iso_text(what.claimed().created_at);
  made["ce-sequence"] = std::to_string(what.claimed().sequence);
  made["ce-fence"] = std::to_string(what.fence());
  if (!about.key.empty()) made["ce-partitionkey"] = percent_encoded(about.key);
  if (!about.schema.empty()) made["ce-dataschema"] = percent_encoded(about.schema);
  if (!about.aggregate_id.empty()) made["ce-subject"] = percent_encoded(about.aggregate_id);
  made["Idempotency-Key"] = about.id;
  // What is no header becomes none: a line end in a value would begin another one.
  std::erase_if(made, [](const auto& one) {
    const auto bad = [](unsigned char c) { return c < 0x20 || c == 0x7F; };
    return std::ranges::any_of(one.first, [&](unsigned char c) { return bad(c) || c == ':' || c == ' ' || c >= 0x80; }) ||
           std::ranges::any_of(one.second, bad);
  });
  return made;
}

outcome outcome_of_status(int status, std::string_view retry_after) {
  if (status >= 200 && status < 300) return outcome::done();
  const std::string why = "HTTP status " + std::to_string(status);
  if (status == 429 || (status == 503 && !retry_after.empty())) {
    std::int64_t seconds = 60;  // a date is not worth reading: the next try may be throttled again
    std::from_chars(retry_after.data(), retry_after.data() + retry_after.size(), seconds);
    return outcome::throttled(std::chrono::seconds(std::clamp<std::int64_t>(seconds, 1, 3600)), why);
  }
  constexpr std::array never{400, 405, 410, 411, 413, 414, 415, 422, 431};
  if (std::ranges::find(never, status) != never.end()) return outcome::permanent(why);
  return outcome::retry(why);
}

}  // namespace HOLDFAST_NAMESPACE::relay
