#pragma once

/// \file
/// Text that must not stay in memory, and files that hold such text.

#include <holdfast/version.hpp>

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

namespace HOLDFAST_NAMESPACE {

/// Overwrites the text, its unused capacity included, and empties it.
HOLDFAST_API void wipe(std::string& text) noexcept;

/// A password or key text, wiped when it is destroyed or replaced.
class secret_text {
 public:
  secret_text() = default;
  explicit secret_text(std::string text) noexcept : text_(std::move(text)) {}
  secret_text(const secret_text&) = delete;
  secret_text& operator=(const secret_text&) = delete;
  secret_text(secret_text&& other) noexcept { text_.swap(other.text_); }
  secret_text& operator=(secret_text&& other) noexcept {
    text_.swap(other.text_);
    wipe(other.text_);
    return *this;
  }
  ~secret_text() { wipe(text_); }

  [[nodiscard]] std::string_view view() const noexcept { return text_; }
  [[nodiscard]] const std::string& text() const noexcept { return text_; }

 private:
  std::string text_{};
};

/// Whether every user of the machine may read or change a file. Access of the group is fine: 0640 with the group of a service is how
/// administrators give a secret to one service. Pipes and files that are not there are not public.
[[nodiscard]] HOLDFAST_API bool is_public_file(const std::string& path) noexcept;

/// Reads a key file, without a stream buffer that would keep a copy. Throws errc::unavailable if it cannot be read, errc::too_large beyond
/// `max_size`, and errc::permission if it is public: such a key protects nothing, and ssh and libpq refuse it, too.
[[nodiscard]] HOLDFAST_API secret_text read_key_file(const std::string& path, std::size_t max_size);

/// Reads the first line of a password file, without its line end. Throws errc::permission if the file is empty or cannot be read. Accepts a
/// public file, since containers mount secrets with mode 0444; `holdfast::open` warns about it.
[[nodiscard]] HOLDFAST_API std::string read_password_file(const std::string& path);

}  // namespace HOLDFAST_NAMESPACE
