#include "redis/delivery.hpp"

#include <holdfast/key/redis.hpp>

#include "redis/server_error.hpp"

#include <algorithm>
#include <utility>

namespace HOLDFAST_NAMESPACE::redis {

namespace {

std::string shown(std::string_view key) {
  constexpr std::size_t most = 60;
  return key.size() <= most ? "'" + std::string(key) + "'" : "'" + std::string(key.substr(0, most)) + "...'";
}

/// All keys of a command are in one slot, or none of it is sent.
std::optional<std::uint16_t> slot_of(const command& what, std::size_t index) {
  if (what.keys() == 0) return std::nullopt;
  const auto slot = key::redis_slot(what.key_at(0));
  for (std::size_t i = 1; i < what.keys(); ++i) {
    const auto other = key::redis_slot(what.key_at(i));
    if (other == slot) continue;
    throw error(errc::invalid_argument,
                "the keys " + shown(what.key_at(0)) + " (slot " + std::to_string(slot) + ") and " + shown(what.key_at(i)) + " (slot " +
                    std::to_string(other) + ") are in different slots of the Cluster; give them one hash tag, like {a}:b and {a}:c",
                {.path = "commands[" + std::to_string(index) + "]"});
  }
  return slot;
}

error marked(const error& why, bool in_doubt) {
  return {why.code(),
          in_doubt ? why.message() + "; the command was sent and may have run" : why.message(),
          {.path = why.path(), .backend_code = why.backend_code(), .transient = why.transient(), .in_doubt = in_doubt}};
}

/// 10 ms, doubled with each try, at most 250.
std::chrono::microseconds pause_after(std::size_t tries) {
  constexpr auto first = std::chrono::milliseconds(10);
  constexpr auto longest = std::chrono::milliseconds(250);
  return tries > 5 ? longest : std::min<std::chrono::milliseconds>(longest, first * (1 << (tries == 0 ? 0 : tries - 1)));
}

}  // namespace

delivery::delivery(std::span<const command> commands, delivery_rules rules)
    : commands_(commands), rules_(std::move(rules)), replies_(commands.size()) {
  chains_.reserve(commands.size());
  waiting_.reserve(commands.size());
  for (std::size_t i = 0; i < commands.size(); ++i) {
    const command& each = commands[i];
    if (each.is_after_previous()) {
      const std::string path = "commands[" + std::to_string(i) + "]";
      if (chains_.empty()) throw error(errc::invalid_argument, "it shall follow the command before it, and there is none", {.path = path});
      if (each.keys() != 0 || each.is_script())
        throw error(errc::invalid_argument, "only commands without keys, like WAIT, can follow another one", {.path = path});
      ++chains_.back().count;
      continue;
    }
    waiting_.push_back(chains_.size());
    chain& made = chains_.emplace_back();
    made.first = i;
    if (rules_.cluster) made.slot = slot_of(each, i);
    if (!rules_.fixed_node.empty()) made.target = rules_.fixed_node;
  }
}

bool delivery::may_resend(const chain& c) const noexcept { return commands_[c.first].is_idempotent(); }

void delivery::fail(const chain& c, std::size_t from, const error& why, bool in_doubt) {
  const error told = marked(why, in_doubt);
  for (std::size_t i = from; i < c.count; ++i) {
    replies_[c.first + i] = reply(told);
    if (in_doubt) ++counts_.in_doubt;
  }
}

/// Another try, unless there were enough.
void delivery::again(std::size_t index, const error& why, bool refresh, bool pause) {
  chain& c = chains_[index];
  c.last = why;
  learned_.refresh = learned_.refresh || refresh;
  if (++c.tries >= rules_.attempts) {
    const bool settled = !rules_.cluster || c.tries < 3;
    fail(c, 0,
         settled ? why
                 : error(why.code(), "the Cluster did not settle within " + std::to_string(c.tries) + " tries; last: " + why.message(),
                         {.backend_code = why.backend_code(), .transient = why.transient()}),
         c.doubtful);
    return;
  }
  if (pause) learned_.pause = std::max(learned_.pause, pause_after(c.tries));
  next_.push_back(index);
}

/// Goes where the reply points; false when it is the answer.
bool delivery::follow(std::size_t index, const reply& first, std::string_view asked) {
  chain& c = chains_[index];
  const bool fixed = !rules_.fixed_node.empty();
  verdict found = judge(first, asked);
  // Only EVALSHA can meet a server that does not know the script.
  if (found.what == verdict::kind::no_script && (c.whole || !commands_[c.first].is_script())) return false;
  if ((fixed || !rules_.cluster) && (found.what == verdict::kind::moved || found.what == verdict::kind::ask)) return false;
  if (found.what == verdict::kind::take) return false;

  const bool was_asking = std::exchange(c.asking, false);
  if (was_asking) c.target = rules_.fixed_node;
  switch (found.what) {
    case verdict::kind::moved:
      ++counts_.moved;
      learned_.moved.push_back({found.slot, std::move(found.address)});
      again(index, first.problem(), true, c.tries > 1);  // nodes that disagree get time to agree
      return true;
    case verdict::kind::ask:
      ++counts_.asked;
      c.asking = true;
      c.target = rules_.translate ? rules_.translate(found.address) : std::move(found.address);
      again(index, first.problem(), false, c.tries > 1);
      return true;
    case verdict::kind::no_script:
      // Not an attempt: with its text it cannot happen again.
      c.whole = true;
      c.last = first.problem();
      next_.push_back(index);
      return true;
    default:
      ++counts_.retried;
      again(index, first.problem(), rules_.cluster, true);
      return true;
  }
}

/// They are the answer. A refusal of a second try says nothing about the first, whose reply was lost.
void delivery::keep(const chain& c, std::span<reply> replies) {
  if (c.doubtful && replies.front().is_error()) {
    replies.front() = reply(marked(replies.front().problem(), true));
    ++counts_.in_doubt;
  }
  std::move(replies.begin(), replies.end(), replies_.begin() + static_cast<std::ptrdiff_t>(c.first));
}

void delivery::answered(std::size_t index, std::span<reply> replies, std::string_view asked) {
  const chain& c = chains_[index];
  if (!follow(index, replies.front(), asked)) keep(c, replies);
}

void delivery::interrupted(std::size_t index, std::span<reply> got, bool sent, const error& why, std::string_view asked) {
  chain& c = chains_[index];
  if (!got.empty()) {
    // The command itself was answered; only what follows it was lost.
    if (follow(index, got.front(), asked)) return;
    keep(c, got);
    fail(c, got.size(), why, sent);
    return;
  }
  if (std::exchange(c.asking, false)) c.target = rules_.fixed_node;
  if (sent) {
    // What cannot pass is in the reply itself: asking again would bring it again.
    if (!may_resend(c) || !why.transient()) {
      fail(c, 0, why, true);
      learned_.refresh = learned_.refresh || rules_.cluster;
      return;
    }
    ++counts_.resent;
    c.doubtful = true;
    again(index, why, rules_.cluster, true);
    return;
  }
  if (!why.transient()) {
    fail(c, 0, why, c.doubtful);
    return;
  }
  ++counts_.retried;
  again(index, why, rules_.cluster, true);
}

delivery::next_round delivery::end_round() {
  std::sort(next_.begin(), next_.end());
  waiting_ = std::exchange(next_, {});
  return std::exchange(learned_, {});
}

void delivery::give_up(const error& why) {
  for (const auto index : waiting_) {
    const chain& c = chains_[index];
    const std::string seen = c.last ? why.message() + "; last: " + c.last->message() : why.message();
    fail(c, 0, error(why.code(), seen, {.backend_code = c.last ? c.last->backend_code() : "", .transient = why.transient()}), c.doubtful);
  }
  waiting_.clear();
}

}  // namespace HOLDFAST_NAMESPACE::redis
