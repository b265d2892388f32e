#include "serve/api/endpoint.hpp"

#include <holdfast/error.hpp>

#include <algorithm>
#include <charconv>
#include <utility>

namespace HOLDFAST_NAMESPACE::detail::serve {

const std::string& api_request::path(std::string_view name) const {
  const auto it = std::ranges::find(path_parameters, name,
                                    &std::pair<std::string, std::string>::first);
  if (it == path_parameters.end())
    throw error(errc::internal, "the endpoint has no path parameter " + std::string(name));
  return it->second;
}

std::optional<std::string> api_request::query(std::string_view name) const {
  const auto it = std::ranges::find(query_parameters, name,
                                    &std::pair<std::string, std::string>::first);
  if (it == query_parameters.end()) return std::nullopt;
  return it->second;
}

std::int64_t api_request::query_integer(std::string_view name, std::int64_t fallback,
                                        std::int64_t least, std::int64_t most) const {
  const auto text = query(name);
  if (!text) return fallback;
  std::int64_t value = 0;
  const auto end = text->data() + text->size();
  const auto [stop, status] = std::from_chars(text->data(), end, value);
  if (status != std::errc{} || stop != end || value < least || value > most)
    throw error(errc::invalid_argument,
                "must be an integer from " + std::to_string(least) + " to " + std::to_string(most),
                {.path = std::string(name)});
  return value;
}

server_response json_response(int status, std::string json) {
  server_response response{.status = status};
  response.fields.add("Content-Type", "application/json");
  response.body = std::move(json);
  return response;
}

}  // namespace HOLDFAST_NAMESPACE::detail::serve
