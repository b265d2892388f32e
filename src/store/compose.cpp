#include <holdfast/store/compose.hpp>

#include "sql/database.hpp"

namespace HOLDFAST_NAMESPACE {

namespace {

store& top_of(const store_parts& parts) {
  if (parts.tenants) return *parts.tenants;
  if (parts.tiered) return *parts.tiered;
  if (parts.write_behind) return *parts.write_behind;
  if (parts.sealed) return *parts.sealed;
  if (!parts.base) throw error(errc::invalid_argument, "there is no store at the bottom of the composition");
  return *parts.base;
}

}  // namespace

composed_store::composed_store(store_parts parts) : parts_(std::move(parts)), top_(top_of(parts_)) {}

composed_store::~composed_store() {
  // From the top down: what is above may still write to what is below.
  parts_.tenants.reset();
  parts_.tiered.reset();
  parts_.write_behind.reset();
  parts_.sealed.reset();
}

void composed_store::put(std::span<const entry> entries) { top_.put(entries); }
std::optional<entry> composed_store::find(place where, std::string_view key) { return top_.find(where, key); }
entry_page composed_store::find_all(place where, std::size_t limit, std::string_view after) { return top_.find_all(where, limit, after); }
bool composed_store::erase(place where, std::string_view key, timestamp as_of) { return top_.erase(where, key, as_of); }
std::size_t composed_store::expire(timestamp before, std::size_t limit) { return top_.expire(before, limit); }
std::uint64_t composed_store::count(place where) { return top_.count(where); }
peer composed_store::peer() const noexcept { return top_.peer(); }
bool composed_store::waits() const noexcept { return top_.waits(); }
store_health composed_store::health() noexcept { return top_.health(); }

write_behind_report composed_store::flush(std::chrono::steady_clock::time_point deadline) {
  return parts_.write_behind ? parts_.write_behind->flush(deadline) : write_behind_report();
}
write_behind_report composed_store::close(std::chrono::steady_clock::time_point deadline) {
  return parts_.write_behind ? parts_.write_behind->close(deadline) : write_behind_report();
}

store_composition<> compose(const database& on, store_options options) {
  const auto& state = *on.shared();
  return store_composition<>({.base = on.store(std::move(options))}, {.clock = state.options.clock,
                                                                      .executor = state.options.executor,
                                                                      .reads_on = [shared = on.shared()] { return shared->executor(); },
                                                                      .log = state.options.log,
                                                                      .metrics = state.options.metrics});
}

}  // namespace HOLDFAST_NAMESPACE
