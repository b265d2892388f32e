#pragma once

#include "store/write_behind/queue_reader.hpp"
#include "store/write_behind/writer_loop.hpp"

#include <span>
#include <string_view>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::store {

/// Accepts puts and erases into the queue, and handles a full queue (see when_full).
class queue_intake {
 public:
  /// The loop must outlive it.
  explicit queue_intake(writer_loop& loop) : loop_(loop), state_(loop.state()) {}

  void put(std::span<const entry> entries);
  bool erase(const queue_reader& reader, place location, std::string_view key, timestamp as_of);

 private:
  using guard = queue_state::guard;
  enum class room : std::uint8_t {
    available,
    not_needed  ///< the operations were written through or dropped
  };

  void enqueue(std::span<operation> ops, std::span<const entry> entries, timestamp horizon);
  void add_all(guard& lock, std::span<operation> ops, timestamp horizon);
  room make_room(guard& lock, std::span<const operation> ops, std::span<const entry> entries,
                 timestamp horizon, std::vector<entry>& dropped);
  void report_dropped(guard& lock, std::span<const entry> dropped) const;
  void wait_for_room(guard& lock, std::span<const operation> ops);
  room write_through(guard& lock, std::span<const operation> ops, std::span<const entry> entries,
                     timestamp horizon);

  writer_loop& loop_;
  queue_state& state_;
};

}  // namespace HOLDFAST_NAMESPACE::detail::store
