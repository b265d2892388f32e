#pragma once

/// \file
/// The tokens in memory, so that a request is checked on a loop thread without the database.

#include <holdfast/clock.hpp>
#include <holdfast/version.hpp>

#include "serve/auth/rate_limit.hpp"
#include "serve/auth/token_store.hpp"

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

namespace HOLDFAST_NAMESPACE::detail::serve {

/// What changes with each request. Survives reloads of the table.
struct token_use {
  std::atomic<std::int64_t> last_used{0};
  std::int64_t stored = 0;  // only the thread that stores it
  rate_bucket rate{};
};

struct live_token {
  token_record record{};
  secret_digest digest{};
  std::shared_ptr<token_use> use{};
};

enum class token_verdict : std::uint8_t {
  usable,
  unknown,  ///< no such token, or a wrong secret
  expired,
  revoked,
  unavailable  ///< the tokens could not be read since the start
};

struct token_check {
  token_verdict verdict = token_verdict::unknown;
  /// Null unless it is usable, expired or revoked.
  std::shared_ptr<const live_token> token{};
};

/// Thread-safety: may be called from any thread. `check` and `find` do not wait.
class token_table {
 public:
  /// Compares in constant time.
  [[nodiscard]] token_check check(std::string_view text, timestamp now) const;
  /// For the sessions of a token.
  [[nodiscard]] token_check find(std::string_view id, timestamp now) const;
  [[nodiscard]] bool is_loaded() const;
  [[nodiscard]] bool has_usable(timestamp now) const;

  /// Reads all tokens. Keeps what it had if the database fails, and throws its error.
  void load(state_database& database);
  /// Writes when tokens were last used, if that changed.
  void store_uses(state_database& database);

 private:
  using map = std::map<std::string, std::shared_ptr<const live_token>, std::less<>>;
  [[nodiscard]] std::shared_ptr<const map> tokens() const;

  mutable std::mutex mutex_{};
  std::shared_ptr<const map> tokens_{};  // null until they were read
  std::mutex load_mutex_{};              // so that an older result does not replace a newer one
};

}  // namespace HOLDFAST_NAMESPACE::detail::serve
