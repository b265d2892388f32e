#include "sequence/redis_block_store.hpp"

#include "sequence/redis_fitness.hpp"
#include "sequence/redis_scripts.hpp"

#include <algorithm>
#include <charconv>
#include <map>
#include <mutex>
#include <set>
#include <utility>

namespace HOLDFAST_NAMESPACE {

namespace {

using redis::command;
using redis::reply;

std::int64_t number(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failed != std::errc{} || end != text.data() + text.size() || value < 0)
    throw error(errc::malformed, "Redis says that a counter is '" + std::string(text) + "', which is none; look at its key");
  return value;
}

counter_state state_of(const reply& answer) {
  const auto& parts = answer.elements();
  return {.last = number(parts.at(0).text()), .epoch = number(parts.at(1).text())};
}

void check_prefix(std::string_view prefix) {
  const auto allowed = [](char c) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '.' || c == ':' || c == '-';
  };
  if (prefix.size() > 128 || !std::ranges::all_of(prefix, allowed))
    throw error(errc::invalid_argument, "the prefix of keys is at most 128 of the characters A-Z a-z 0-9 _ . : -", {.path = "prefix"});
}

class redis_block_store final : public block_store {
 public:
  explicit redis_block_store(redis_block_store_parts parts) : parts_(std::move(parts)) {
    check_prefix(parts_.prefix);
    check_sequence_fence(parts_.fence);
    key_begin_ = parts_.prefix + "holdfast:seq:{";
  }

  std::vector<block_grant> allocate(std::span<const block_request> requests) override {
    for (const auto& each : requests) check_block_request(each);
    if (requests.empty()) return {};
    const auto* super = std::get_if<super_blocks>(&parts_.fence);
    auto grants = super != nullptr ? from_super_blocks(*super, requests) : from_counters(requests);
    if (const auto alone = grants.front().problem; alone && grants.size() == 1) throw error(*alone);
    return grants;
  }

  std::optional<counter_state> peek(std::string_view name) override {
    check_sequence_name(name);
    const auto found = seen_of(client().call(look(name)));
    if (found) return found;
    const auto* super = std::get_if<super_blocks>(&parts_.fence);
    return super != nullptr ? super->from->peek(name) : std::nullopt;
  }

  counter_state ensure_at_least(std::string_view name, std::int64_t ordinal) override {
    check_sequence_name(name);
    ordinal = std::max<std::int64_t>(ordinal, 0);
    if (const auto* super = std::get_if<super_blocks>(&parts_.fence)) {
      const auto below = super->from->ensure_at_least(name, ordinal);
      return state_of(client().call(
          command(redis_scripts::raise_super_block()).key(key(name)).arg(ordinal).arg(below.last).arg(below.epoch).idempotent()));
    }
    std::vector<command> commands{command(redis_scripts::raise()).key(key(name)).arg(ordinal).idempotent()};
    const auto* wait = std::get_if<wait_fence>(&parts_.fence);
    if (wait != nullptr) commands.push_back(confirmation(*wait, wait->longest));
    const auto replies = client().pipeline(commands);
    const auto raised = state_of(replies.front().checked());
    if (wait != nullptr) {
      check_confirmed(
          *wait, replies.at(1),
          "within " + std::to_string(wait->longest.count()) + " ms that the counter was raised; a failover may forget it, so try again");
    }
    return raised;
  }

  bool reset(std::string_view name, std::int64_t ordinal, counter_state expected) override {
    check_sequence_name(name);
    const auto* super = std::get_if<super_blocks>(&parts_.fence);
    if (super == nullptr) return replace(name, expected, {.last = ordinal, .epoch = expected.epoch + 1}, false);
    // First what is here, so that nothing of it is granted any more, then what is below. Whatever fails in between costs only a gap.
    const auto below = super->from->peek(name);
    if (!below || below->epoch != expected.epoch) return false;
    if (!seen_of(client().call(look(name)))) return super->from->reset(name, ordinal, expected);
    const auto forgotten =
        client().call(command(redis_scripts::forget()).key(key(name)).arg(expected.last).arg(expected.epoch)).integer() == 1;
    return forgotten && super->from->reset(name, ordinal, *below);
  }

  bool give_back(std::string_view name, std::int64_t last_used, counter_state granted) override {
    check_sequence_name(name);
    if (!replace(name, granted, {.last = last_used, .epoch = granted.epoch}, true)) return false;
    const std::scoped_lock lock(mutex_);
    if (const auto found = seen_.find(name); found != seen_.end()) seen_.erase(found);
    return true;
  }

