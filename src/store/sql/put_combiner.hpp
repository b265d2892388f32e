#pragma once

/// \file
/// Writes the puts of many threads in few statements.
///
/// A put that finds a connection free writes at once. Otherwise it waits. The thread that writes
/// next takes all puts that wait, within the limits of one statement, and writes them together:
///
///     thread A   put a --- writes a ------|
///     thread B      put b ... waits ......|-- writes b, c, d --|
///     thread C          put c ... waits .......................|
///     thread D             put d ... waits ....................|
///
/// A put is atomic, because a combined statement is. If the database refuses a combined statement
/// for a reason that will not pass, the halves are written separately, until the refused put is
/// alone: only its caller gets the error. A failure that passes, such as a lost connection,
/// concerns all puts of the statement.

#include <holdfast/store.hpp>
#include <holdfast/version.hpp>

#include "sql/pool.hpp"

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::store {

/// Limits of one statement, so that no server refuses it as too large.
inline constexpr std::size_t max_statement_rows = 500;
inline constexpr std::size_t max_statement_bytes = 4U << 20U;

/// The bytes that an entry adds to a statement.
[[nodiscard]] std::size_t statement_bytes(const entry& e) noexcept;

/// Thread-safety: every function may be called from any thread.
class put_combiner {
 public:
  /// The entries of one put: sorted, and each row once.
  using put_entries = std::span<const entry* const>;

  struct functions {
    /// Writes the entries of all puts atomically. The puts are in the order of their arrival.
    std::function<void(sql::connection&, std::span<const put_entries> puts)> write;
    /// Runs an attempt, and repeats it after transient failures.
    std::function<void(const std::function<void()>& attempt)> retry;
  };
  struct put_limits {
    /// Connections that may write at the same time as the one that the pool reserves for writing.
    std::size_t extra_writers = 0;
    /// Combines 2, 4, 8, ... puts and no other number, so that there are few different statements.
    /// For databases that prepare a statement for each number of rows.
    bool powers_of_two = false;
    /// How long a put may wait until it is written.
    std::chrono::milliseconds longest_wait{};
  };

  put_combiner(sql::pool& pool, functions operations)
      : pool_(pool), operations_(std::move(operations)) {}

  /// Throws what `write` throws, and errc::timeout (transient) after the longest wait.
  void put(put_entries entries, const put_limits& limits);

  /// The number of puts that wait.
  [[nodiscard]] std::size_t waiting() const;

 private:
  struct request;
  enum class writer : std::uint8_t { reserved, extra };
  using guard = std::unique_lock<std::mutex>;
  using batch = std::vector<request*>;

  [[nodiscard]] bool wait_until_written(request& own);
  [[nodiscard]] std::optional<sql::pooled_connection> spare_connection() noexcept;
  void write(request& own, writer kind, std::optional<sql::pooled_connection> connection,
             const put_limits& limits);
  void write_first(batch& written, writer kind, std::optional<sql::pooled_connection> connection,
                   const put_limits& limits);
  void write_part(std::span<request* const> part, writer kind) noexcept;
  void write_to(sql::connection& connection, std::span<request* const> part) const;
  void take_waiting(batch& taken, const put_limits& limits);
  [[nodiscard]] sql::pooled_connection acquire(writer kind);

  sql::pool& pool_;
  const functions operations_;

  mutable std::mutex mutex_{};
  std::deque<request*> waiting_{};
  bool reserved_in_use_ = false;
  std::size_t extra_in_use_ = 0;
};

}  // namespace HOLDFAST_NAMESPACE::detail::store
