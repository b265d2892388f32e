#include <holdfast/error.hpp>
#include <holdfast/store/compose.hpp>

#include <utility>

namespace HOLDFAST_NAMESPACE {

namespace {

store& top_of(const store_parts& parts) {
  if (parts.tenants) return *parts.tenants;
  if (parts.tiered) return *parts.tiered;
  if (parts.write_behind) return *parts.write_behind;
  if (parts.sealed) return *parts.sealed;
  if (!parts.base) throw error(errc::invalid_argument, "the composition has no base store");
  return *parts.base;
}

}  // namespace

composed_store::composed_store(store_parts parts)
    : parts_(std::move(parts)), top_(top_of(parts_)) {}

composed_store::~composed_store() {
  // From the top down: an upper layer may still write to the layers below.
  parts_.tenants.reset();
  parts_.tiered.reset();
  parts_.write_behind.reset();
  parts_.sealed.reset();
}

void composed_store::put(std::span<const entry> entries) { top_.put(entries); }
std::optional<entry> composed_store::find(place location, std::string_view key) {
  return top_.find(location, key);
}
remembered_entry composed_store::find_in_memory(place location, std::string_view key) {
  return top_.find_in_memory(location, key);
}
std::vector<std::optional<entry>> composed_store::find_many(place location,
                                                            std::span<const std::string> keys) {
  return top_.find_many(location, keys);
}
entry_page composed_store::find_all(place location, std::size_t limit, std::string_view after) {
  return top_.find_all(location, limit, after);
}
bool composed_store::erase(place location, std::string_view key, timestamp as_of) {
  return top_.erase(location, key, as_of);
}
std::size_t composed_store::expire(timestamp before, std::size_t limit) {
  return top_.expire(before, limit);
}
std::uint64_t composed_store::count(place location) { return top_.count(location); }
expiry_profile composed_store::expiring(place location, std::span<const timestamp> times) {
  return top_.expiring(location, times);
}
peer composed_store::peer() const noexcept { return top_.peer(); }
bool composed_store::waits() const noexcept { return top_.waits(); }
store_health composed_store::health() noexcept { return top_.health(); }

write_behind_report composed_store::flush(std::chrono::steady_clock::time_point deadline) {
  return parts_.write_behind ? parts_.write_behind->flush(deadline) : write_behind_report();
}
write_behind_report composed_store::close(std::chrono::steady_clock::time_point deadline) {
  return parts_.write_behind ? parts_.write_behind->close(deadline) : write_behind_report();
}

std::shared_ptr<composed_store> compose(std::shared_ptr<store> base, store_layers layers,
                                        const store_environment& environment) {
  auto top = base;
  store_parts parts{.base = std::move(base)};
  if (layers.sealed) top = parts.sealed = make_sealed(top, std::move(*layers.sealed));
  if (auto& options = layers.write_behind) {
    if (!options->clock) options->clock = environment.clock;
    if (!options->executor) options->executor = environment.executor;
    if (!options->log) options->log = environment.log;
    if (!options->metrics) options->metrics = environment.metrics;
    top = parts.write_behind = make_write_behind(top, std::move(*options));
  }
  if (auto& options = layers.tiered) {
    if (!options->clock) options->clock = environment.clock;
    if (!options->executor) options->executor = environment.executor;
    if (!options->executor && options->read_deadline.count() > 0 && environment.make_executor)
      options->executor = environment.make_executor();
    top = parts.tiered = make_tiered_store(top, std::move(*options));
  }
  if (layers.tenants) parts.tenants = make_tenant_store(top, std::move(*layers.tenants));
  return std::make_shared<composed_store>(std::move(parts));
}

name_listing* find_name_listing(store& listed) noexcept {
  const auto* composed = dynamic_cast<const composed_store*>(&listed);
  store& bottom = composed != nullptr ? *composed->parts().base : listed;
  return dynamic_cast<name_listing*>(&bottom);
}

}  // namespace HOLDFAST_NAMESPACE
