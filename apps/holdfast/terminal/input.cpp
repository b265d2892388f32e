#include "terminal/input.hpp"

#include <holdfast/error.hpp>

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <span>
#include <system_error>
#include <utility>

namespace holdfast::cli {

namespace {

constexpr std::size_t read_size = std::size_t{1} << 20;

[[noreturn]] void fail_to_read(const std::string& name, int reason) {
  const std::string message =
      "cannot read '" + name + "': " + std::generic_category().message(reason);
  if (reason == ENOENT || reason == ENOTDIR)
    throw error(errc::not_found, message + "; check the file name");
  if (reason == EISDIR)
    throw error(errc::invalid_argument, message + "; give a file, or - for standard input");
  throw error(errc::unavailable, message + "; check that it can be read",
              {.backend_code = std::to_string(reason)});
}

}  // namespace

input_file::input_file(const std::string& name)
    : name_(name == "-" ? "standard input" : name), descriptor_(STDIN_FILENO) {
  if (name == "-") return;
  descriptor_ = ::open(name.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor_ < 0) fail_to_read(name_, errno);
}

input_file::~input_file() {
  if (descriptor_ != STDIN_FILENO) ::close(descriptor_);
}

bool input_file::is_terminal() const noexcept { return ::isatty(descriptor_) == 1; }

bool input_file::ready() const noexcept {
  pollfd request{descriptor_, POLLIN, 0};
  return ::poll(&request, 1, 0) != 0;
}

std::size_t input_file::read(char* buffer, std::size_t size) const {
  for (;;) {
    const ssize_t received = ::read(descriptor_, buffer, size);
    if (received >= 0) return static_cast<std::size_t>(received);
    const int reason = errno;
    if (reason == EINTR) continue;
    if (reason == EAGAIN || reason == EWOULDBLOCK) {
      pollfd request{descriptor_, POLLIN, 0};
      ::poll(&request, 1, -1);
      continue;
    }
    fail_to_read(name_, reason);
  }
}

std::uint64_t count_lines(const input_file& file) {
  struct stat status{};
  if (::fstat(file.descriptor(), &status) != 0 || !S_ISREG(status.st_mode)) return 0;
  off_t offset = ::lseek(file.descriptor(), 0, SEEK_CUR);
  if (offset < 0) return 0;
  std::vector<char> buffer(read_size);
  std::uint64_t lines = 0;
  char last = '\n';
  for (;;) {
    const ssize_t received = ::pread(file.descriptor(), buffer.data(), buffer.size(), offset);
    if (received < 0 && errno == EINTR) continue;
    if (received <= 0) return lines + (last == '\n' ? 0 : 1);
    const std::span part(buffer.data(), static_cast<std::size_t>(received));
    lines += static_cast<std::uint64_t>(std::ranges::count(part, '\n'));
    last = part.back();
    offset += received;
  }
}

std::string read_small_file(const std::string& name, std::size_t limit) {
  const input_file file(name);
  std::string text(limit + 1, '\0');
  std::size_t size = 0;
  while (size < text.size()) {
    const std::size_t received = file.read(text.data() + size, text.size() - size);
    if (received == 0) break;
    size += received;
  }
  if (size > limit) {
    throw error(errc::too_large, "'" + name + "' has more than " + std::to_string(limit) +
                                     " bytes; check that it is the right file");
  }
  text.resize(size);
  return text;
}

line_reader::line_reader(const input_file& file, std::size_t longest,
                         std::function<void()> before_wait)
    : file_(file), longest_(longest), before_wait_(std::move(before_wait)), buffer_(read_size) {}

void line_reader::fill() {
  if (begin_ != 0 && (begin_ == end_ || end_ == buffer_.size())) {
    std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
    scanned_ -= begin_;
    end_ -= begin_;
    begin_ = 0;
  }
  if (end_ == buffer_.size()) buffer_.resize(buffer_.size() * 2);
  if (!file_.ready()) before_wait_();
  const std::size_t received = file_.read(buffer_.data() + end_, buffer_.size() - end_);
  end_ += received;
  if (received == 0) at_end_ = true;
}

line_reader::result line_reader::next(std::string_view& line) {
  for (;;) {
    const char* unscanned = buffer_.data() + scanned_;
    const void* newline =
        scanned_ == end_ ? nullptr : std::memchr(unscanned, '\n', end_ - scanned_);
    const std::size_t stop =
        newline == nullptr
            ? end_
            : static_cast<std::size_t>(static_cast<const char*>(newline) - buffer_.data());

    if (stop - begin_ > longest_) {
      // Discard the bytes of an overlong line as they arrive, so that memory stays bounded.
      skipping_ = true;
      begin_ = stop;
    }
    if (newline != nullptr || (at_end_ && (begin_ != end_ || skipping_))) {
      line = std::string_view(buffer_.data() + begin_, stop - begin_);
      begin_ = scanned_ = newline == nullptr ? end_ : stop + 1;
      if (std::exchange(skipping_, false)) return result::overlong;
      if (std::exchange(first_line_, false) && line.starts_with("\xef\xbb\xbf"))
        line.remove_prefix(3);
      if (line.ends_with('\r')) line.remove_suffix(1);
      return result::line;
    }
    if (at_end_) return result::end;
    scanned_ = end_;
    if (skipping_) begin_ = end_;
    fill();
  }
}

}  // namespace holdfast::cli
