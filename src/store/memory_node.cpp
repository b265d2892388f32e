#include "store/memory_node.hpp"

#include "store/memory_names.hpp"

#include <functional>

namespace HOLDFAST_NAMESPACE {

namespace {

/// Assigning within the capacity cannot fail. A capacity that a large text left behind is given back.
bool must_move(const std::string& kept, const std::string& next) {
  constexpr std::size_t slack = 64;
  return kept.capacity() < next.size() || kept.capacity() > 2 * next.size() + slack;
}

/// In two steps, so that all that can fail comes before all that changes something.
class replacement {
 public:
  replacement(std::string& kept, const std::string& next) : kept_(kept), next_(next), moves_(must_move(kept, next)) {
    if (moves_) room_ = next;
  }
  void apply() noexcept {
    if (moves_) kept_.swap(room_);
    else kept_.assign(next_);
  }

 private:
  std::string& kept_;
  const std::string& next_;
  bool moves_;
  std::string room_{};
};

constexpr std::size_t links = 128;  // in the hash table, the names, the expiries, and the allocator's own

std::size_t mix(std::size_t a, std::size_t b) noexcept {
  return (a ^ (b + 0x9E3779B97F4A7C15U + (a << 6U) + (a >> 2U))) * 0xD6E8FEB86659FD93U;
}

}  // namespace

memory_identity::memory_identity(place its_place, std::string_view its_key) : where(its_place), key(its_key) {
  const std::hash<std::string_view> of;
  place_hash = mix(of(where.name), where.realm.empty() ? 0 : of(where.realm));
  hash = mix(of(key), place_hash);
}

entry memory_node::copy() const {
  entry made{
      .name = names->name(), .key = key, .as_of = as_of, .expire_on = expire_on, .payload_class = payload_class, .realm = names->realm()};
  if (!tombstone) made.payload = payload;
  return made;
}

void memory_node::take(const entry& from, std::int64_t its_note) {
  static const std::string none;
  const std::string& next_payload = from.payload ? *from.payload : none;
  const std::string& next_class = from.payload ? from.payload_class : none;
  replacement of_payload(payload, next_payload);
  replacement of_class(payload_class, next_class);
  of_payload.apply();
  of_class.apply();
  tombstone = from.tombstone();
  as_of = from.as_of;
  expire_on = from.expire_on;
  note = its_note;
  cost =
      sizeof(memory_node) + links + from.name.size() + from.realm.size() + key.capacity() + payload_class.capacity() + payload.capacity();
}

std::size_t memory_cost(const entry& e) noexcept {
  return sizeof(memory_node) + links + e.name.size() + e.realm.size() + e.key.size() + e.payload_class.size() +
         (e.payload ? e.payload->size() : 0);
}

}  // namespace HOLDFAST_NAMESPACE
