#include "store/tiered/memory_tier.hpp"

#include "base/duration_limit.hpp"

#include <algorithm>
#include <limits>
#include <tuple>
#include <utility>

namespace HOLDFAST_NAMESPACE::detail::store {

namespace {

using std::chrono::microseconds;

/// The time in the note of an entry that is not fresh at any time.
constexpr microseconds never_fresh = microseconds::min();
/// Ten years: longer than any useful freshness, and safe in arithmetic with times.
constexpr microseconds longest_freshness = std::chrono::hours(24 * 366 * 10);

}  // namespace

memory_tier::memory_tier(const memory_store_options& memory, microseconds freshness,
                         std::shared_ptr<const clock> time_source)
    : memory_(memory),
      freshness_(limit_duration(freshness, longest_freshness)),
      clock_(std::move(time_source)) {}

microseconds memory_tier::steady_time() const noexcept {
  return std::chrono::duration_cast<microseconds>(clock_->steady().time_since_epoch());
}

void memory_tier::mark_not_fresh(place location, std::string_view key) noexcept {
  memory_.set_note(location, key, never_fresh.count());
}

std::optional<memory_tier::cached_entry> memory_tier::find(place location, std::string_view key) {
  auto cached = memory_.find_noted(location, key);
  if (!cached) return std::nullopt;
  const microseconds current_since(cached->note);
  const bool fresh = current_since != never_fresh && steady_time() - current_since <= freshness_;
  return cached_entry{.value = std::move(cached->value), .fresh = fresh};
}

void memory_tier::cache(const entry& e, microseconds current_since) noexcept {
  try {
    memory_.check_size(e);
    memory_.put(e, {.replace = memory_write::rule::always,
                    .now = clock_->now(),
                    .note = current_since.count()});
  } catch (...) {
    // Too large, or out of memory. The older entry must not stay.
    memory_.erase(place(e), e.key);
  }
}

memory_tier::pending_read memory_tier::begin_read(place location, std::string_view key) {
  pending_read read{.stripe_index = stripe_of(location, key), .started_at = steady_time()};
  key_stripe& stripe = stripes_[read.stripe_index];
  const std::scoped_lock lock(stripe.mutex);
  read.version = stripe.version;
  read.no_writes = stripe.writes == 0;
  return read;
}

bool memory_tier::end_read(const pending_read& read, place location, std::string_view key,
                           const std::optional<entry>& answer) noexcept {
  key_stripe& stripe = stripes_[read.stripe_index];
  const std::scoped_lock lock(stripe.mutex);
  stripe.add_read_version(answer);
  if (read.no_writes && read.version == stripe.version) {  // rule 1
    ++stripe.version;
    if (answer) cache(*answer, read.started_at);
    else memory_.erase(location, key);
    return true;
  }
  yield_to_answer(stripe, location, key, answer);
  return false;
}

void memory_tier::record_answer(place location, std::string_view key,
                                const std::optional<entry>& answer) noexcept {
  key_stripe& stripe = stripes_[stripe_of(location, key)];
  const std::scoped_lock lock(stripe.mutex);
  stripe.add_read_version(answer);
  yield_to_answer(stripe, location, key, answer);
}

void memory_tier::yield_to_answer(key_stripe& stripe, place location, std::string_view key,
                                  const std::optional<entry>& answer) noexcept {
  const auto cached_version = memory_.version(location, key);
  if (cached_version && answer && *cached_version >= answer->as_of) return;
  // While a write is in progress, no overlapping read may cache anyway, and the version must not
  // change: a put would not cache its entry.
  if (stripe.writes == 0) ++stripe.version;
  if (cached_version && answer) memory_.erase(location, key);
  else if (cached_version) mark_not_fresh(location, key);
}

memory_tier::pending_put::pending_put(memory_tier& tier, std::span<const entry> entries)
    : tier_(tier), started_at_(tier.clock_->now()) {
  entries_.reserve(entries.size());
  for (const entry& e : entries)
    entries_.push_back({.stripe_index = stripe_of(place(e), e.key), .value = &e});
  sort_and_mark_duplicates();
  stripes_.reserve(std::min(entries_.size(), stripe_count));
  // Nothing can fail from here on, so every begin has an end.
  for (std::size_t i = 0; i < entries_.size();) {
    const std::size_t index = entries_[i].stripe_index;
    key_stripe& stripe = tier_.stripes_[index];
    const std::scoped_lock lock(stripe.mutex);
    const bool no_writes = stripe.writes++ == 0;
    stripes_.push_back({.index = index,
                        .version = ++stripe.version,
                        .no_writes = no_writes,
                        .newest_before = stripe.newest});
    for (; i < entries_.size() && entries_[i].stripe_index == index; ++i) {
      const entry& e = *entries_[i].value;
      stripe.newest = std::max(stripe.newest, e.as_of);
      tier_.mark_not_fresh(place(e), e.key);  // rule 6
    }
  }
}

/// Sorts the entries by stripe and key, and marks those whose key occurs several times.
void memory_tier::pending_put::sort_and_mark_duplicates() {
  const auto identity = [](const put_entry& e) {
    return std::tie(e.stripe_index, e.value->key, e.value->name, e.value->realm);
  };
  std::sort(entries_.begin(), entries_.end(),
            [&](const put_entry& a, const put_entry& b) { return identity(a) < identity(b); });
  for (std::size_t i = 1; i < entries_.size(); ++i) {
    if (identity(entries_[i - 1]) == identity(entries_[i]))
      entries_[i - 1].duplicate = entries_[i].duplicate = true;
  }
}

memory_tier::pending_put::~pending_put() {
  if (!ended_) end(false);
}

void memory_tier::pending_put::commit() noexcept { end(true); }

void memory_tier::pending_put::end(bool success) noexcept {
  ended_ = true;
  const timestamp ended_at = std::max(started_at_, tier_.clock_->now());
  auto it = entries_.begin();
  for (const put_stripe& put : stripes_) {
    key_stripe& stripe = tier_.stripes_[put.index];
    const std::scoped_lock lock(stripe.mutex);
    const bool no_overlapping_write =
        put.no_writes && stripe.writes == 1 && stripe.version == put.version;
    for (; it != entries_.end() && it->stripe_index == put.index; ++it) {
      if (!success) continue;  // rule 5
      const entry& e = *it->value;
      if (no_overlapping_write && !it->duplicate) {
        tier_.cache_put(e, {.started_at = started_at_,
                            .ended_at = ended_at,
                            .newest_before = put.newest_before,
                            .newest_read = stripe.newest_read});
      } else {  // rule 3: the order in the durable store is unknown
        tier_.memory_.erase(place(e), e.key);
      }
    }
    --stripe.writes;
  }
}

void memory_tier::cache_put(const entry& e, const put_times& times) noexcept {
  // The durable store may have refused an entry that has expired or is in the future.
  if (e.expire_on < times.ended_at || e.as_of > times.started_at) {
    memory_.erase(place(e), e.key);
    return;
  }
  const auto cached_version = memory_.version(place(e), e.key);
  if (cached_version && *cached_version > e.as_of) {
    // The durable store has kept the newer one, unless its as_of is too far in the future.
    if (*cached_version > times.started_at) memory_.erase(place(e), e.key);
    return;
  }
  // A newer version may have been evicted, or read by a caller meanwhile.
  if (!cached_version && (e.as_of <= times.newest_before || e.as_of < times.newest_read)) return;
  const bool fresh = e.as_of >= times.ended_at - freshness_;
  cache(e, fresh ? steady_time() - (times.ended_at - e.as_of) : never_fresh);
}

memory_tier::pending_erase::pending_erase(memory_tier& tier, place location, std::string_view key)
    : tier_(tier), location_(location), key_(key), stripe_index_(stripe_of(location, key)) {
  key_stripe& stripe = tier_.stripes_[stripe_index_];
  const std::scoped_lock lock(stripe.mutex);
  ++stripe.writes;
  ++stripe.version;
  tier_.mark_not_fresh(location_, key_);  // rule 6
}

memory_tier::pending_erase::~pending_erase() {
  key_stripe& stripe = tier_.stripes_[stripe_index_];
  const std::scoped_lock lock(stripe.mutex);
  if (committed_) tier_.memory_.erase(location_, key_);  // rule 4
  --stripe.writes;
}

memory_tier::pending_expire::pending_expire(memory_tier& tier, timestamp before)
    : tier_(tier), before_(before) {
  for (key_stripe& stripe : tier_.stripes_) {
    const std::scoped_lock lock(stripe.mutex);
    ++stripe.writes;
    ++stripe.version;
  }
}

memory_tier::pending_expire::~pending_expire() {
  // Rule 4. While every stripe has a write in progress, no operation caches an entry.
  tier_.memory_.expire(before_, std::numeric_limits<std::size_t>::max());
  for (key_stripe& stripe : tier_.stripes_) {
    const std::scoped_lock lock(stripe.mutex);
    --stripe.writes;
  }
}

}  // namespace HOLDFAST_NAMESPACE::detail::store
