#include <holdfast/error.hpp>
#include <holdfast/outbox/relay.hpp>

#include "outbox/entry.hpp"

#include <fcntl.h>
#include <sys/stat.h>
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

/// `2024-01-31T12:00:00.000Z`.
std::string iso_text(timestamp time) {
  const auto day = std::chrono::floor<std::chrono::days>(time);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss clock(std::chrono::floor<std::chrono::milliseconds>(time - day));
  std::array<char, 64> buffer{};
  (void)std::snprintf(buffer.data(), buffer.size(), "%04d-%02u-%02uT%02ld:%02ld:%02ld.%03ldZ",
                      static_cast<int>(date.year()), static_cast<unsigned>(date.month()),
                      static_cast<unsigned>(date.day()), static_cast<long>(clock.hours().count()),
                      static_cast<long>(clock.minutes().count()),
                      static_cast<long>(clock.seconds().count()),
                      static_cast<long>(clock.subseconds().count()));
  return buffer.data();
}

/// Returns the name as receivers compare it: in lower case and with `-` for `_`, because CGI, WSGI
/// and others do not distinguish them.
std::string normalized_name(std::string_view header) {
  std::string name(header);
  std::ranges::transform(name, name.begin(), [](char c) {
    if (c == '_') return '-';
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return name;
}

/// `name` is normalized, as in is_reserved.
bool is_credential(std::string_view name) {
  constexpr std::array<std::string_view, 8> credentials{
      "authorization", "cookie",      "cookie2",   "proxy-authorization",
      "set-cookie",    "set-cookie2", "x-api-key", "x-auth-token"};
  return std::ranges::find(credentials, name) != credentials.end();
}

/// Headers that an event must not set.
bool is_reserved(std::string_view name) {
  // They would forge another event.
  constexpr std::array<std::string_view, 3> set_by_relay{"content-encoding", "content-type",
                                                         "idempotency-key"};
  // They would cut the request or inject another one.
  constexpr std::array<std::string_view, 11> set_by_connection{
      "connection",     "content-length",    "expect", "host",
      "http2-settings", "keep-alive",        "te",     "trailer",
      "trailers",       "transfer-encoding", "upgrade"};
  // They would choose the sender, method or path that the receiver relies on. CGI passes `Proxy` on
  // as HTTP_PROXY.
  constexpr std::array<std::string_view, 9> set_by_proxies{
      "forwarded",         "proxy",          "via",       "x-http-method", "x-http-method-override",
      "x-method-override", "x-original-url", "x-real-ip", "x-rewrite-url"};
  const auto is_in = [&](const auto& names) {
    return std::ranges::find(names, name) != names.end();
  };
  return name.starts_with("ce-") || name.starts_with("x-forwarded-") ||
         (name.starts_with("proxy-") && !is_credential(name)) || is_in(set_by_relay) ||
         is_in(set_by_connection) || is_in(set_by_proxies);
}

/// Control characters are not allowed: a line break would inject another header.
bool is_valid_header(std::string_view name, std::string_view value) {
  const auto is_control = [](unsigned char c) { return c < 0x20 || c == 0x7F; };
  const auto not_in_name = [&](unsigned char c) {
    return is_control(c) || c == ':' || c == ' ' || c >= 0x80;
  };
  return std::ranges::none_of(name, not_in_name) && std::ranges::none_of(value, is_control);
}

/// The encoding of header values in the HTTP binding of CloudEvents.
std::string percent_encoded(std::string_view text) {
  constexpr std::string_view digits = "0123456789ABCDEF";
  std::string result;
  result.reserve(text.size());
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte > 0x20 && byte < 0x7F && byte != '"' && byte != '%') result += c;
    else result.append(1, '%').append(1, digits[byte >> 4U]).append(1, digits[byte & 0xFU]);
  }
  return result;
}

[[noreturn]] void fail(const std::string& action, const std::string& file, int error_number) {
  throw error(errc::unavailable,
              action + " " + file + ": " + std::generic_category().message(error_number),
              {.transient = true});
}

