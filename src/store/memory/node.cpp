#include "store/memory/node.hpp"

#include "store/memory/indexes.hpp"

#include <functional>

namespace HOLDFAST_NAMESPACE::detail::store {

namespace {

/// Replaces a string in two steps: the constructor may throw, apply() cannot. Reuses the memory of
/// the string, unless a much larger text had needed it. Often the text is the same as before.
class string_replacement {
 public:
  string_replacement(std::string& target, const std::string& next)
      : target_(target),
        next_(next),
        changes_(target != next),
        needs_copy_(changes_ && !fits(target, next)) {
    if (needs_copy_) copy_ = next;
  }
  void apply() noexcept {
    if (!changes_) return;
    if (needs_copy_) target_.swap(copy_);
    else target_.assign(next_);
  }

 private:
  static bool fits(const std::string& target, const std::string& next) {
    constexpr std::size_t slack = 64;
    return target.capacity() >= next.size() && target.capacity() <= 2 * next.size() + slack;
  }

  std::string& target_;
  const std::string& next_;
  const bool changes_;
  const bool needs_copy_;
  std::string copy_{};
};

// Of the indexes and the allocator, for each entry
constexpr std::size_t overhead = 128;

std::size_t mix(std::size_t a, std::size_t b) noexcept {
  return (a ^ (b + 0x9E3779B97F4A7C15U + (a << 6U) + (a >> 2U))) * 0xD6E8FEB86659FD93U;
}

}  // namespace

memory_identity::memory_identity(place entry_location, std::string_view entry_key)
    : location(entry_location), key(entry_key) {
  const std::hash<std::string_view> hash_text;
  location_hash =
      mix(hash_text(location.name), location.realm.empty() ? 0 : hash_text(location.realm));
  hash = mix(hash_text(key), location_hash);
}

entry memory_node::to_entry() const {
  entry e{.name = group->name(),
          .key = key,
          .as_of = as_of,
          .expire_on = expire_on,
          .payload_class = payload_class,
          .realm = group->realm()};
  if (!tombstone) e.payload = payload;
  return e;
}

void memory_node::assign(const entry& e, std::int64_t new_note) {
  static const std::string empty;
  string_replacement new_payload(payload, e.payload ? *e.payload : empty);
  string_replacement new_class(payload_class, e.payload ? e.payload_class : empty);
  new_payload.apply();
  new_class.apply();
  tombstone = e.tombstone();
  as_of = e.as_of;
  expire_on = e.expire_on;
  note = new_note;
  cost = sizeof(memory_node) + overhead + e.name.size() + e.realm.size() + key.capacity() +
         payload_class.capacity() + payload.capacity();
}

std::size_t memory_cost(const entry& e) noexcept {
  return sizeof(memory_node) + overhead + e.name.size() + e.realm.size() + e.key.size() +
         e.payload_class.size() + (e.payload ? e.payload->size() : 0);
}

}  // namespace HOLDFAST_NAMESPACE::detail::store
