#include "base/secret.hpp"

#include <holdfast/error.hpp>

#include "base/aes_gcm.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <span>
#include <system_error>

namespace HOLDFAST_NAMESPACE::detail {

namespace {

class descriptor {
 public:
  explicit descriptor(int number) noexcept : number_(number) {}
  descriptor(const descriptor&) = delete;
  descriptor& operator=(const descriptor&) = delete;
  ~descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  [[nodiscard]] int get() const noexcept { return number_; }

 private:
  int number_;
};

[[noreturn]] void fail_to_read(const std::string& path, const char* purpose, errc code,
                               int error_number) {
  throw error(code,
              std::string("the ") + purpose +
                  " cannot be read: " + std::generic_category().message(error_number) +
                  "; check its path and who may read it",
              {.path = path});
}

bool is_public(const struct stat& file) noexcept {
  return S_ISREG(file.st_mode) && (file.st_mode & (S_IROTH | S_IWOTH)) != 0;
}

/// Reads at most `max_size` + 1 bytes. Allocates once, because a growing string leaves copies in
/// freed memory.
secret_text read_all(const descriptor& file, const std::string& path, const char* purpose,
                     errc code, std::size_t max_size) {
  std::string text(max_size + 1, '\0');
  std::size_t size = 0;
  while (size < text.size()) {
    const auto received = ::read(file.get(), text.data() + size, text.size() - size);
    if (received < 0 && errno == EINTR) continue;
    if (received < 0) fail_to_read(path, purpose, code, errno);
    if (received == 0) break;
    size += static_cast<std::size_t>(received);
  }
  text.resize(size);
  return secret_text(std::move(text));
}

}  // namespace

void wipe(std::string& text) noexcept {
  text.resize(text.capacity());  // never allocates
  wipe(std::as_writable_bytes(std::span(text)));
  text.clear();
}

bool is_public_file(const std::string& path) noexcept {
  struct stat file{};
  return ::stat(path.c_str(), &file) == 0 && is_public(file);
}

secret_text read_key_file(const std::string& path, std::size_t max_size) {
  const descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY));
  struct stat status{};
  if (file.get() < 0 || ::fstat(file.get(), &status) != 0)
    fail_to_read(path, "key file", errc::unavailable, errno);
  if (is_public(status)) {
    std::array<char, 16> mode{};
    (void)std::snprintf(mode.data(), mode.size(), "%04o",
                        static_cast<unsigned>(status.st_mode & 07777U));
    throw error(errc::permission,
                std::string("every user of this machine may read or change the key file (mode ") +
                    mode.data() + "); run: chmod 600 " + path,
                {.path = path});
  }
  auto text = read_all(file, path, "key file", errc::unavailable, max_size);
  if (text.view().size() > max_size)
    throw error(
        errc::too_large,
        "the key file has more than " + std::to_string(max_size) + " bytes; is it the right file?",
        {.path = path});
  return text;
}

std::string read_password_file(const std::string& path) {
  constexpr std::size_t max_size = std::size_t{64} << 10U;
  const descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY));
  if (file.get() < 0) fail_to_read(path, "password file", errc::permission, errno);
  const auto text = read_all(file, path, "password file", errc::permission, max_size);
  if (text.view().empty())
    throw error(errc::permission, "the password file is empty; write the password into it",
                {.path = path});
  auto line = text.view().substr(0, text.view().find('\n'));
  if (line.ends_with('\r')) line.remove_suffix(1);
  return std::string(line);
}

}  // namespace HOLDFAST_NAMESPACE::detail
