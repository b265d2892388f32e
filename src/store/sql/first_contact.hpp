#pragma once

/// \file
/// A store whose database is contacted in the background, so that a program can start while the
/// database is down. Its states:
///
///     first attempt under way   operations wait for it
///     not reached               operations fail at once, with the reason of the last attempt;
///                               a thread tries again, with growing pauses
///     reached                   operations go to the store; the thread has ended

#include <holdfast/log.hpp>
#include <holdfast/store.hpp>
#include <holdfast/version.hpp>

#include <functional>
#include <memory>
#include <string>

namespace HOLDFAST_NAMESPACE::detail::store {

struct first_contact_options {
  /// Connects and returns the store, or throws. Called until it succeeds.
  std::function<std::shared_ptr<holdfast::store>()> open{};
  holdfast::peer peer = holdfast::peer::none;
  std::shared_ptr<const logger> log{};  ///< never null
  /// Distinguishes the records of several stores, which are limited separately.
  std::string name{};
  /// The database is a file. The first attempt is made by the constructor, because it waits for no
  /// server, and every pause is short, because no server counts failed logins.
  bool is_file = false;
};

/// Returns the store before it is reached. Never waits for a server. Its operations throw
/// errc::unavailable (transient) until `open` has succeeded. The destructor waits for a running
/// attempt at most a second; after that the attempt ends on its own, and its result is dropped.
/// Throws errc::unavailable if no thread can be started.
[[nodiscard]] HOLDFAST_API std::shared_ptr<holdfast::store> make_first_contact_store(
    first_contact_options options);

}  // namespace HOLDFAST_NAMESPACE::detail::store
