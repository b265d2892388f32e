#include "serve/gateway/request_conditions.hpp"

#include <array>
#include <string_view>

namespace HOLDFAST_NAMESPACE::detail::serve::gateway {

namespace {

constexpr std::array<std::string_view, 6> condition_names = {
    "if-none-match", "if-modified-since", "if-match", "if-unmodified-since", "range", "if-range"};

}  // namespace

request_conditions::request_conditions(const http::fields& request) {
  for (const auto name : condition_names) {
    request.for_each(name, [&](std::string_view value) {
      fields_.add(text_.size(), name.size(), text_.size() + name.size(), value.size());
      text_.append(name).append(value);
    });
  }
  fields_.set_text(text_);
}

}  // namespace HOLDFAST_NAMESPACE::detail::serve::gateway
