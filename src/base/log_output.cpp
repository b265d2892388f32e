#include <holdfast/clock.hpp>
#include <holdfast/error.hpp>
#include <holdfast/log_output.hpp>

#include "base/line_text.hpp"
#include "base/log_text.hpp"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <ctime>
#include <memory>
#include <string>
#include <system_error>
#include <utility>

namespace HOLDFAST_NAMESPACE {

namespace {

/// Longer messages do not fit into a datagram.
constexpr std::size_t longest_message = std::size_t{32} << 10;

/// The severity of RFC 5424.
int severity(log_level level) noexcept {
  switch (level) {
    case log_level::debug:
      return 7;
    case log_level::info:
      return 6;
    case log_level::warning:
      return 4;
    case log_level::error:
      return 3;
  }
  return 5;
}

void write_line(const std::string& line) {
  std::size_t written = 0;
  while (written < line.size()) {
    const auto count = ::write(STDERR_FILENO, line.data() + written, line.size() - written);
    if (count > 0) written += static_cast<std::size_t>(count);
    else if (errno != EINTR)
      throw error(errc::unavailable, "standard error cannot be written: " +
                                         std::error_code(errno, std::generic_category()).message());
  }
}

/// Sends datagrams to a service of this machine. It is not connected, so that it survives a restart
/// of the service.
/// Thread-safety: every function may be called from any thread.
class log_socket {
 public:
  log_socket(const std::string& path, const char* service)
      : descriptor_(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {
    address_.sun_family = AF_UNIX;
    const bool usable =
        path.size() < sizeof(address_.sun_path) && ::access(path.c_str(), W_OK) == 0;
    if (descriptor_ < 0 || !usable) {
      if (descriptor_ >= 0) ::close(descriptor_);
      throw error(errc::unavailable, std::string(service) + " cannot be reached at " + path +
                                         "; use log_to_stderr, or set socket");
    }
    std::memcpy(address_.sun_path, path.c_str(), path.size() + 1);
  }
  log_socket(const log_socket&) = delete;
  log_socket& operator=(const log_socket&) = delete;
  ~log_socket() { ::close(descriptor_); }

  void send(const std::string& datagram) const {
    // sockaddr_un is one of the types that a sockaddr stands for.
    const auto* address = reinterpret_cast<const sockaddr*>(&address_);
    if (::sendto(descriptor_, datagram.data(), datagram.size(), MSG_NOSIGNAL, address,
                 sizeof(address_)) < 0)
      throw error(errc::unavailable, "the log cannot be written: " +
                                         std::error_code(errno, std::generic_category()).message());
  }

 private:
  int descriptor_;
  sockaddr_un address_{};
};

std::string program_name(const std::string& identifier) {
  if (!identifier.empty()) return detail::printable(identifier);
  return detail::printable(program_invocation_short_name);
}

/// `Jan 31 12:00:00`, as RFC 3164 has it: local time, without a year, names in English.
std::string syslog_time() {
  constexpr std::array<const char*, 12> months{"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                               "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  std::tm local{};
  if (::localtime_r(&now, &local) == nullptr) return "Jan  1 00:00:00";
  std::string text = months.at(static_cast<std::size_t>(std::clamp(local.tm_mon, 0, 11)));
  const auto append = [&text](const char* separator, char padding, int number) {
    text += separator;
    if (number < 10) text += padding;
    text += std::to_string(number);
  };
  append(" ", ' ', local.tm_mday);
  append(" ", '0', local.tm_hour);
  append(":", '0', local.tm_min);
  append(":", '0', local.tm_sec);
  return text;
}

/// A field of the journal: capital letters, digits and underscores.
std::string journal_field(std::string_view name) {
  std::string field = "HOLDFAST_";
  for (const char c : name.substr(0, 48)) {
    if (c >= 'a' && c <= 'z') field += static_cast<char>(c - 'a' + 'A');
    else if ((c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9')) field += c;
    else field += '_';
  }
  return field;
}

}  // namespace

std::string_view to_string(log_format format) noexcept {
  switch (format) {
    case log_format::text:
      return "text";
    case log_format::json:
      return "json";
  }
  return "unknown";
}

log_sink log_to_stderr(log_output_options options) {
  return [options](const log_record& record) {
    if (record.level < options.least) return;
    const timestamp now = system_clock()->now();
    if (options.format == log_format::json) return write_line(detail::log_json(record, now) + "\n");
    write_line(detail::iso_time(now) + " " + std::string(to_string(record.level)) + ": " +
               detail::log_message(record) + "\n");
  };
}

log_sink log_to_syslog(log_service_options options) {
  const auto socket = std::make_shared<const log_socket>(
      options.socket.empty() ? "/dev/log" : std::move(options.socket), "syslog");
  const std::string tag =
      program_name(options.identifier) + "[" + std::to_string(::getpid()) + "]: ";
  return [socket, tag, least = options.least](const log_record& record) {
    if (record.level < least) return;
    constexpr int user_facility = 8;
    socket->send("<" + std::to_string(user_facility + severity(record.level)) + ">" +
                 syslog_time() + " " + tag +
                 detail::log_message(record).substr(0, longest_message));
  };
}

log_sink log_to_journal(log_service_options options) {
  const auto socket = std::make_shared<const log_socket>(
      options.socket.empty() ? "/run/systemd/journal/socket" : std::move(options.socket),
      "the journal of systemd");
  return [socket, name = program_name(options.identifier),
          least = options.least](const log_record& record) {
    if (record.level < least) return;
    std::string entry =
        "PRIORITY=" + std::to_string(severity(record.level)) + "\nSYSLOG_IDENTIFIER=" + name +
        "\nMESSAGE=" + detail::log_message(record).substr(0, longest_message) + "\n";
    for (const auto& field : record.fields) {
      const auto value = detail::printable(field.value);
      if (entry.size() + value.size() > 2 * longest_message) break;
      entry += journal_field(field.name) + "=" + value + "\n";
    }
    socket->send(entry);
  };
}

}  // namespace HOLDFAST_NAMESPACE
