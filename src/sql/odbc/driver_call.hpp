#pragma once

#include <holdfast/version.hpp>

namespace HOLDFAST_NAMESPACE::detail::sql::odbc {

/// Marks the current thread as running code of a driver.
///
/// The process finalises the libraries of the drivers when it ends: psqlODBC destroys its mutexes.
/// A thread that still uses a connection then (the last owner of a store may be a thread of the
/// store) would use them after their end. Therefore the process, after the destructors of static
/// objects and before that, waits for the marked threads, up to a second; a thread that is to be
/// marked later stops until the process is gone.
///
/// Thread-safety: one object for each thread.
class driver_call {
 public:
  driver_call() noexcept;
  driver_call(const driver_call&) = delete;
  driver_call& operator=(const driver_call&) = delete;
  ~driver_call();
};

}  // namespace HOLDFAST_NAMESPACE::detail::sql::odbc
