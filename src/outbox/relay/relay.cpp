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
