#include "redis/pipeline.hpp"

#include <holdfast/key/redis.hpp>

#include "base/backoff.hpp"
#include "redis/server_error.hpp"

#include <algorithm>
#include <utility>

namespace HOLDFAST_NAMESPACE::detail::redis {

namespace {

std::string path_of(std::size_t command_index) {
  return "commands[" + std::to_string(command_index) + "]";
}

std::string quoted(std::string_view key) {
  constexpr std::size_t max_shown = 60;
  return key.size() <= max_shown ? "'" + std::string(key) + "'"
                                 : "'" + std::string(key.substr(0, max_shown)) + "...'";
}

/// Returns the slot of all keys of a command. Throws if they are in different slots.
std::optional<std::uint16_t> slot_of(const command& keyed, std::size_t index) {
  if (keyed.keys() == 0) return std::nullopt;
  const auto slot = key::redis_slot(keyed.key_at(0));
  for (std::size_t i = 1; i < keyed.keys(); ++i) {
    const auto other = key::redis_slot(keyed.key_at(i));
    if (other == slot) continue;
    throw error(errc::invalid_argument,
                "the keys " + quoted(keyed.key_at(0)) + " (slot " + std::to_string(slot) +
                    ") and " + quoted(keyed.key_at(i)) + " (slot " + std::to_string(other) +
                    ") are in different slots of the Cluster; give them the same hash tag, like "
                    "{a}:b and {a}:c",
                {.path = path_of(index)});
  }
  return slot;
}

error with_doubt(const error& problem, bool in_doubt) {
  return {
      problem.code(),
      in_doubt ? problem.message() + "; the command was sent and may have run" : problem.message(),
      {.path = problem.path(),
       .backend_code = problem.backend_code(),
       .transient = problem.transient(),
       .in_doubt = in_doubt}};
}

/// 10 ms after the first failed attempt, doubled with each further one, at most 250 ms.
std::chrono::microseconds pause_after(std::size_t failed_attempts) {
  constexpr std::chrono::microseconds first = std::chrono::milliseconds(10);
  constexpr std::chrono::microseconds longest = std::chrono::milliseconds(250);
  return doubled_pause(first, static_cast<unsigned>(std::max<std::size_t>(failed_attempts, 1) - 1),
                       longest);
}

}  // namespace

pipeline::pipeline(std::span<const command> commands, pipeline_rules rules)
    : rules_(std::move(rules)), replies_(commands.size()) {
  requests_.reserve(commands.size());
  waiting_.reserve(commands.size());
  for (std::size_t i = 0; i < commands.size(); ++i) {
    if (commands[i].is_after_previous()) {
      if (requests_.empty())
        throw error(errc::invalid_argument,
                    "an after_previous() command cannot be the first one; add the command that it "
                    "follows",
                    {.path = path_of(i)});
      if (commands[i].keys() != 0 || commands[i].is_script())
        throw error(errc::invalid_argument,
                    "only commands without keys, like WAIT, can be after_previous()",
                    {.path = path_of(i)});
      request& previous = requests_.back();
      previous.commands = {previous.commands.data(), previous.commands.size() + 1};
      previous.replies = {previous.replies.data(), previous.replies.size() + 1};
      continue;
    }
    request& added = requests_.emplace_back();
    added.commands = commands.subspan(i, 1);
    added.replies = std::span(replies_).subspan(i, 1);
    added.node = rules_.node;
    if (rules_.cluster) added.slot = slot_of(commands[i], i);
    waiting_.push_back(&added);
  }
}

/// Settles the commands of a request from `first` on with an error.
void pipeline::fail(request& failed, std::size_t first, const error& problem, bool in_doubt) {
  const reply answer(with_doubt(problem, in_doubt));  // `problem` may refer to one of the replies
  for (std::size_t i = first; i < failed.commands.size(); ++i) {
    failed.replies[i] = answer;
    if (in_doubt) ++counts_.in_doubt;
  }
}

/// Sends the request again in the next round, or settles it if it has no attempts left.
void pipeline::retry(request& failed, const error& problem, bool pause) {
  failed.last_problem = problem;
  if (++failed.failed_attempts < rules_.attempts) {
    if (pause) round_.pause = std::max(round_.pause, pause_after(failed.failed_attempts));
    failed.received = 0;
    retries_.push_back(&failed);
    return;
  }
  const bool unstable_cluster = rules_.cluster && failed.failed_attempts >= 3;
  fail(failed, 0,
       unstable_cluster
           ? error(problem.code(),
                   "the Cluster did not settle within " + std::to_string(failed.failed_attempts) +
                       " attempts; last: " + problem.message(),
                   {.backend_code = problem.backend_code(), .transient = problem.transient()})
           : problem,
       failed.in_doubt);
}

/// Sends the request again if its first reply demands that: a redirect, an unknown script, or a
/// server that is not ready. Returns false if the reply is the answer.
bool pipeline::follow_reply(request& completed, std::string_view node) {
  using kind = reply_action::kind;
  reply_action next = action_for(completed.replies.front(), node);
  const bool redirected = next.action == kind::moved || next.action == kind::ask;
  if (next.action == kind::accept) return false;
  if (redirected && (!rules_.cluster || !rules_.node.empty())) return false;
  // Only EVALSHA can fail because the server does not know a script.
  if (next.action == kind::send_script &&
      (completed.with_script_text || !completed.commands.front().is_script()))
    return false;

  const error problem = completed.replies.front().problem();
  if (std::exchange(completed.asking, false)) completed.node = rules_.node;
  // Nodes that disagree about a slot redirect again and again. From the third redirect on they get
  // time to agree.
  const bool pause_redirect = completed.failed_attempts > 1;
  switch (next.action) {
    case kind::moved:
      ++counts_.moved;
      round_.refresh = true;
      round_.moved.push_back({next.slot, std::move(next.address)});
      retry(completed, problem, pause_redirect);
      break;
    case kind::ask:
      ++counts_.asked;
      completed.asking = true;
      completed.node = rules_.translate ? rules_.translate(next.address) : std::move(next.address);
      retry(completed, problem, pause_redirect);
      break;
    case kind::send_script:
      // Does not count as an attempt: with its text the script cannot be unknown again.
      completed.with_script_text = true;
      completed.last_problem = problem;
      completed.received = 0;
      retries_.push_back(&completed);
      break;
    default:
      ++counts_.retried;
      round_.refresh = round_.refresh || rules_.cluster;
      retry(completed, problem, true);
  }
  return true;
}

/// An error in reply to a second attempt says nothing about the first one, whose reply was lost. A
/// transient error that the command itself may have raised does not say that it changed nothing.
void pipeline::mark_in_doubt(request& completed) {
  reply& first = completed.replies.front();
  if (!first.is_error()) return;
  const error& problem = first.problem();
  const bool unproven =
      problem.transient() && !changed_nothing(problem, completed.commands.front().runs_script());
  if (!completed.in_doubt && !unproven) return;
  first = reply(with_doubt(first.problem(), true));
  ++counts_.in_doubt;
}

void pipeline::answered(request& completed, std::string_view node) {
  if (!follow_reply(completed, node)) mark_in_doubt(completed);
}

void pipeline::interrupted(request& failed, bool sent, const error& problem,
                           std::string_view node) {
  if (failed.received > 0) {
    // The command itself was answered. Only replies to the commands that follow it were lost.
    if (follow_reply(failed, node)) return;
    mark_in_doubt(failed);
    fail(failed, failed.received, problem, sent);
    return;
  }
  if (std::exchange(failed.asking, false)) failed.node = rules_.node;
  if (!sent && !problem.transient()) {
    fail(failed, 0, problem, failed.in_doubt);
    return;
  }
  round_.refresh = round_.refresh || rules_.cluster;
  if (!sent) {
    ++counts_.retried;
    retry(failed, problem, true);
    return;
  }
  // A problem that is not transient is a reply that cannot be read. A second one would be the same.
  if (!failed.commands.front().is_idempotent() || !problem.transient()) {
    fail(failed, 0, problem, true);
    return;
  }
  ++counts_.resent;
  failed.in_doubt = true;
  retry(failed, problem, true);
}

pipeline::round pipeline::next_round() {
  std::sort(retries_.begin(), retries_.end());  // the order of the commands
  waiting_ = std::exchange(retries_, {});
  return std::exchange(round_, {});
}

void pipeline::give_up(const error& problem) {
  for (request* abandoned : take_waiting()) {
    const auto& last = abandoned->last_problem;
    const error final_problem(
        problem.code(), last ? problem.message() + "; last: " + last->message() : problem.message(),
        {.backend_code = last ? last->backend_code() : "", .transient = problem.transient()});
    fail(*abandoned, 0, final_problem, abandoned->in_doubt);
  }
}

}  // namespace HOLDFAST_NAMESPACE::detail::redis
