#include "store/write_behind/operation.hpp"

#include <functional>

namespace HOLDFAST_NAMESPACE::detail::store {

std::size_t hash_of(place location, std::string_view key) noexcept {
  constexpr std::size_t odd = 0x9e3779b97f4a7c15;
  const std::hash<std::string_view> hash;
  std::size_t result = hash(key) ^ (hash(location.name) * odd);
  if (!location.realm.empty()) result ^= (hash(location.realm) + odd) * odd;
  return result;
}

std::size_t bytes_of(const entry& value) noexcept {
  return sizeof(operation) + value.name.size() + value.key.size() + value.realm.size() +
         value.payload_class.size() + (value.payload ? value.payload->size() : 0);
}

operation make_put(const entry& e) {
  operation result{.value = e, .action = operation::kind::put};
  if (result.value.tombstone()) result.value.payload_class.clear();
  result.hash = hash_of(place(e), e.key);
  result.bytes = bytes_of(result.value);
  return result;
}

operation make_erase(place location, std::string_view key, timestamp as_of) {
  operation result{.action = operation::kind::erase};
  result.value.name = location.name;
  result.value.key = key;
  result.value.realm = location.realm;
  result.value.as_of = as_of;
  result.value.expire_on = as_of;
  result.hash = hash_of(location, key);
  result.bytes = bytes_of(result.value);
  return result;
}

}  // namespace HOLDFAST_NAMESPACE::detail::store
