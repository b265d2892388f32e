#pragma once

#include <holdfast/version.hpp>

#include <cstddef>
#include <cstring>
#include <string>
#include <string_view>

namespace HOLDFAST_NAMESPACE::key {

/// Bytes on their way to a hash or a string. They are gathered on the stack and passed on in large pieces, because a hash that is
/// fed byte by byte costs a fifth more; what fits in the buffer never leaves it before the end, so that it can be hashed in one call.
class output {
 public:
  using drain_function = void (*)(void* target, std::string_view piece);

  output(drain_function drain, void* target) noexcept : drain_(drain), target_(target) {}
  explicit output(std::string& target) noexcept
      : drain_([](void* to, std::string_view piece) { static_cast<std::string*>(to)->append(piece); }), target_(&target) {}
  output(const output&) = delete;
  output& operator=(const output&) = delete;

  void put(char c) {
    if (size_ == capacity) flush();
    buffer_[size_++] = c;
  }
  void put(std::string_view piece) {
    if (piece.empty()) return;  // it may have no data, which memcpy must not be given
    if (piece.size() > capacity - size_) return put_large(piece);
    std::memcpy(buffer_ + size_, piece.data(), piece.size());
    size_ += piece.size();
  }
  /// Room for at most 16 bytes, of which `used` are then taken: for what is written in place.
  [[nodiscard]] char* room() {
    if (capacity - size_ < 16) flush();
    return buffer_ + size_;
  }
  void used(std::size_t count) noexcept { size_ += count; }

  /// What was not passed on yet.
  [[nodiscard]] std::string_view gathered() const noexcept { return {buffer_, size_}; }
  /// Whether anything was passed on.
  [[nodiscard]] bool drained() const noexcept { return drained_; }
  void flush() {
    if (size_ == 0) return;
    drain_(target_, gathered());
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
  char buffer_[capacity];  // NOLINT(*-avoid-c-arrays): deliberately not initialised
};

}  // namespace HOLDFAST_NAMESPACE::key
