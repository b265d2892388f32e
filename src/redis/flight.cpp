#include "redis/flight.hpp"

#include <algorithm>
#include <optional>
#include <span>

namespace HOLDFAST_NAMESPACE::redis {

void flight::add(std::size_t index) {
  const chain& c = of_->at(index);
  if (c.asking) {
    bytes_ += "*1\r\n$6\r\nASKING\r\n";
    ends_.push_back(bytes_.size());
  }
  passengers_.push_back({.chain = index, .first = ends_.size()});
  for (std::size_t i = 0; i < c.count; ++i) {
    const command& each = of_->commands()[c.first + i];
    // The first time a script goes over a connection it goes whole: that is one round trip less than being told that it is not known.
    const bool whole = each.is_script() && (scripts_->learn(each.script_sha1()) || c.whole);
    if (whole) ++whole_scripts_;
    each.write(bytes_, whole);
    ends_.push_back(bytes_.size());
  }
}

bool flight::take(reply what) {
  if (complete()) return false;
  if (replies_.empty()) replies_.reserve(ends_.size());
  replies_.push_back(std::move(what));
  return true;
}

bool flight::met_replica() const noexcept {
  return std::any_of(replies_.begin(), replies_.end(), [](const reply& each) {
    if (!each.is_error()) return false;
    const auto& word = each.problem().backend_code();
    return word == "READONLY" || word == "UNBLOCKED" || word == "MASTERDOWN";
  });
}

void flight::land(const error* why) {
  // A reply that cannot be read (too large, too deep) is the fault of its own command; those behind it only lost their connection.
  std::optional<error> behind;
  for (const auto& each : passengers_) {
    const chain& c = of_->at(each.chain);
    const std::size_t got = replies_.size() <= each.first ? 0 : std::min(c.count, replies_.size() - each.first);
    const std::span<reply> mine = got == 0 ? std::span<reply>() : std::span(replies_).subspan(each.first, got);
    const command& first = of_->commands()[c.first];
    if (got > 0 && first.is_script() && mine.front().is_error() && mine.front().problem().backend_code() == "NOSCRIPT")
      scripts_->forget(first.script_sha1());
    if (got == c.count) {
      of_->answered(each.chain, mine, node_);
      continue;
    }
    of_->interrupted(each.chain, mine, why != nullptr && sent_ >= ends_[each.first + got], behind ? *behind : *why, node_);
    if (!behind && !why->transient() && sent_ > 0)
      behind.emplace(errc::unavailable, "the connection to Redis at " + node_ + " was closed: a reply before could not be read",
                     error::details{.transient = true});
  }
}

}  // namespace HOLDFAST_NAMESPACE::redis
