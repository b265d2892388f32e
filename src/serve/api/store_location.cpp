#include "serve/api/store_location.hpp"

#include <holdfast/error.hpp>

#include "base/base64.hpp"
#include "base/utf8.hpp"

#include <algorithm>
#include <cstddef>

namespace HOLDFAST_NAMESPACE::detail::serve {

namespace {

[[noreturn]] void refuse_text(errc code, std::string_view path, const std::string& problem) {
  throw error(code, problem, {.path = std::string(path)});
}

std::string decode_base64url(std::string text, std::string_view path) {
  // The usual alphabet has other characters, and padding.
  const bool is_usual = text.find_first_of("+/=") != std::string::npos;
  std::ranges::replace(text, '-', '+');
  std::ranges::replace(text, '_', '/');
  text.append((4 - text.size() % 4) % 4, '=');
  const auto size = decoded_base64_size(text);
  std::string bytes(size.value_or(0), '\0');
  if (is_usual || !size || !decode_base64(text, reinterpret_cast<std::byte*>(bytes.data())))
    refuse_text(errc::invalid_argument, path,
                "is not base64url without padding, as ?encoding=base64url says");
  return bytes;
}

std::string checked_text(const api_request& request, std::string_view parameter,
                         std::size_t max_length) {
  const auto encoding = request.query("encoding");
  if (encoding && *encoding != "base64url")
    refuse_text(errc::invalid_argument, "encoding", "must be base64url, or missing");
  auto text = request.path(parameter);
  if (encoding) text = decode_base64url(std::move(text), parameter);
  if (text.empty()) refuse_text(errc::invalid_argument, parameter, "is empty");
  if (!is_utf8(text)) refuse_text(errc::ill_formed_text, parameter, "is not well-formed UTF-8");
  if (text.find('\0') != std::string::npos)
    refuse_text(errc::invalid_argument, parameter, "contains a NUL character");
  const auto length = count_code_points(text);
  if (length > max_length)
    refuse_text(errc::invalid_argument, parameter,
                "has " + std::to_string(length) + " characters; at most " +
                    std::to_string(max_length) + " are possible");
  return text;
}

}  // namespace

std::string realm_of(const store_service& service, const api_request& request) {
  const auto& realms = service.options.realms;
  const auto parameter = request.query("tenant");
  const auto& own = request.caller.tenant;
  if (!own.empty()) {
    if (parameter && *parameter != own)
      throw refused_request{.detail = "the caller may use the entries of its own tenant only"};
    if (!realms.contains(own))
      throw refused_request{.detail =
                                "the store has no entries for the tenant of the caller; ask "
                                "an administrator to add the tenant to the store"};
    return own;
  }
  if (realms.empty()) {
    if (parameter)
      refuse_text(errc::invalid_argument, "tenant",
                  "the store has no tenants; remove the parameter");
    return {};
  }
  if (!parameter)
    refuse_text(errc::invalid_argument, "tenant", "the store has tenants; add ?tenant=NAME");
  if (!realms.contains(*parameter))
    refuse_text(errc::not_found, "tenant", "the store has no tenant of this name");
  return *parameter;
}

std::string entry_name(const api_request& request) {
  return checked_text(request, "name", max_name_length);
}

std::string entry_key(const api_request& request) {
  return checked_text(request, "key", max_key_length);
}

timestamp current_time(const services& shared) {
  return shared.clock ? shared.clock->now() : system_clock()->now();
}

}  // namespace HOLDFAST_NAMESPACE::detail::serve