/// A file or pipe that lines are appended to.
///
/// A write can end in the middle of a line: the disk is full, or the machine stops. The next line
/// must not be appended to the rest of it. Therefore a half line is cut off again, and if that is
/// not possible (a pipe, or another process has appended meanwhile), the next line begins with a
/// line break.
class line_file {
 public:
  line_file(std::string name, json_lines_options options)
      : name_(std::move(name)), options_(options) {
    // Events are for the receiver of the file, not for every user of the machine. An existing file
    // keeps its mode.
    descriptor_ = name_ == "-"
                      ? ::dup(STDOUT_FILENO)
                      : ::open(name_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (descriptor_ < 0) fail("cannot open", name_, errno);
    // Of a pipe this process must not become a reader.
    if (name_ != "-" && is_regular(descriptor_))
      reader_ = ::open(name_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  }
  line_file(const line_file&) = delete;
  line_file& operator=(const line_file&) = delete;
  ~line_file() {
    ::close(descriptor_);
    if (reader_ >= 0) ::close(reader_);
  }

  /// Returns false if it is a pipe whose reader is gone.
  [[nodiscard]] bool append(std::string line) {
    line += '\n';
    const std::scoped_lock lock(mutex_);
    if (ends_in_half_line()) line.insert(line.begin(), '\n');
    std::string_view remaining = line;
    while (!remaining.empty()) {
      const ssize_t written = ::write(descriptor_, remaining.data(), remaining.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) {
        const int reason = errno;
        if (remaining.size() < line.size()) remove_half_line(line.size() - remaining.size());
        if (reason == EPIPE) return false;
        fail("cannot write to", name_, reason);
      }
      remaining.remove_prefix(static_cast<std::size_t>(written));
    }
    half_line_ = false;
    if (options_.sync && ::fdatasync(descriptor_) != 0 && errno != EINVAL)
      fail("cannot sync", name_, errno);
    return true;
  }

 private:
  [[nodiscard]] static bool is_regular(int descriptor) {
    struct stat file{};
    return ::fstat(descriptor, &file) == 0 && S_ISREG(file.st_mode);
  }

  /// Also recognises the half line of another process, or of an earlier run.
  [[nodiscard]] bool ends_in_half_line() const {
    const off_t size = reader_ >= 0 ? ::lseek(reader_, 0, SEEK_END) : -1;
    if (size == 0) return false;
    char last = '\n';
    if (size < 0 || ::pread(reader_, &last, 1, size - 1) != 1) return half_line_;
    return last != '\n';
  }

  void remove_half_line(std::size_t written) {
    half_line_ = true;
    struct stat file{};
    if (::fstat(descriptor_, &file) != 0 || !S_ISREG(file.st_mode)) return;
    // The offset is the end of what this process has written. If the file is longer, another
    // process has appended to it.
    const off_t end = ::lseek(descriptor_, 0, SEEK_CUR);
    if (end != file.st_size || end < static_cast<off_t>(written)) return;
    const off_t start = end - static_cast<off_t>(written);
    if (::ftruncate(descriptor_, start) != 0) return;
    (void)::lseek(descriptor_, start, SEEK_SET);
    half_line_ = false;
  }

  std::string name_;
  json_lines_options options_;
  std::mutex mutex_{};
  int descriptor_ = -1;
  /// The same file, to read its last byte. -1: it cannot be read.
  int reader_ = -1;
  /// The last write ended in the middle of a line that could not be removed.
  bool half_line_ = false;
};

}  // namespace

std::string to_json(const delivery& delivery) {
  const auto& claimed = delivery.claimed();
  const auto created_ms =
      std::chrono::floor<std::chrono::milliseconds>(claimed.created_at).time_since_epoch().count();
  // Write the payload itself: its reference is dropped when the event is acknowledged.
  auto event = claimed.event;
  event.payload_ref.clear();
  std::string text = detail::outbox::entry_text(event.id, detail::outbox::entry_body(event),
                                                created_ms, claimed.sequence);
  text.pop_back();
  text.append(",\"attempts\":").append(std::to_string(claimed.attempts));
  text.append(",\"deliveries\":").append(std::to_string(claimed.deliveries));
  text.append(",\"fence\":").append(std::to_string(delivery.fence())).append("}");
  return text;
}

event_handler json_lines(const std::string& file, json_lines_options options) {
  return [target = std::make_shared<line_file>(file, options)](const delivery& delivery) {
    if (target->append(to_json(delivery))) return outcome::done();
    // Not the fault of the event: it must not be parked because of it.
    return outcome::throttled(std::chrono::seconds(1), "the reader of the pipe is gone");
  };
}

std::map<std::string, std::string> cloud_event_headers(const delivery& delivery,
                                                       std::string_view source,
                                                       cloud_event_options options) {
  const auto& event = delivery.event();
  std::map<std::string, std::string> headers;
  for (const auto& [name, value] : event.headers) {
    const auto normalized = normalized_name(name);
    if (!is_reserved(normalized) && (options.credentials || !is_credential(normalized)))
      headers.emplace(name, value);
  }
  headers["ce-specversion"] = "1.0";
  headers["ce-id"] = event.id;
  headers["ce-type"] = percent_encoded(event.type);
  headers["ce-source"] = percent_encoded(source);
  headers["ce-time"] = iso_text(delivery.claimed().created_at);
  headers["ce-sequence"] = std::to_string(delivery.claimed().sequence);
  headers["ce-fence"] = std::to_string(delivery.fence());
  if (!event.key.empty()) headers["ce-partitionkey"] = percent_encoded(event.key);
  if (!event.schema.empty()) headers["ce-dataschema"] = percent_encoded(event.schema);
  if (!event.aggregate_id.empty()) headers["ce-subject"] = percent_encoded(event.aggregate_id);
  headers["Idempotency-Key"] = event.id;
  std::erase_if(headers,
                [](const auto& header) { return !is_valid_header(header.first, header.second); });
  return headers;
}

outcome outcome_of_status(int status, std::string_view retry_after) {
  if (status >= 200 && status < 300) return outcome::done();
  const std::string reason = "HTTP status " + std::to_string(status);
  if (status == 429 || (status == 503 && !retry_after.empty())) {
    // Retry-After may also be a date. Then a minute is good enough: the next attempt may be
    // throttled again.
    std::int64_t seconds = 60;
    std::from_chars(retry_after.data(), retry_after.data() + retry_after.size(), seconds);
    return outcome::throttled(std::chrono::seconds(std::clamp<std::int64_t>(seconds, 1, 3600)),
                              reason);
  }
  constexpr std::array permanent{400, 405, 410, 411, 413, 414, 415, 422, 431};
  if (std::ranges::find(permanent, status) != permanent.end()) return outcome::permanent(reason);
  return outcome::retry(reason);
}

}  // namespace HOLDFAST_NAMESPACE::relay
