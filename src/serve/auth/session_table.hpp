#pragma once

/// \file
/// Sessions of the console. The cookie is a secret of 256 random bits; the database has its hash.
///
/// A session refers to the token it was started with, and ends with it. A session without a token
/// was started with the link of the first start, and is an admin's.

#include <holdfast/clock.hpp>
#include <holdfast/version.hpp>

#include "serve/auth/state_database.hpp"
#include "serve/auth/token_text.hpp"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

namespace HOLDFAST_NAMESPACE::detail::serve {

inline constexpr auto session_idle_time = std::chrono::minutes(30);
inline constexpr auto session_life = std::chrono::hours(12);
inline constexpr std::size_t max_sessions = 1'000;

struct console_session {
  /// Empty: started with the link of the first start.
  std::string token_id{};
  std::string name{};
  timestamp created{};
  /// 12 hours after its start.
  [[nodiscard]] timestamp end() const noexcept { return created + session_life; }
};

/// Thread-safety: may be called from any thread. `find` does not wait.
class session_table {
 public:
  /// Starts a session and returns its cookie. Beyond max_sessions the one that was idle for longest
  /// ends. Throws errors of the database.
  [[nodiscard]] std::string start(state_database& database, std::string token_id, std::string name);
  /// Returns the session of a cookie, and counts as its use. Nothing if there is none, it was idle
  /// for 30 minutes, or it is 12 hours old.
  [[nodiscard]] std::optional<console_session> find(std::string_view cookie, timestamp now) const;
  /// Ends a session in this process, then in the database. Throws errors of the database; then
  /// `load` repeats it.
  void end(state_database& database, std::string_view cookie);

  /// Reads all sessions. Keeps what it had if the database fails, and throws its error.
  void load(state_database& database);
  /// Writes when sessions were last used, if that changed.
  void store_uses(state_database& database);
  /// Deletes sessions that have ended.
  static void forget_old_sessions(state_session& session, timestamp now);

 private:
  struct live_session {
    console_session session{};
    std::atomic<std::int64_t> last_seen{0};
    std::atomic<bool> ended{false};
    std::int64_t stored = 0;  // protected by load_mutex_
  };
  using map = std::map<secret_digest, std::shared_ptr<live_session>>;
  [[nodiscard]] std::shared_ptr<const map> sessions() const;
  void replace(std::shared_ptr<const map> sessions);
  void remove_idlest(state_session& session, map& sessions);

  mutable std::mutex mutex_{};
  std::shared_ptr<const map> sessions_ = std::make_shared<const map>();
  std::mutex load_mutex_{};  // so that an older result does not replace a newer one
};

}  // namespace HOLDFAST_NAMESPACE::detail::serve
