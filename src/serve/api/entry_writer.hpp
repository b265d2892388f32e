#pragma once

/// \file
/// Writes entries and finds out what became of them. `store::put` keeps the newer of two versions,
/// but does not tell which one that was, so the entry is read again after the write:
///
///   the store has ...      the write was
///   this version           stored
///   a newer version        refused as older
///   an older one, or none  lost: other programs removed it meanwhile. It is written again.
///
/// Writes of one key are made one after the other, or a newer version that another caller writes
/// between the two steps would look like one that was there before. Other processes can still do
/// that: `older` then means that a newer version is there now.
///
/// A write that waits for its key uses a worker, but does not count as a call of the database: many
/// writes of one key must not keep those of other keys away.

#include <holdfast/store.hpp>
#include <holdfast/version.hpp>

#include "serve/api/call_limit.hpp"

#include <array>
#include <chrono>
#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

namespace HOLDFAST_NAMESPACE::detail::serve {

/// Thread-safety: may be called from any thread.
class entry_writer {
 public:
  /// Returns nothing if the entry was stored, or the as_of of the newer version. Waits for the
  /// store. `store_name` separates the locks of stores, so that one that hangs delays no other.
  /// `calls` limits the calls of the store. Throws as store::put and call_limit::begin, and
  /// - server_refusal, as errc::unavailable, if too many writes of this key wait, or if the entry
  /// is
  ///   removed again and again,
  /// - server_refusal, as errc::timeout, if other writes of this key take too long,
  /// - an error in doubt if the store fails after the write.
  [[nodiscard]] std::optional<timestamp> put(const std::string& store_name, store& target,
                                             const entry& written, call_limit& calls);

 private:
  static constexpr std::size_t stripe_count = 256;
  static constexpr call_limit::refusal busy_key{
      .reason = "busy_key",
      .message = "enough other writes of this key wait; repeat the request later"};
  /// The writes of the keys that share it.
  struct stripe {
    std::timed_mutex mutex{};
    call_limit waiting{8, std::chrono::milliseconds(250), busy_key};
  };
  struct store_stripes {
    std::array<stripe, stripe_count> all{};
    call_limit waiting{call_limit::default_most, std::chrono::seconds(1), busy_key};
  };
  [[nodiscard]] store_stripes& stripes_of(const std::string& store_name);

  std::mutex mutex_{};
  std::map<std::string, std::unique_ptr<store_stripes>> stripes_{};
};

}  // namespace HOLDFAST_NAMESPACE::detail::serve