  std::vector<named_counter> list(std::size_t limit, std::string_view after) override {
    std::vector<named_counter> found;
    if (const auto* super = std::get_if<super_blocks>(&parts_.fence)) {
      found = super->from->list(limit, after);
    } else {
      for (const auto& name : names()) {
        if (found.size() == limit) break;
        if (name > after) found.push_back({.name = name});
      }
    }
    std::vector<command> questions;
    questions.reserve(found.size());
    for (const auto& each : found) questions.push_back(look(each.name));
    const auto replies = client().pipeline(questions);
    for (std::size_t i = 0; i < found.size(); ++i) {
      if (const auto state = seen_of(replies[i])) found[i].state = *state;
    }
    return found;
  }

  std::vector<std::string> unsafe_settings() override { return reasons_against(client(), parts_.fence); }

  std::shared_ptr<block_store> for_child() const override {
    if (!parts_.connect)
      throw error(errc::invalid_argument,
                  "this block store cannot be used after fork: its Redis client belongs to the parent; make a new one");
    auto parts = parts_;
    parts.client = parts.connect();
    if (auto* super = std::get_if<super_blocks>(&parts.fence)) super->from = super->from->for_child();
    return std::make_shared<redis_block_store>(std::move(parts));
  }

 private:
  [[nodiscard]] const redis::client& client() const noexcept { return *parts_.client; }
  [[nodiscard]] std::string key(std::string_view name) const { return std::string(key_begin_).append(name).append("}"); }
  [[nodiscard]] bool bound_to_server() const noexcept {
    return std::holds_alternative<super_blocks>(parts_.fence) || std::holds_alternative<clock_fence>(parts_.fence);
  }

  [[nodiscard]] command look(std::string_view name) const { return command(redis_scripts::peek()).key(key(name)).idempotent(); }

  /// What a look found; nothing when there is no counter, or one of super-blocks whose server is another by now.
  [[nodiscard]] std::optional<counter_state> seen_of(const reply& answer) const {
    if (answer.checked().is_nil()) return std::nullopt;
    if (std::holds_alternative<super_blocks>(parts_.fence) && answer.elements().at(2).integer() == 0) return std::nullopt;
    return state_of(answer);
  }

  /// Asking again after a lost reply does no harm here: the block that was granted is never used, and the next one is another.
  [[nodiscard]] command question(const block_request& wanted) const {
    if (const auto* clock = std::get_if<clock_fence>(&parts_.fence)) {
      if (wanted.cycle) throw error(errc::invalid_argument, "a sequence that begins again cannot follow the clock; choose another fence");
      return command(redis_scripts::allocate_by_clock())
          .key(key(wanted.name))
          .arg(wanted.count)
          .arg(wanted.limit)
          .arg(clock->rate)
          .arg(clock->origin.time_since_epoch().count())
          .arg(std::chrono::microseconds(clock->max_skew).count())
          .idempotent();
    }
    return command(redis_scripts::allocate())
        .key(key(wanted.name))
        .arg(wanted.count)
        .arg(wanted.limit)
        .arg(wanted.cycle ? 1 : 0)
        .idempotent();
  }

  [[nodiscard]] static command confirmation(const wait_fence& fence, std::chrono::milliseconds longest) {
    return fence.on_disk ? redis::wait_for_disk(1, fence.replicas, longest) : redis::wait_for_replicas(fence.replicas, longest);
  }

  /// They wait one after the other, so each has its part of the time; but what a way there and back may take, each has.
  [[nodiscard]] static std::chrono::milliseconds part_of(std::chrono::milliseconds longest, std::size_t requests) {
    constexpr std::chrono::milliseconds least{50};
    return std::max(longest / static_cast<std::int64_t>(requests), std::min(longest, least));
  }

  static void check_confirmed(const wait_fence& fence, const reply& answer, const std::string& what) {
    std::int64_t replicas = 0;
    bool here = true;
    if (fence.on_disk) {
      here = answer.checked().elements().at(0).integer() == 1;
      replicas = answer.elements().at(1).integer();
    } else {
      replicas = answer.checked().integer();
    }
    if (here && std::cmp_greater_equal(replicas, fence.replicas)) return;
    throw error(
        errc::unavailable,
        std::to_string(replicas) + " of " + std::to_string(fence.replicas) + " replicas confirmed " + what + " when they are connected",
        {.transient = true});
  }

  /// A node of a Cluster that is down concerns the sequences on it, and no other.
  template <class Action>
  [[nodiscard]] static block_grant outcome(Action action) {
    try {
      return action();
    } catch (const error& why) {
      block_grant none;
      none.problem = why;
      return none;
    }
  }

  [[nodiscard]] static block_grant grant_of(const reply& answer) {
    const auto& parts = answer.checked().elements();
    const auto& word = parts.at(0).text();
    if (word == "granted") {
      return {.block = sequence_block(number(parts.at(1).text()), number(parts.at(2).text())), .epoch = number(parts.at(3).text())};
    }
    if (word == "end") return {.epoch = number(parts.at(1).text())};
    if (word == "wait") {
      throw error(errc::unavailable,
                  "the counter waits for the clock (clock_fence); the next block can be granted in " +
                      std::to_string((number(parts.at(1).text()) + 999) / 1000) + " ms",
                  {.transient = true});
    }
    throw error(errc::malformed, "the script of the sequence answered '" + word + "'");
  }

