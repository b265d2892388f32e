#pragma once

/// \file
/// A buffer between a writer and a hash or string.

#include <holdfast/version.hpp>

#include <cstddef>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::key {

/// Collects bytes on the stack and passes them to a target in large pieces: a hash takes a fifth
/// longer if it is fed byte by byte. Bytes that fit in the buffer stay there until `flush`, so that
/// they can be hashed in one call.
class output {
 public:
  using drain_function = void (*)(void* target, std::string_view piece);

  output(drain_function drain, void* target) noexcept : drain_(drain), target_(target) {}
  explicit output(std::string& target) noexcept
      : output([](void* text,
                  std::string_view piece) { static_cast<std::string*>(text)->append(piece); },
               &target) {}
  explicit output(std::vector<std::byte>& target) noexcept
      : output(
            [](void* bytes, std::string_view piece) {
              auto& vector = *static_cast<std::vector<std::byte>*>(bytes);
              const auto added = std::as_bytes(std::span(piece));
              vector.insert(vector.end(), added.begin(), added.end());
            },
            &target) {}
  output(const output&) = delete;
  output& operator=(const output&) = delete;

  void put(char c) {
    if (size_ == capacity) flush();
    buffer_[size_++] = c;
  }
  void put(std::string_view piece) {
    if (piece.empty()) return;  // data() may be null, which memcpy does not accept
    if (piece.size() > capacity - size_) return put_large(piece);
    std::memcpy(buffer_ + size_, piece.data(), piece.size());
    size_ += piece.size();
  }

  /// The bytes that are still in the buffer.
  [[nodiscard]] std::string_view buffered() const noexcept { return {buffer_, size_}; }
  /// Whether the target has received anything.
  [[nodiscard]] bool drained() const noexcept { return drained_; }
  void flush() {
    if (size_ == 0) return;
    drain_(target_, buffered());
    drained_ = true;
    size_ = 0;
  }

 private:
  void put_large(std::string_view piece) {
    flush();
    if (piece.size() >= capacity / 2) {
      drain_(target_, piece);
      drained_ = true;
    } else {
      std::memcpy(buffer_, piece.data(), piece.size());
      size_ = piece.size();
    }
  }

  static constexpr std::size_t capacity = 2048;
  drain_function drain_;
  void* target_;
  std::size_t size_ = 0;
  bool drained_ = false;
  char buffer_[capacity];  // NOLINT(*-avoid-c-arrays): not initialised on purpose
};

}  // namespace HOLDFAST_NAMESPACE::detail::key
