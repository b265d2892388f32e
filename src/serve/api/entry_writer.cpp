#include "serve/api/entry_writer.hpp"

#include <holdfast/error.hpp>
#include <holdfast/store/compose.hpp>
#include <holdfast/store/tenants.hpp>

#include "serve/api/server_refusal.hpp"

#include <chrono>
#include <functional>
#include <string_view>

namespace HOLDFAST_NAMESPACE::detail::serve {

namespace {

constexpr std::chrono::seconds longest_wait_for_writes{5};
constexpr int max_attempts = 3;

/// The layer that knows what other processes have written. A memory tier has this version even if
/// the store below it keeps a newer one. A write-behind layer has not written yet, so it decides.
store& deciding_layer(store& target) {
  const auto* composed = dynamic_cast<composed_store*>(&target);
  if (composed == nullptr || !composed->parts().tiered) return target;
  const auto& parts = composed->parts();
  if (parts.write_behind) return *parts.write_behind;
  return parts.sealed ? static_cast<store&>(*parts.sealed) : *parts.base;
}

std::optional<entry> find_after_write(store& target, const entry& written) {
  try {
    return target.find(place(written), written.key);
  } catch (const error& e) {
    throw error(e.code(),
                "the entry was written, but the store failed before it told which version it "
                "keeps: " +
                    e.message(),
                {.backend_code = e.backend_code(), .transient = true, .in_doubt = true});
  }
}

std::size_t hash_of(const entry& written) {
  std::size_t hash = 0;
  for (const std::string* part : {&written.realm, &written.name, &written.key})
    hash = hash * 31 + std::hash<std::string_view>{}(*part);
  return hash;
}

}  // namespace

entry_writer::store_stripes& entry_writer::stripes_of(const std::string& store_name) {
  const std::scoped_lock lock(mutex_);
  auto& own = stripes_[store_name];
  if (!own) own = std::make_unique<store_stripes>();
  return *own;
}

std::optional<timestamp> entry_writer::put(const std::string& store_name, store& target,
                                           const entry& written, call_limit& calls) {
  auto& stripes = stripes_of(store_name);
  auto& own = stripes.all[hash_of(written) % stripe_count];
  std::unique_lock lock(own.mutex, std::try_to_lock);
  if (!lock.owns_lock()) {
    const auto waiting_for_key = own.waiting.begin();
    const auto waiting = stripes.waiting.begin();
    if (!lock.try_lock_for(longest_wait_for_writes))
      throw server_refusal(errc::timeout, busy_key.reason,
                           "other writes of this key take too long; try again later");
  }
  const auto call = calls.begin();
  const tenant_scope scope(written.realm.empty() ? std::nullopt : std::optional(written.realm));
  store& decider = deciding_layer(target);
  for (int attempt = 0; attempt < max_attempts; ++attempt) {
    target.put(written);
    const auto stored = find_after_write(decider, written);
    if (!stored || stored->as_of < written.as_of) continue;
    return stored->as_of == written.as_of ? std::nullopt : std::optional(stored->as_of);
  }
  throw server_refusal(
      errc::unavailable, "entry_removed",
      "the entry was removed each time after it was written: it expires too soon, the store is "
      "full, or other programs erase it; try again later");
}

}  // namespace HOLDFAST_NAMESPACE::detail::serve
