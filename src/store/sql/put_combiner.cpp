#include "store/sql/put_combiner.hpp"

#include <holdfast/error.hpp>

#include <algorithm>
#include <bit>
#include <exception>
#include <string>

namespace HOLDFAST_NAMESPACE::detail::store {

namespace {

constexpr const char* operation_name = "store.put";

}  // namespace

std::size_t statement_bytes(const entry& e) noexcept {
  return e.name.size() + e.key.size() + (e.payload ? e.payload->size() : 0);
}

/// A put and its result. It lives on the stack of its caller.
struct put_combiner::request {
  enum class state : std::uint8_t {
    waiting,  // in waiting_, or taken by another thread that writes it
    invited,  // not in waiting_ any more: its thread writes it
    written   // or failed
  };

  explicit request(put_entries entries_of_put) : entries(entries_of_put) {
    for (const entry* e : entries) bytes += statement_bytes(*e);
  }

  /// Whether it may share a statement: its entries are in one realm, that is, in one table. So a
  /// table that refuses everything affects no other tenant.
  [[nodiscard]] bool can_share() const {
    return entries.size() <= max_statement_rows && bytes <= max_statement_bytes &&
           entries.front()->realm == entries.back()->realm;
  }

  void settle(state result) {
    const std::scoped_lock lock(mutex);  // the object may be destroyed as soon as it is released
    current = result;
    changed.notify_one();
  }
  void fail(const error& reason) noexcept {
    try {
      failure = std::make_exception_ptr(reason);  // a copy for each caller
    } catch (...) {
      failure = std::current_exception();
    }
  }

  const put_entries entries;
  std::size_t bytes = 0;
  std::chrono::steady_clock::time_point deadline{};
  std::exception_ptr failure{};  // set before `current`
  bool taken = false;            // guarded by put_combiner::mutex_

