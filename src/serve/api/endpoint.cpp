#include "serve/api/endpoint.hpp"

#include <holdfast/error.hpp>

#include "serve/api/value_text.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

namespace HOLDFAST_NAMESPACE::detail::serve {

const std::string& api_request::path(std::string_view name) const {
  const auto it =
      std::ranges::find(path_parameters, name, &std::pair<std::string, std::string>::first);
  if (it == path_parameters.end())
    throw error(errc::internal, "the endpoint has no path parameter " + std::string(name));
  return it->second;
}

std::optional<std::string> api_request::query(std::string_view name) const {
  const auto it =
      std::ranges::find(query_parameters, name, &std::pair<std::string, std::string>::first);
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

bool api_request::query_flag(std::string_view name) const {
  const auto text = query(name);
  return text && (*text == "1" || *text == "true");
}

std::optional<std::chrono::sys_time<std::chrono::microseconds>> api_request::query_time(
    std::string_view name) const {
  const auto text = query(name);
  if (!text) return std::nullopt;
  const auto value = parse_time(*text);
  if (!value)
    throw error(errc::invalid_argument, "must be a time such as 2026-11-15T23:05:16.120431Z",
                {.path = std::string(name)});
  return value;
}

std::optional<std::chrono::milliseconds> api_request::query_duration(std::string_view name) const {
  const auto text = query(name);
  if (!text) return std::nullopt;
  const auto value = parse_duration(*text);
  if (!value)
    throw error(errc::invalid_argument, "must be a duration such as 500ms, 30s, 15m, 24h, 7d",
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
