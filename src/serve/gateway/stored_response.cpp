#include "serve/gateway/stored_response.hpp"

#include <holdfast/error.hpp>

#include "base/base64.hpp"
#include "serve/api/json_reader.hpp"
#include "serve/api/json_writer.hpp"

#include <span>

namespace HOLDFAST_NAMESPACE::detail::serve::gateway {

namespace {

[[noreturn]] void refuse(const char* message) { throw error(errc::malformed, message); }

/// Values of fields may have bytes that are not UTF-8, which JSON cannot have. They are read as
/// Latin-1, as HTTP did when it had a character set.
std::string as_utf8(std::string_view bytes) {
  std::string text;
  text.reserve(bytes.size());
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x80U) {
      text += c;
    } else {
      text += static_cast<char>(0xC0U | (byte >> 6U));
      text += static_cast<char>(0x80U | (byte & 0x3FU));
    }
  }
  return text;
}

std::string as_bytes(std::string_view text) {
  std::string bytes;
  bytes.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto first = static_cast<unsigned char>(text[i]);
    if (first < 0x80U) {
      bytes += text[i];
      continue;
    }
    if ((first & 0xFCU) != 0xC0U || i + 1 >= text.size())
      refuse("a field of a kept response has a character that no field can have");
    const auto second = static_cast<unsigned char>(text[++i]);
    bytes += static_cast<char>(((first & 0x03U) << 6U) | (second & 0x3FU));
  }
  return bytes;
}

std::string to_base64(std::string_view content) {
  std::string text(base64_size(content.size()), '\0');
  encode_base64(std::as_bytes(std::span(content)), text.data());
  return text;
}

std::string read_base64(std::string_view text) {
  const auto size = decoded_base64_size(text);
  if (!size) refuse("the content of a kept response is not Base64");
  std::string content(*size, '\0');
  if (!decode_base64(text, reinterpret_cast<std::byte*>(content.data())))
    refuse("the content of a kept response is not Base64");
  return content;
}

response_fields read_fields(const std::vector<std::string>& lines) {
  response_fields fields;
  for (const auto& line : lines) {
    const auto colon = line.find(": ");
    if (colon == std::string::npos) refuse("a field of a kept response has no value");
    const auto value = as_bytes(std::string_view(line).substr(colon + 2));
    const auto name = std::string_view(line).substr(0, colon);
    if (!http::is_token(name) || !http::is_field_value(value))
      refuse("a field of a kept response cannot be sent");
    fields.add(name, value);
  }
  return fields;
}

}  // namespace

std::string encode(const stored_response& response, payload_form form) {
  json_writer out;
  out.begin_object();
  if (!response.invalid.empty()) {
    out.member("invalid", response.invalid);
  } else {
    out.member("status", response.status).key("fields").begin_array();
    for (const auto& field : response.fields.entries())
      out.text(field.name + ": " + as_utf8(field.value));
    out.end_array();
    if (form == payload_form::text && !response.content.empty()) out.member("encoding", "base64");
  }
  out.member("target", response.target).end_object();
  auto payload = out.take();
  if (response.content.empty()) return payload;
  payload += '\n';
  if (form == payload_form::text) payload += to_base64(response.content);
  else payload += response.content;
  return payload;
}

stored_response decode(std::string_view payload) {
  const auto end = payload.find('\n');
  auto line = json_object::parse(payload.substr(0, end));
  stored_response response{.target = line.text("target").value_or(std::string()),
                           .invalid = line.text("invalid").value_or(std::string())};
  if (!response.invalid.empty()) return response;
  const auto status = line.integer("status").value_or(0);
  if (status < 200 || status > 599) refuse("the status of a kept response is not valid");
  response.status = static_cast<int>(status);
  response.fields = read_fields(line.texts("fields").value_or(std::vector<std::string>()));
  if (end == std::string_view::npos) return response;
  const auto content = payload.substr(end + 1);
  response.content =
      line.text("encoding") == "base64" ? read_base64(content) : std::string(content);
  return response;
}

std::string masked_target(std::string_view target) {
  const auto question = target.find('?');
  std::string text(target.substr(0, question));
  if (question == std::string_view::npos) return text;
  char separator = '?';
  auto rest = target.substr(question + 1);
  while (!rest.empty()) {
    const auto size = std::min(rest.find('&'), rest.size());
    const auto parameter = rest.substr(0, size);
    const auto equals = parameter.find('=');
    text.append(1, separator);
    // A parameter without a name could be a secret as a whole.
    if (equals == std::string_view::npos) text += "***";
    else text.append(parameter.substr(0, equals)).append("=***");
    separator = '&';
    rest.remove_prefix(std::min(size + 1, rest.size()));
  }
  return text;
}

}  // namespace HOLDFAST_NAMESPACE::detail::serve::gateway
