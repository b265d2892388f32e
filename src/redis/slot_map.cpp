#include "redis/slot_map.hpp"

#include "redis/address.hpp"

#include <algorithm>

namespace HOLDFAST_NAMESPACE::redis {

namespace {

constexpr std::size_t most_nodes = 10'000;

[[noreturn]] void malformed() { throw error(errc::malformed, "the answer to CLUSTER SLOTS is not what it should be"); }

/// [host, port, id...]. The host may be nothing: then it is the one that was asked.
std::string address_of(const reply& from, std::string_view asked) {
  const auto& parts = from.elements();
  if (parts.size() < 2) malformed();
  const std::string host = parts[0].is_nil() ? std::string() : parts[0].text();
  auto found = read_address(host + ':' + std::to_string(parts[1].integer()), host_of(asked));
  if (!found) malformed();
  return *found;
}

}  // namespace

slot_map::slot_map(const reply& answer, std::string_view asked, const std::function<std::string(const std::string&)>& translate) {
  owner_.fill(nobody);
  for (const reply& each : answer.elements()) {
    const auto& parts = each.elements();
    if (parts.size() < 3) malformed();
    const auto first = parts[0].integer();
    const auto last = parts[1].integer();
    if (first < 0 || last < first || last >= static_cast<std::int64_t>(slots)) malformed();
    for (std::size_t i = 2; i < parts.size(); ++i) {
      auto where = address_of(parts[i], asked);
      if (translate) where = translate(where);
      const auto index = index_of(where, i == 2);
      if (i != 2) continue;
      std::fill(owner_.begin() + first, owner_.begin() + last + 1, index);
      nodes_[index].slots += static_cast<std::size_t>(last - first) + 1;
    }
  }
}

std::uint16_t slot_map::index_of(const std::string& address, bool master) {
  const auto found = std::find_if(nodes_.begin(), nodes_.end(), [&](const node& each) { return each.address == address; });
  if (found != nodes_.end()) {
    found->master = found->master || master;
    return static_cast<std::uint16_t>(found - nodes_.begin());
  }
  if (nodes_.size() >= most_nodes) malformed();
  nodes_.push_back({.address = address, .master = master});
  return static_cast<std::uint16_t>(nodes_.size() - 1);
}

void slot_map::move(std::uint16_t slot, const std::string& address) {
  if (owner_[slot] != nobody) --nodes_[owner_[slot]].slots;
  owner_[slot] = index_of(address, true);
  ++nodes_[owner_[slot]].slots;
}

std::size_t slot_map::covered() const noexcept {
  return static_cast<std::size_t>(std::count_if(owner_.begin(), owner_.end(), [](auto owner) { return owner != nobody; }));
}

}  // namespace HOLDFAST_NAMESPACE::redis
