#pragma once

/// \file
/// Fields of a message: `fields` refers to a message that was read, `field_block` holds lines that
/// are to be sent. Neither allocates for a single field.

#include <holdfast/version.hpp>

#include "http/defect.hpp"
#include "http/syntax.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::http {

struct field {
  std::string_view name{};
  std::string_view value{};
};

/// The fields of a head or of the trailers, in their order. Refers to the text that was read, by
/// offsets, so that a buffer may move while a message is incomplete.
/// Thread-safety: none.
class fields {
 public:
  void clear() noexcept {
    positions_.clear();
    text_ = {};
  }
  /// The text must begin where the offsets of `add` begin.
  void set_text(std::string_view text) noexcept { text_ = text; }
  void add(std::size_t name, std::size_t name_size, std::size_t value, std::size_t value_size) {
    positions_.push_back({static_cast<std::uint32_t>(name), static_cast<std::uint32_t>(name_size),
                          static_cast<std::uint32_t>(value),
                          static_cast<std::uint32_t>(value_size)});
  }

  [[nodiscard]] std::size_t size() const noexcept { return positions_.size(); }
  [[nodiscard]] bool empty() const noexcept { return positions_.empty(); }
  [[nodiscard]] field operator[](std::size_t index) const noexcept {
    const auto& entry = positions_[index];
    return {text_.substr(entry.name, entry.name_size), text_.substr(entry.value, entry.value_size)};
  }

  /// Returns the value of the first field of this name. Names are compared without their case.
  [[nodiscard]] std::optional<std::string_view> find(std::string_view name) const noexcept {
    for (const auto& entry : positions_) {
      if (entry.name_size == name.size() &&
          equals_ignoring_case(text_.substr(entry.name, entry.name_size), name))
        return text_.substr(entry.value, entry.value_size);
    }
    return std::nullopt;
  }
  [[nodiscard]] std::size_t count(std::string_view name) const noexcept {
    std::size_t number = 0;
    for_each(name, [&](std::string_view) { ++number; });
    return number;
  }
  /// Calls `visit(value)` for each field of this name.
  template <class Visitor>
  void for_each(std::string_view name, Visitor visit) const {
    for (const auto& entry : positions_) {
      if (equals_ignoring_case(text_.substr(entry.name, entry.name_size), name))
        visit(text_.substr(entry.value, entry.value_size));
    }
  }
  /// Returns the values of all fields of this name, joined with `, `.
  [[nodiscard]] std::optional<std::string> join(std::string_view name) const;

 private:
  struct position {
    std::uint32_t name;
    std::uint32_t name_size;
    std::uint32_t value;
    std::uint32_t value_size;
  };
  std::vector<position> positions_{};
  std::string_view text_{};
};

/// Lines `Name: value` to be sent, as one text.
/// Thread-safety: none.
class field_block {
 public:
  /// Adds a line. Throws errc::invalid_argument, and adds nothing, if the name is not a token or
  /// the value has a control character: a line break would inject another field.
  void add(std::string_view name, std::string_view value);
  void add(std::string_view name, std::uint64_t number);
  /// Returns the first value of this name.
  [[nodiscard]] std::optional<std::string_view> find(std::string_view name) const noexcept;
  [[nodiscard]] bool has(std::string_view name) const noexcept { return find(name).has_value(); }
  [[nodiscard]] const std::string& text() const noexcept { return text_; }
  [[nodiscard]] bool empty() const noexcept { return text_.empty(); }

 private:
  std::string text_{};
};

/// The part of a reader that heads and trailers share: reads one line, without its CR LF, that
/// begins at `offset` of the text. Adds the field to `target`, or returns why it is not one.
[[nodiscard]] defect read_field_line(std::string_view line, std::size_t offset, fields& target);

/// Returns true for `Content_Length`, `transfer_encoding`, `Host_` and similar: a name with
/// underscores that a server which replaces them with hyphens reads as framing.
[[nodiscard]] bool is_look_alike(std::string_view name) noexcept;

}  // namespace HOLDFAST_NAMESPACE::detail::http
