#pragma once

#include "http/fields.hpp"
#include "serve/gateway/response_fields.hpp"

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

namespace holdfast::test {

using field_list = std::initializer_list<std::pair<std::string_view, std::string_view>>;

/// The fields of a message, with their text.
class request_fields {
 public:
  request_fields(field_list list) {
    for (const auto& [name, value] : list) {
      fields_.add(text_.size(), name.size(), text_.size() + name.size(), value.size());
      text_.append(name).append(value);
    }
    fields_.set_text(text_);
  }
  request_fields(const request_fields&) = delete;
  request_fields& operator=(const request_fields&) = delete;
  // NOLINTNEXTLINE(google-explicit-constructor): stands for the fields
  operator const detail::http::fields&() const { return fields_; }

 private:
  std::string text_{};
  detail::http::fields fields_{};
};

inline detail::serve::gateway::response_fields response_of(field_list list) {
  detail::serve::gateway::response_fields fields;
  for (const auto& [name, value] : list) fields.add(name, value);
  return fields;
}

}  // namespace holdfast::test