  [[nodiscard]] std::vector<block_grant> from_counters(std::span<const block_request> requests) const {
    std::vector<command> commands;
    const auto* wait = std::get_if<wait_fence>(&parts_.fence);
    const auto longest = wait != nullptr ? part_of(wait->longest, requests.size()) : std::chrono::milliseconds{};
    for (const auto& each : requests) {
      commands.push_back(question(each));
      if (wait != nullptr) commands.push_back(confirmation(*wait, longest));
    }
    const auto replies = client().pipeline(commands);
    std::vector<block_grant> grants;
    for (std::size_t i = 0; i < requests.size(); ++i) {
      const std::size_t at = wait != nullptr ? 2 * i : i;
      grants.push_back(outcome([&] {
        auto granted = grant_of(replies.at(at));
        if (wait != nullptr)
          check_confirmed(*wait, replies.at(at + 1),
                          "a block within " + std::to_string(longest.count()) + " ms; it is abandoned, try again");
        return granted;
      }));
    }
    return grants;
  }

  /// A super-block that is to be brought to Redis.
  struct brought {
    std::int64_t first = 0, last = 0, epoch = 0;
  };

  [[nodiscard]] command question(const block_request& wanted, const std::optional<brought>& super) const {
    const auto seen = last_seen(wanted.name);
    auto made = command(redis_scripts::allocate_from_super_block())
                    .key(key(wanted.name))
                    .arg(wanted.count)
                    .arg(wanted.limit)
                    .arg(seen.last)
                    .arg(seen.epoch);
    // Once and never again: if its reply is lost a replica may take over that has not heard of it, and would grant the same ids.
    if (super) return std::move(made).arg(super->first).arg(super->last).arg(super->epoch);
    return std::move(made).arg("").arg("").arg("").idempotent();
  }

  /// One round trip, but for one in `size` ids, when large blocks are leased: all that are missing at once, by one thread of this process.
  [[nodiscard]] std::vector<block_grant> from_super_blocks(const super_blocks& fence, std::span<const block_request> requests) {
    constexpr int most_rounds = 16;  // other processes may be faster with their super-blocks, but not always
    std::vector<block_grant> grants(requests.size());
    std::vector<std::optional<brought>> supers(requests.size());
    std::vector<std::size_t> open(requests.size());
    for (std::size_t i = 0; i < open.size(); ++i) open[i] = i;
    std::unique_lock leasing(leasing_, std::defer_lock);
    for (int round = 0; round < most_rounds && !open.empty(); ++round) {
      auto empty = ask(requests, open, supers, grants);
      if (empty.empty()) return grants;
      // Another thread may have brought one while this one waited: ask once more before leasing.
      if (leasing.owns_lock()) lease(fence, requests, empty, supers, grants);
      else leasing.lock();
      open = std::move(empty);
    }
    for (const auto i : open)
      grants[i].problem = error(errc::unavailable, "no super-block could be brought to Redis; others were always faster, so try again",
                                {.transient = true});
    return grants;
  }

  /// Asks for those that are open; returns those for which Redis has too little.
  [[nodiscard]] std::vector<std::size_t> ask(std::span<const block_request> requests, const std::vector<std::size_t>& open,
                                             const std::vector<std::optional<brought>>& supers, std::vector<block_grant>& grants) {
    std::vector<command> commands;
    commands.reserve(open.size());
    for (const auto i : open) commands.push_back(question(requests[i], supers[i]));
    const auto replies = client().pipeline(commands);
    std::vector<std::size_t> empty;
    for (std::size_t at = 0; at < open.size(); ++at) {
      if (!replies[at].is_error() && replies[at].elements().at(0).text() == "refill") {
        empty.push_back(open[at]);
        continue;
      }
      auto& granted = grants[open[at]];
      granted = outcome([&] { return grant_of(replies[at]); });
      if (!granted.problem) remember(requests[open[at]].name, {.last = granted.block.last(), .epoch = granted.epoch});
    }
    return empty;
  }

