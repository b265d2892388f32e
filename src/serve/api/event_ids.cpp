#include "serve/api/event_ids.hpp"

#include <holdfast/error.hpp>

#include "base/uuid.hpp"
#include "http/structured_field.hpp"

#include <algorithm>
#include <variant>

namespace HOLDFAST_NAMESPACE::detail::serve {

namespace {

constexpr std::size_t longest_key = 256;

[[noreturn]] void refuse_key(const char* reason) {
  throw error(errc::invalid_argument, reason, {.path = "Idempotency-Key"});
}

std::string derived_id(std::string_view caller, std::string_view text) {
  std::string name(caller);
  name.append(1, '\0').append(text);
  return uuid_v5(uuid_namespace_oid, name);
}

}  // namespace

std::optional<std::string> normalized_uuid(std::string_view text) {
  std::string lower(text);
  std::ranges::transform(lower, lower.begin(), [](char c) {
    return c >= 'A' && c <= 'F' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  if (!is_uuid(lower)) return std::nullopt;
  return lower;
}

std::optional<std::string> read_idempotency_key(const http::fields& fields) {
  const auto value = fields.find("Idempotency-Key");
  if (!value) return std::nullopt;
  if (fields.count("Idempotency-Key") > 1) refuse_key("occurs twice; send it once");
  std::string key(*value);
  if (key.starts_with('"')) {
    auto item = http::structured::parse_item(*value);
    auto* const text = item ? std::get_if<std::string>(&item->value) : nullptr;
    if (text == nullptr) refuse_key("is not a quoted string as RFC 9651 defines it");
    key = std::move(*text);
  }
  if (key.empty()) refuse_key("is empty; leave it out, or send a UUID");
  if (key.size() > longest_key) refuse_key("is longer than 256 bytes; send a UUID");
  return key;
}

std::string event_ids::from_key() const {
  if (!key_) return {};
  if (auto id = normalized_uuid(*key_)) return *std::move(id);
  return derived_id(caller_, *key_);
}

std::string event_ids::from_key(std::size_t index) const {
  if (!key_) return {};
  return derived_id(caller_, *key_ + '\0' + std::to_string(index));
}

std::string event_ids::from_cloud_event(std::string_view source, std::string_view id) const {
  if (auto own = normalized_uuid(id)) return *std::move(own);
  std::string text(source);
  text.append(1, '\0').append(id);
  return derived_id(caller_, text);
}

}  // namespace HOLDFAST_NAMESPACE::detail::serve
