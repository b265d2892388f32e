#include "store/tier_front.hpp"

#include <algorithm>
#include <limits>
#include <tuple>
#include <utility>

namespace HOLDFAST_NAMESPACE {

namespace {

using std::chrono::microseconds;

/// Since when an entry is right that must be asked for again.
constexpr auto never = std::numeric_limits<std::int64_t>::min();
/// Longer than anybody means, and far from where the arithmetic of moments ends.
constexpr microseconds longest_freshness = std::chrono::hours(24 * 366 * 10);

}  // namespace

tier_front::tier_front(const memory_store_options& memory, microseconds freshness, std::shared_ptr<const clock> time)
    : memory_(memory), freshness_(std::min(freshness, longest_freshness).count()), clock_(std::move(time)) {}

std::int64_t tier_front::steady() const noexcept {
  return std::chrono::duration_cast<microseconds>(clock_->steady().time_since_epoch()).count();
}

std::optional<tier_front::found> tier_front::find(place where, std::string_view key) {
  auto held = memory_.find_noted(where, key);
  if (!held) return std::nullopt;
  const bool fresh = held->note != never && steady() - held->note <= freshness_;
  return found{.value = std::move(held->value), .fresh = fresh};
}

void tier_front::show(const entry& e, std::int64_t since) noexcept {
  try {
    memory_.check_size(e);
    memory_.put(e, {.when = memory_write::rule::always, .now = clock_->now(), .note = since});
  } catch (...) {
    // Too large for the front, or no memory: then the older one must not stay, either.
    memory_.erase(place(e), e.key);
  }
}

tier_front::read_ticket tier_front::begin_read(place where, std::string_view key) {
  read_ticket made{.stripe = stripe_of(where, key), .begun = steady()};
  stripe& in = stripes_[made.stripe];
  const std::scoped_lock lock(in.mutex);
  made.version = in.version;
  made.clean = in.writes == 0;
  return made;
}

bool tier_front::end_read(const read_ticket& ticket, place where, std::string_view key, const std::optional<entry>& answer) noexcept {
  stripe& in = stripes_[ticket.stripe];
  const std::scoped_lock lock(in.mutex);
  if (answer) in.highest = std::max(in.highest, answer->as_of);
  if (!ticket.clean || ticket.version != in.version) {
    // Another read may have brought what it saw before another process wrote this. A caller that has seen this must not be given that
    // afterwards, not even while the durable store fails.
    const auto shown = memory_.version(where, key);
    if (shown && !answer) memory_.note(where, key, never);
    else if (shown && *shown < answer->as_of) memory_.erase(where, key);
    return false;
  }
  // A read of the same key that began earlier must not replace this by what it saw then.
  ++in.version;
  if (answer) show(*answer, ticket.begun);
  else memory_.erase(where, key);
  return true;
}

tier_front::put::put(tier_front& in, std::span<const entry> entries) : in_(in), begun_(in.clock_->now()) {
  items_.reserve(entries.size());
  for (const entry& each : entries) items_.push_back({.stripe = stripe_of(place(each), each.key), .what = &each});
  const auto identity = [](const item& each) { return std::tie(each.stripe, each.what->key, each.what->name, each.what->realm); };
  std::sort(items_.begin(), items_.end(), [&](const item& a, const item& b) { return identity(a) < identity(b); });
  for (std::size_t i = 1; i < items_.size(); ++i) {
    if (identity(items_[i - 1]) == identity(items_[i])) items_[i - 1].twice = items_[i].twice = true;
  }
  stripes_.reserve(std::min(items_.size(), stripe_count));
  // Nothing fails from here on, so each stripe that is begun is ended.
  for (std::size_t at = 0; at < items_.size();) {
    stripe& begun = in_.stripes_[items_[at].stripe];
    const std::scoped_lock lock(begun.mutex);
    const bool first = begun.writes++ == 0;
    stripes_.push_back({.stripe = items_[at].stripe, .version = ++begun.version, .first = first, .highest = begun.highest});
    for (; at < items_.size() && items_[at].stripe == stripes_.back().stripe; ++at) {
      const entry& e = *items_[at].what;
      begun.highest = std::max(begun.highest, e.as_of);
      in_.memory_.note(place(e), e.key, never);
    }
  }
}

tier_front::put::~put() {
  if (!over_) end(false);
}

void tier_front::put::succeeded() noexcept { end(true); }

void tier_front::put::end(bool success) noexcept {
  over_ = true;
  const timestamp now = std::max(begun_, in_.clock_->now());
  auto each = items_.begin();
  for (const held& mine : stripes_) {
    stripe& ended = in_.stripes_[mine.stripe];
    const std::scoped_lock lock(ended.mutex);
    const bool alone = mine.first && ended.writes == 1 && ended.version == mine.version;
    for (; each != items_.end() && each->stripe == mine.stripe; ++each) {
      if (!success) continue;
      if (alone && !each->twice) in_.follow(*each->what, begun_, now, mine.highest);
      else in_.memory_.erase(place(*each->what), each->what->key);
    }
    --ended.writes;
  }
}

void tier_front::follow(const entry& e, timestamp begun, timestamp ended, timestamp highest) noexcept {
  if (e.expire_on < ended || e.as_of > begun) {
    memory_.erase(place(e), e.key);
    return;
  }
  const auto shown = memory_.version(place(e), e.key);
  if (shown && *shown > e.as_of) {
    // The durable store keeps the newer one, unless it does not believe its stamp.
    if (*shown > begun) memory_.erase(place(e), e.key);
    return;
  }
  if (!shown && e.as_of <= highest) return;
  const microseconds freshness(freshness_);
  const bool fresh = e.as_of >= ended - freshness;
  show(e, fresh ? steady() - (ended - e.as_of).count() : never);
}

tier_front::erase::erase(tier_front& in, place where, std::string_view key)
    : in_(in), where_(where), key_(key), stripe_(stripe_of(where, key)) {
  stripe& begun = in_.stripes_[stripe_];
  const std::scoped_lock lock(begun.mutex);
  ++begun.writes;
  ++begun.version;
  in_.memory_.note(where_, key_, never);
}

tier_front::erase::~erase() {
  stripe& ended = in_.stripes_[stripe_];
  const std::scoped_lock lock(ended.mutex);
  if (done_) in_.memory_.erase(where_, key_);
  --ended.writes;
}

tier_front::expiry::expiry(tier_front& in, timestamp before) : in_(in), before_(before) {
  for (stripe& each : in_.stripes_) {
    const std::scoped_lock lock(each.mutex);
    ++each.writes;
    ++each.version;
  }
}

tier_front::expiry::~expiry() {
  // As long as every stripe has a write under way, nobody brings anything to the front.
  in_.memory_.expire(before_, std::numeric_limits<std::size_t>::max());
  for (stripe& each : in_.stripes_) {
    const std::scoped_lock lock(each.mutex);
    --each.writes;
  }
}

}  // namespace HOLDFAST_NAMESPACE
