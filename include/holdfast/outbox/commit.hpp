#pragma once

/// \file
/// A small transaction on Redis: writes to keys of the application and new events, all or nothing.

#include <holdfast/outbox/operations.hpp>

#include <string_view>

namespace HOLDFAST_NAMESPACE {

/// A condition of a commit. If one does not hold, the commit changes nothing. Keys come from
/// `outbox::key_of`, so that they are in the hash slot of the lane.
struct commit_condition {
  enum class kind : std::uint8_t {
    exists,   ///< the key exists
    absent,   ///< the key does not exist
    equals,   ///< the string, or `field` of the hash, equals `value`
    missing,  ///< the hash does not have `field`, or does not exist
  };
  kind test = kind::exists;
  std::string key{};
  std::string field{};
  std::string value{};
};
/// The name of the enumerator, for example `exists`. Does not change between versions.
[[nodiscard]] HOLDFAST_API std::string_view to_string(commit_condition::kind kind) noexcept;

/// A write of a commit. If a key holds a value of another type, the whole commit is refused.
struct commit_write {
  enum class kind : std::uint8_t {
    set,          ///< sets a string to `value`
    erase,        ///< deletes the key
    set_field,    ///< sets `field` of a hash to `value`
    erase_field,  ///< deletes `field` of a hash
    add,          ///< adds `number` to a string that is an integer
    add_to_field  ///< adds `number` to `field` of a hash
  };
  kind action = kind::set;
  std::string key{};
  std::string field{};
  std::string value{};
  std::int64_t number = 0;
};
/// The name of the enumerator, for example `set`. Does not change between versions.
[[nodiscard]] HOLDFAST_API std::string_view to_string(commit_write::kind kind) noexcept;

/// One atomic step. It writes and publishes if the effect `once` was not applied before, all
/// conditions hold, and the claim of `fence` is still held.
struct commit_request {
  std::vector<commit_condition> conditions{};
  std::vector<commit_write> writes{};
  /// Events to publish. Their keys must belong to the same lane.
  std::vector<event> events{};
  /// Id of the event whose effect this is. If set, the effect is applied at most once as long as
  /// the event exists, and for the dedup window after that.
  std::string once{};
  /// If not 0, the event `once` must be claimed with this fence at this moment.
  holdfast::fence fence = 0;
  /// Ordering key of the event `once`.
  std::string once_key{};
};

enum class commit_status : std::uint8_t {
  done,              ///< everything was written
  applied,           ///< `once` was applied before; nothing was changed
  condition_failed,  ///< condition number `failed` does not hold; nothing was changed
  stale              ///< the claim was lost; nothing was changed
};
[[nodiscard]] HOLDFAST_API std::string_view to_string(commit_status status) noexcept;

struct committed {
  commit_status status = commit_status::done;
  /// Index of the condition that does not hold.
  std::size_t failed = 0;
  /// One for each event of the request.
  std::vector<receipt> receipts{};
};

}  // namespace HOLDFAST_NAMESPACE