  /// Leases super-blocks for those that have none, and takes out of `empty` those that have come to their end.
  static void lease(const super_blocks& fence, std::span<const block_request> requests, std::vector<std::size_t>& empty,
                    std::vector<std::optional<brought>>& supers, std::vector<block_grant>& grants) {
    if (empty.empty()) return;
    std::vector<block_request> wanted;
    wanted.reserve(empty.size());
    for (const auto i : empty) {
      wanted.push_back(requests[i]);
      wanted.back().count = std::max(fence.size, wanted.back().count);
    }
    std::vector<block_grant> leased;
    try {
      leased = fence.from->allocate(wanted);
    } catch (const error& why) {  // those that need none have theirs
      for (const auto i : empty) grants[i].problem = why;
      empty.clear();
      return;
    }
    std::vector<std::size_t> still;
    for (std::size_t at = 0; at < empty.size(); ++at) {
      const auto& one = leased.at(at);
      if (one.problem) {
        grants[empty[at]].problem = one.problem;
        continue;
      }
      auto epoch = one.epoch;
      try {
        if (epoch == 0) epoch = fence.from->peek(wanted[at].name).value_or(counter_state{}).epoch;
      } catch (const error& why) {
        grants[empty[at]].problem = why;
        continue;
      }
      if (!one.block.has_next()) {
        grants[empty[at]] = {.epoch = epoch};
        continue;
      }
      supers[empty[at]] = brought{.first = one.block.first(), .last = one.block.last(), .epoch = epoch};
      still.push_back(empty[at]);
    }
    empty = std::move(still);
  }

  [[nodiscard]] bool replace(std::string_view name, counter_state expected, counter_state by, bool only_here) const {
    return client()
               .call(command(redis_scripts::replace())
                         .key(key(name))
                         .arg(expected.last)
                         .arg(expected.epoch)
                         .arg(by.last)
                         .arg(by.epoch)
                         .arg(only_here && bound_to_server() ? 1 : 0))
               .integer() == 1;
  }

  /// Every name that has a counter, in order.
  [[nodiscard]] std::set<std::string, std::less<>> names() const {
    std::set<std::string, std::less<>> found;
    for (const auto& node : client().nodes()) {
      if (!node.master) continue;
      std::string cursor = "0";
      do {
        const auto page = client()
                              .call(command("SCAN").arg(cursor).arg("MATCH").arg(key_begin_ + "*}").arg("COUNT").arg(1000).idempotent(),
                                    {.node = node.address})
                              .elements();
        for (const auto& each : page.at(1).elements()) {
          const auto& whole = each.text();
          found.insert(whole.substr(key_begin_.size(), whole.size() - key_begin_.size() - 1));
        }
        cursor = page.at(0).text();
      } while (cursor != "0");
    }
    return found;
  }

  /// What this process was granted last: after a failover Redis may know less.
  [[nodiscard]] counter_state last_seen(std::string_view name) const {
    const std::scoped_lock lock(mutex_);
    const auto found = seen_.find(name);
    return found == seen_.end() ? counter_state{.last = 0, .epoch = 0} : found->second;
  }
  void remember(std::string_view name, counter_state granted) {
    const std::scoped_lock lock(mutex_);
    auto found = seen_.find(name);
    if (found == seen_.end()) found = seen_.emplace(std::string(name), counter_state{.last = 0, .epoch = 0}).first;
    if (granted.epoch > found->second.epoch || (granted.epoch == found->second.epoch && granted.last > found->second.last))
      found->second = granted;
  }

  redis_block_store_parts parts_;
  std::string key_begin_{};
  std::mutex leasing_{};        // who brings super-blocks
  mutable std::mutex mutex_{};  // what was seen
  std::map<std::string, counter_state, std::less<>> seen_{};
};

}  // namespace

void check_sequence_fence(const sequence_fence& fence) {
  const auto fail = [](const std::string& why) { throw error(errc::invalid_argument, why, {.path = "fence"}); };
  if (std::holds_alternative<std::monostate>(fence))
    fail(
        "a Redis can grant ids twice after a failover, so choose what is done about it: super_blocks (from an SQL database, no "
        "duplicates), "
        "clock_fence, wait_fence or no_fence; see docs/sequences.md");
  if (const auto* super = std::get_if<super_blocks>(&fence)) {
    if (!super->from) fail("super_blocks needs the block store from which they come");
    if (super->size < 1 || super->size > largest_block) fail("a super-block has 1 to 2147483648 ids");
  } else if (const auto* clock = std::get_if<clock_fence>(&fence)) {
    if (clock->rate < 1 || clock->rate > 1'000'000) fail("the rate of clock_fence is 1 to 1000000 ids a second");
    if (clock->max_skew.count() < 0 || clock->max_skew > std::chrono::hours(24)) fail("max_skew is 0 to 24 hours");
  } else if (const auto* wait = std::get_if<wait_fence>(&fence)) {
    if (wait->replicas == 0 && !wait->on_disk) fail("wait_fence waits for nobody; say how many replicas, or choose no_fence");
    if (wait->longest.count() < 1) fail("wait_fence needs time to wait; 0 would be for ever");
  }
}

std::shared_ptr<block_store> make_redis_block_store(redis_block_store_parts parts) {
  return std::make_shared<redis_block_store>(std::move(parts));
}

}  // namespace HOLDFAST_NAMESPACE
