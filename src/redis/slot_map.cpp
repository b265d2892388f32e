#include "redis/slot_map.hpp"

#include "net/address.hpp"

#include <algorithm>

namespace HOLDFAST_NAMESPACE::detail::redis {

namespace {

constexpr std::size_t max_nodes = 10'000;

[[noreturn]] void throw_bad_slots() {
  throw error(errc::malformed, "the reply to CLUSTER SLOTS does not have the expected form");
}

/// Reads `[host, port, id...]`. A nil host means the host of the node that replied.
std::string read_node_address(const reply& entry, std::string_view replying_node) {
  const auto& parts = entry.elements();
  if (parts.size() < 2) throw_bad_slots();
  const std::string host = parts[0].is_nil() ? std::string() : parts[0].text();
  auto address = net::parse_address(host + ':' + std::to_string(parts[1].integer()),
                                    net::host_of(replying_node));
  if (!address) throw_bad_slots();
  return *address;
}

}  // namespace

// The reply is a list of `[first slot, last slot, master, replica...]`.
slot_map::slot_map(const reply& answer, std::string_view replying_node,
                   const std::function<std::string(const std::string&)>& translate) {
  owner_.fill(no_owner);
  for (const reply& range : answer.elements()) {
    const auto& parts = range.elements();
    if (parts.size() < 3) throw_bad_slots();
    const auto first = parts[0].integer();
    const auto last = parts[1].integer();
    if (first < 0 || last < first || last >= static_cast<std::int64_t>(slots)) throw_bad_slots();
    for (std::size_t i = 2; i < parts.size(); ++i) {
      auto address = read_node_address(parts[i], replying_node);
      if (translate) address = translate(address);
      const bool master = i == 2;
      const auto index = find_or_add(address, master);
      if (!master) continue;
      std::fill(owner_.begin() + first, owner_.begin() + last + 1, index);
      nodes_[index].slots += static_cast<std::size_t>(last - first) + 1;
    }
  }
}

std::uint16_t slot_map::find_or_add(const std::string& address, bool master) {
  const auto existing = std::ranges::find(nodes_, address, &node::address);
  if (existing != nodes_.end()) {
    existing->master = existing->master || master;
    return static_cast<std::uint16_t>(existing - nodes_.begin());
  }
  if (nodes_.size() >= max_nodes) throw_bad_slots();
  nodes_.push_back({.address = address, .master = master});
  return static_cast<std::uint16_t>(nodes_.size() - 1);
}

void slot_map::move(std::uint16_t slot, const std::string& address) {
  if (owner_[slot] != no_owner) --nodes_[owner_[slot]].slots;
  owner_[slot] = find_or_add(address, true);
  ++nodes_[owner_[slot]].slots;
}

std::size_t slot_map::covered() const noexcept {
  return static_cast<std::size_t>(
      std::ranges::count_if(owner_, [](auto owner) { return owner != no_owner; }));
}

}  // namespace HOLDFAST_NAMESPACE::detail::redis
