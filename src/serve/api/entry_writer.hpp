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

#include <holdfast/store.hpp>
#include <holdfast/version.hpp>

#include <array>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

namespace HOLDFAST_NAMESPACE::detail::serve {

/// Thread-safety: may be called from any thread.
class entry_writer {
 public:
  /// Returns nothing if the entry was stored, or the as_of of the newer version. Waits for the
  /// store. `store_name` separates the locks of stores, so that one that hangs delays no other.
  /// Throws as store::put, and
  /// - errc::timeout (transient) if other writes of this key take too long,
  /// - an error in doubt if the store fails after the write,
  /// - errc::unavailable (transient) if the entry is removed again and again.
  [[nodiscard]] std::optional<timestamp> put(const std::string& store_name, store& target,
                                             const entry& written);

 private:
  static constexpr std::size_t stripe_count = 256;
  using stripes = std::array<std::timed_mutex, stripe_count>;
  [[nodiscard]] std::timed_mutex& mutex_of(const std::string& store_name, const entry& written);

  std::mutex mutex_{};
  std::map<std::string, std::unique_ptr<stripes>> stripes_{};
};

}  // namespace HOLDFAST_NAMESPACE::detail::serve
