// The names of the enumerations of the outbox. A value that is not in its
// enumeration is "unknown".

#include <holdfast/outbox/commit.hpp>
#include <holdfast/outbox/event.hpp>
#include <holdfast/outbox/operations.hpp>
#include <holdfast/outbox/outcome.hpp>
#include <holdfast/outbox/recurring.hpp>

#include <string_view>

namespace HOLDFAST_NAMESPACE {

std::string_view to_string(durability::kind level) noexcept {
  switch (level) {
    using enum durability::kind;
    case memory:
      return "memory";
    case aof:
      return "aof";
    case replicated:
      return "replicated";
    case fsynced:
      return "fsynced";
    case durability::kind::always:
      return "always";
  }
  return "unknown";
}

std::string_view to_string(publish_status status) noexcept {
  switch (status) {
    using enum publish_status;
    case added:
      return "added";
    case duplicate:
      return "duplicate";
    case in_doubt:
      return "in_doubt";
    case refused:
      return "refused";
  }
  return "unknown";
}

std::string_view to_string(park_policy policy) noexcept {
  switch (policy) {
    using enum park_policy;
    case skip:
      return "skip";
    case block:
      return "block";
    case park:
      return "park";
  }
  return "unknown";
}

std::string_view to_string(cancel_status status) noexcept {
  switch (status) {
    using enum cancel_status;
    case cancelled:
      return "cancelled";
    case fired:
      return "fired";
    case unknown:
      return "unknown";
  }
  return "unknown";
}

std::string_view to_string(overlap_policy policy) noexcept {
  switch (policy) {
    case overlap_policy::queue:
      return "queue";
    case overlap_policy::skip:
      return "skip";
  }
  return "unknown";
}

std::string_view to_string(catch_up_policy policy) noexcept {
  switch (policy) {
    case catch_up_policy::none:
      return "none";
    case catch_up_policy::last:
      return "last";
    case catch_up_policy::all:
      return "all";
  }
  return "unknown";
}

std::string_view to_string(recur_status status) noexcept {
  switch (status) {
    using enum recur_status;
    case added:
      return "added";
    case unchanged:
      return "unchanged";
    case changed:
      return "changed";
  }
  return "unknown";
}

std::string_view to_string(event_state state) noexcept {
  switch (state) {
    using enum event_state;
    case due:
      return "due";
    case waiting:
      return "waiting";
    case claimed:
      return "claimed";
    case following:
      return "following";
    case parked:
      return "parked";
    case blocking:
      return "blocking";
    case stuck:
      return "stuck";
  }
  return "unknown";
}

std::string_view to_string(commit_status status) noexcept {
  switch (status) {
    using enum commit_status;
    case done:
      return "done";
    case applied:
      return "applied";
    case condition_failed:
      return "condition_failed";
    case stale:
      return "stale";
  }
  return "unknown";
}

std::string_view to_string(outcome::kind kind) noexcept {
  switch (kind) {
    using enum outcome::kind;
    case done:
      return "done";
    case retry:
      return "retry";
    case throttled:
      return "throttled";
    case ambiguous:
      return "ambiguous";
    case permanent:
      return "permanent";
  }
  return "unknown";
}

std::string_view to_string(commit_condition::kind kind) noexcept {
  switch (kind) {
    case commit_condition::kind::exists:
      return "exists";
    case commit_condition::kind::absent:
      return "absent";
    case commit_condition::kind::equals:
      return "equals";
    case commit_condition::kind::missing:
      return "missing";
  }
  return "unknown";
}

std::string_view to_string(commit_write::kind kind) noexcept {
  switch (kind) {
    case commit_write::kind::set:
      return "set";
    case commit_write::kind::erase:
      return "erase";
    case commit_write::kind::set_field:
      return "set_field";
    case commit_write::kind::erase_field:
      return "erase_field";
    case commit_write::kind::add:
      return "add";
    case commit_write::kind::add_to_field:
      return "add_to_field";
  }
  return "unknown";
}

std::string_view to_string(claim_status status) noexcept {
  switch (status) {
    case claim_status::some:
      return "some";
    case claim_status::empty:
      return "empty";
    case claim_status::paused:
      return "paused";
    case claim_status::fenced:
      return "fenced";
  }
  return "unknown";
}

std::string_view to_string(settlement::kind kind) noexcept {
  switch (kind) {
    case settlement::kind::ack:
      return "ack";
    case settlement::kind::retry:
      return "retry";
    case settlement::kind::park:
      return "park";
    case settlement::kind::release:
      return "release";
  }
  return "unknown";
}

std::string_view to_string(scan_what selection) noexcept {
  switch (selection) {
    case scan_what::all:
      return "all";
    case scan_what::parked:
      return "parked";
    case scan_what::tickets:
      return "tickets";
  }
  return "unknown";
}

std::string_view to_string(recurrence_query::kind kind) noexcept {
  switch (kind) {
    case recurrence_query::kind::name:
      return "name";
    case recurrence_query::kind::due:
      return "due";
    case recurrence_query::kind::all:
      return "all";
  }
  return "unknown";
}

std::string_view to_string(update_status status) noexcept {
  switch (status) {
    case update_status::done:
      return "done";
    case update_status::conflict:
      return "conflict";
    case update_status::busy:
      return "busy";
  }
  return "unknown";
}

}  // namespace HOLDFAST_NAMESPACE
