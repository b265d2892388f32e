#pragma once

/// \file
/// Options of the commands that read or write entries, which may be sealed.

#include <holdfast/store/compose.hpp>
#include <holdfast/store/sealed.hpp>

#include "commands/store/key_ring_options.hpp"
#include "commands/store/location.hpp"

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::cli {

/// Whether a payload has the form that a sealed store writes.
[[nodiscard]] inline bool is_sealed(const entry& e) {
  return e.payload && e.payload->starts_with("ENC(");
}

struct entry_location : store_location {
  key_ring_options keys;

  explicit entry_location(command& cmd) : store_location(cmd), keys(cmd) {}

  /// Opens the store. With a key ring, payloads are sealed and opened.
  [[nodiscard]] std::shared_ptr<store> open(console& io) const {
    auto entries = store_location::open(io);
    if (!keys.is_set()) return entries;
    return make_sealed(std::move(entries), {.keys = keys.read()});
  }

  /// Tells how to read a payload that was printed sealed.
  void warn_if_sealed(console& io, bool sealed) const {
    if (sealed && !keys.is_set())
      io.warn("the payload is sealed; give --key-file FILE or --key-variable NAME to open it");
  }
};

/// All effective names of a store, in byte order.
[[nodiscard]] inline std::vector<std::string> names_of(store& entries) {
  constexpr std::size_t page_size = 500;
  std::vector<std::string> names;
  auto* listing = find_name_listing(entries);
  if (listing == nullptr)
    throw error(errc::unsupported_type, "this store cannot list its names; give --name N");
  for (;;) {
    auto page = listing->names({}, page_size, names.empty() ? std::string_view() : names.back());
    const bool last = page.size() < page_size;
    for (auto& name : page) names.push_back(std::move(name));
    if (last) return names;
  }
}

}  // namespace holdfast::cli