  std::mutex mutex{};
  std::condition_variable changed{};
  state current = state::waiting;
};

void put_combiner::put(put_entries entries, const put_limits& limits) {
  request own(entries);
  own.deadline = std::chrono::steady_clock::now() + limits.longest_wait;
  bool was_invited = false;
  for (guard lock(mutex_);;) {
    if (!reserved_in_use_) {
      reserved_in_use_ = true;
      lock.unlock();
      write(own, writer::reserved, std::nullopt, limits);
      break;
    }
    if (extra_in_use_ < limits.extra_writers) {
      ++extra_in_use_;
      lock.unlock();
      if (auto connection = spare_connection()) {
        write(own, writer::extra, std::move(connection), limits);
        break;
      }
      lock.lock();
      --extra_in_use_;
      if (!reserved_in_use_) continue;
    }
    // The thread that uses the reserved connection takes this put, or invites it when it has ended.
    own.current = request::state::waiting;
    if (was_invited) waiting_.push_front(&own);  // another put was faster
    else waiting_.push_back(&own);
    lock.unlock();
    if (wait_until_written(own)) break;
    was_invited = true;
    lock.lock();
  }
  if (own.failure) std::rethrow_exception(own.failure);
}

std::size_t put_combiner::waiting() const {
  const std::scoped_lock lock(mutex_);
  return waiting_.size();
}

/// Returns false if the put was invited to write.
bool put_combiner::wait_until_written(request& own) {
  using state = request::state;
  const auto is_settled = [&own] { return own.current != state::waiting; };
  guard own_lock(own.mutex);
  if (!own.changed.wait_until(own_lock, own.deadline, is_settled)) {
    own_lock.unlock();
    {
      const std::scoped_lock lock(mutex_);
      if (std::erase(waiting_, &own) != 0)
        throw error(errc::timeout,
                    "other puts took so long that this one was not written in time; look for slow "
                    "writes, or put more entries into one put",
                    {.transient = true});
    }
    own_lock.lock();
    own.changed.wait(own_lock, is_settled);
  }
  return own.current == state::written;
}

/// Returns nothing if the pool has no connection to spare, or cannot open one: then the put waits.
std::optional<sql::pooled_connection> put_combiner::spare_connection() noexcept {
  try {
    return pool_.try_acquire_reader(operation_name);
  } catch (...) {
    return std::nullopt;
  }
}

sql::pooled_connection put_combiner::acquire(writer kind) {
  return kind == writer::reserved ? pool_.acquire_writer(operation_name)
                                  : pool_.acquire_reader(operation_name);
}

/// Writes a put, and those that wait, on a connection of this kind.
void put_combiner::write(request& own, writer kind,
                         std::optional<sql::pooled_connection> connection,
                         const put_limits& limits) {
  batch written;
  try {
    written.push_back(&own);
    write_first(written, kind, std::move(connection), limits);
  } catch (...) {
    for (auto* each : written) each->failure = std::current_exception();
    own.failure = std::current_exception();
  }
  {
    const std::scoped_lock lock(mutex_);
    if (kind == writer::reserved) reserved_in_use_ = false;
    else --extra_in_use_;
    if (!waiting_.empty()) {
      auto* const next = waiting_.front();
      waiting_.pop_front();
      next->settle(request::state::invited);
    }
  }
  for (auto* each : written) {
    if (each != &own) each->settle(request::state::written);
  }
}

/// Writes the first put of `written` together with those that wait. They are taken when there is a
/// connection, so that they do not wait for it in a queue of their own.
void put_combiner::write_first(batch& written, writer kind,
                               std::optional<sql::pooled_connection> connection,
                               const put_limits& limits) {
  bool has_taken = false;
  bool refused = false;  // the statement, not the connection
  try {
    operations_.retry([&] {
      refused = false;
      const auto used = connection ? std::move(*connection) : acquire(kind);
      connection.reset();
      if (!std::exchange(has_taken, true)) take_waiting(written, limits);
      refused = true;
      write_to(*used, written);
    });
  } catch (const error& reason) {
    // Without a connection, those that wait would fail as well, one after the other.
    if (!has_taken) take_waiting(written, limits);
    if (refused && written.size() > 1 && !reason.transient() && !reason.in_doubt()) {
      const std::span<request* const> all(written);
      write_part(all.first(all.size() / 2), kind);
      write_part(all.subspan(all.size() / 2), kind);
    } else {
      for (auto* each : written) each->fail(reason);
    }
  }
}

void put_combiner::write_part(std::span<request* const> part, writer kind) noexcept {
  try {
    operations_.retry([&] { write_to(*acquire(kind), part); });
  } catch (const error& reason) {
    if (part.size() > 1 && !reason.transient() && !reason.in_doubt()) {
      write_part(part.first(part.size() / 2), kind);
      write_part(part.subspan(part.size() / 2), kind);
    } else {
      for (auto* each : part) each->fail(reason);
    }
  } catch (...) {
    for (auto* each : part) each->failure = std::current_exception();
  }
}

void put_combiner::write_to(sql::connection& connection, std::span<request* const> part) const {
  if (part.size() == 1) return operations_.write(connection, {&part.front()->entries, 1});
  std::vector<put_entries> puts;
  puts.reserve(part.size());
  for (const auto* each : part) puts.push_back(each->entries);
  operations_.write(connection, puts);
}

/// Moves puts that wait to `taken`, as many as fit into the statement of its first.
void put_combiner::take_waiting(batch& taken, const put_limits& limits) {
  const request& first = *taken.front();
  if (!first.can_share()) return;
  const std::scoped_lock lock(mutex_);
  if (waiting_.empty()) return;
  taken.reserve(1 + waiting_.size());
  std::size_t rows = first.entries.size();
  std::size_t bytes = first.bytes;
  for (auto* each : waiting_) {
    if (!each->can_share() || each->entries.front()->realm != first.entries.front()->realm)
      continue;
    rows += each->entries.size();
    bytes += each->bytes;
    if (rows > max_statement_rows || bytes > max_statement_bytes) break;
    taken.push_back(each);
  }
  if (limits.powers_of_two) taken.resize(std::bit_floor(taken.size()));
  for (auto* each : taken) each->taken = true;
  std::erase_if(waiting_, [](const request* each) { return each->taken; });
}

}  // namespace HOLDFAST_NAMESPACE::detail::store
