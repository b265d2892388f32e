#pragma once

/// \file
/// Passwords and keys in memory and in files.

#include <holdfast/version.hpp>

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

namespace HOLDFAST_NAMESPACE::detail {

/// Overwrites the text including its unused capacity, and clears it.
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

/// Returns true if every user of the machine may read or change the file. Access of the group is
/// allowed, because administrators use mode 0640 to give a secret to one service. Pipes and missing
/// files are not public.
[[nodiscard]] HOLDFAST_API bool is_public_file(const std::string& path) noexcept;

/// Reads a key file, without a stream buffer that would keep a copy. Throws errc::unavailable if it
/// cannot be read, errc::too_large if it is larger than `max_size`, and errc::permission if it is
/// public, as ssh and libpq do.
[[nodiscard]] HOLDFAST_API secret_text read_key_file(const std::string& path, std::size_t max_size);

/// Reads the first line of a password file, without its line end. Throws errc::permission if the
/// file is empty or cannot be read. Accepts a public file, since containers mount secrets with mode
/// 0444; `holdfast::open` warns about it.
[[nodiscard]] HOLDFAST_API std::string read_password_file(const std::string& path);

}  // namespace HOLDFAST_NAMESPACE::detail
