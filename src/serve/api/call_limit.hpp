#pragma once

#include <holdfast/version.hpp>

#include <chrono>
#include <cstddef>
#include <list>
#include <mutex>
#include <string_view>

namespace HOLDFAST_NAMESPACE::detail::serve {

/// Leaves workers to the other databases while one hangs. Calls of a database that answers are not
/// limited: a call is refused only if `most` calls run, and the first of them runs for longer than
/// `slow`.
/// Thread-safety: may be called from any thread.
class call_limit {
 public:
  using time_point = std::chrono::steady_clock::time_point;

  static constexpr std::size_t default_most = 16;
  /// For server_refusal. Literals.
  struct refusal {
    std::string_view reason = "slow_database";
    std::string_view message =
        "the database is slow, and enough requests wait for it; repeat the request later";
  };

  explicit call_limit(std::size_t most = default_most,
                      std::chrono::milliseconds slow = std::chrono::seconds(1))
      : call_limit(most, slow, refusal{}) {}
  call_limit(std::size_t most, std::chrono::milliseconds slow, refusal refused)
      : most_(most), slow_(slow), refusal_(refused) {}

  /// Ends a call when it is destroyed.
  class running_call {
   public:
    running_call(call_limit& limit, std::list<time_point>::iterator start)
        : limit_(limit), start_(start) {}
    running_call(const running_call&) = delete;
    running_call& operator=(const running_call&) = delete;
    ~running_call();

   private:
    call_limit& limit_;
    std::list<time_point>::iterator start_;
  };

  /// Throws server_refusal, as errc::unavailable, if the call is refused.
  [[nodiscard]] running_call begin(time_point now = std::chrono::steady_clock::now());

 private:
  const std::size_t most_;
  const std::chrono::milliseconds slow_;
  const refusal refusal_;
  std::mutex mutex_{};
  std::list<time_point> starts_{};  // the first one first
};

}  // namespace HOLDFAST_NAMESPACE::detail::serve
