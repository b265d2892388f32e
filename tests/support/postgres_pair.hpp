#pragma once

#include "support/postgres_server.hpp"

#include <optional>
#include <string>

namespace holdfast::test {

/// A primary and a standby that has what the primary has acknowledged (synchronous replication).
/// Each step returns when it has taken effect.
class postgres_pair {
 public:
  postgres_pair();

  /// Both servers, `first()` in front.
  [[nodiscard]] std::string url() const;
  /// The primary at the beginning.
  [[nodiscard]] postgres_server& first() noexcept { return *first_; }
  [[nodiscard]] postgres_server& second() noexcept { return *second_; }

  /// `first()` dies, `second()` takes writes.
  void kill_and_promote();
  /// `first()` freezes with all of its connections, `second()` takes writes.
  void hang_and_promote();
  /// As an operator exchanges them: `first()` stops in order, `second()` takes writes, `first()`
  /// becomes its standby.
  void switch_over();

 private:
  std::optional<postgres_server> first_{};
  std::optional<postgres_server> second_{};
};

}  // namespace holdfast::test
