#pragma once

/// \file
/// Reads the JSON of requests. Strict: a member that no endpoint reads is an error, as it may be a
/// misspelled option.

#include <holdfast/version.hpp>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::serve {

/// A JSON object. The functions return nothing if the member is missing or null, and throw
/// errc::invalid_argument, with the path of the member, if it has another type.
///
///     auto body = json_object::parse(request.body);
///     const auto count = body.integer("count").value_or(1);
///     body.finish();
///
/// Thread-safety: none.
class json_object {
 public:
  /// Throws errc::malformed if the text is not JSON, is not one object, or has a member twice.
  [[nodiscard]] static json_object parse(std::string_view text);
  /// The objects of a JSON array. Throws as `parse`; the paths begin with the index: `[2].type`.
  [[nodiscard]] static std::vector<json_object> parse_array(std::string_view text);

  json_object(json_object&&) noexcept;
  json_object& operator=(json_object&&) noexcept;
  ~json_object();

  [[nodiscard]] bool has(std::string_view name) const;
  [[nodiscard]] std::optional<std::string> text(std::string_view name);
  /// Throws errc::invalid_argument if the member is missing.
  [[nodiscard]] std::string required_text(std::string_view name);
  /// A JSON integer, or a text with one: 64-bit numbers are texts.
  [[nodiscard]] std::optional<std::int64_t> integer(std::string_view name);
  [[nodiscard]] std::optional<bool> boolean(std::string_view name);
  /// `"1500ms"`, `"30s"`, `"15m"`, `"24h"`, `"7d"`; not negative.
  [[nodiscard]] std::optional<std::chrono::milliseconds> duration(std::string_view name);
  /// RFC 3339 with a zone, at most microseconds.
  [[nodiscard]] std::optional<std::chrono::sys_time<std::chrono::microseconds>> time(
      std::string_view name);
  [[nodiscard]] std::optional<std::vector<std::string>> texts(std::string_view name);
  [[nodiscard]] std::optional<json_object> object(std::string_view name);
  [[nodiscard]] std::optional<std::vector<json_object>> objects(std::string_view name);
  /// The member as JSON text: `{"euro":30}`, `"text"`, `[1,2]`.
  [[nodiscard]] std::optional<std::string> raw(std::string_view name);
  /// The caller reads the member from the text of the request: `finish` does not refuse it.
  void skip(std::string_view name);
  /// The elements of an array, each as JSON text.
  [[nodiscard]] std::optional<std::vector<std::string>> raw_elements(std::string_view name);
  /// The names of all members, in their order.
  [[nodiscard]] std::vector<std::string> names() const;

  /// Throws errc::invalid_argument if a member was not read. Names the nearest known member.
  void finish() const;

  /// Private to the implementation.
  struct state;
  explicit json_object(std::unique_ptr<state> content) noexcept;

 private:
  std::unique_ptr<state> state_;
};

}  // namespace HOLDFAST_NAMESPACE::detail::serve
