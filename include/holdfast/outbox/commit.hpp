#pragma once

/// \file
/// Redis keys and events that change together or not at all.

#include <holdfast/outbox/operations.hpp>

namespace HOLDFAST_NAMESPACE {

/// Has to hold, or nothing is done. Keys must begin with the prefix of the lane (`outbox::key_of`), so that they are in its slot.
struct commit_condition {
  enum class kind : std::uint8_t {
    exists,   ///< the key exists
    absent,   ///< it does not
    equals,   ///< the string there is `value`; with a `field`, the field of the hash there
    missing,  ///< the hash there (or nothing) has no such `field`
  };
  kind what = kind::exists;
  std::string key{};
  std::string field{};
  std::string value{};
};

/// What is written when all conditions hold. A key that holds something else is refused before anything is written.
struct commit_write {
  enum class kind : std::uint8_t {
    set,        ///< a string becomes `value`
    erase,      ///< the key is gone
    set_field,  ///< the field of a hash becomes `value`
    erase_field,
    add,          ///< a string that is a whole number grows by `number`
    add_to_field  ///< the same for the field of a hash
  };
  kind what = kind::set;
  std::string key{};
  std::string field{};
  std::string value{};
  std::int64_t number = 0;
};

/// One atomic step: if this effect was not applied before, and all conditions hold, and the claim is still held, then write and publish.
struct commit_request {
  std::vector<commit_condition> conditions{};
  std::vector<commit_write> writes{};
  std::vector<event> events{};  ///< their keys must belong to the lane
  /// Not empty: the effect of this event (its id) is applied at most once within the dedup window, whoever tries.
  std::string once{};
  /// Not 0: `once` has to be claimed with this fence, now.
  holdfast::fence fence = 0;
  std::string once_key{};  ///< the key of that event
};

enum class commit_status : std::uint8_t {
  done,
  applied,           ///< `once` was applied before: nothing is done, and nothing needs to be
  condition_failed,  ///< `failed` says which; nothing is done
  stale              ///< the claim was lost; nothing is done
};
[[nodiscard]] HOLDFAST_API std::string_view to_string(commit_status status) noexcept;

struct committed {
  commit_status status = commit_status::done;
  std::size_t failed = 0;           ///< the index of the condition that did not hold
  std::vector<receipt> receipts{};  ///< of the events
};

}  // namespace HOLDFAST_NAMESPACE
