#pragma once

/// \file
/// Reads the members of a JSON object, with messages for people.

#include <holdfast/error.hpp>

#include <simdjson.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace holdfast::cli {

/// Every function throws errc::invalid_argument if the member has another type. Refers to the
/// document of the parser.
class json_fields {
 public:
  explicit json_fields(simdjson::dom::object object) : object_(object) {}

  /// Parses a line. Throws errc::malformed if it is not a JSON object.
  [[nodiscard]] static json_fields of_line(simdjson::dom::parser& parser, std::string_view line) {
    simdjson::dom::object object;
    if (parser.parse(line.data(), line.size()).get(object) != simdjson::SUCCESS)
      throw error(errc::malformed, "not a JSON object");
    return json_fields(object);
  }

  [[nodiscard]] bool has(std::string_view name) const {
    return object_[name].error() == simdjson::SUCCESS;
  }
  [[nodiscard]] std::string text(std::string_view name) const {
    std::string_view text;
    if (object_[name].get(text) != simdjson::SUCCESS)
      throw error(errc::invalid_argument, "expected a text \"" + std::string(name) + "\"");
    return std::string(text);
  }
  /// Empty if there is no such member.
  [[nodiscard]] std::string optional_text(std::string_view name) const {
    return has(name) ? text(name) : std::string();
  }
  [[nodiscard]] std::int64_t integer(std::string_view name) const {
    std::int64_t number = 0;
    if (object_[name].get(number) != simdjson::SUCCESS)
      throw error(errc::invalid_argument, "expected an integer \"" + std::string(name) + "\"");
    return number;
  }
  [[nodiscard]] std::int64_t integer_or(std::string_view name, std::int64_t fallback) const {
    return has(name) ? integer(name) : fallback;
  }
  [[nodiscard]] json_fields object(std::string_view name) const {
    simdjson::dom::object object;
    if (object_[name].get(object) != simdjson::SUCCESS)
      throw error(errc::invalid_argument, "expected an object \"" + std::string(name) + "\"");
    return json_fields(object);
  }
  [[nodiscard]] simdjson::dom::object all() const noexcept { return object_; }

 private:
  simdjson::dom::object object_;
};

}  // namespace holdfast::cli
