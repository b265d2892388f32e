#pragma once

/// \file
/// Producers and workers of an outbox, on a store whose time, losses, repetitions and crashes a
/// seed decides: one thread, one seed, one run.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace holdfast::test {

/// Mistakes that a backend could make. The simulation has to notice each of them.
enum class planted : std::uint8_t {
  nothing,
  forgets_tokens,        ///< a late holder settles all the same
  forgets_events,        ///< says that it kept an event, and did not
  mixes_up_order,        ///< hands a run out from its end
  repeats_effects,       ///< applies an effect again
  fires_twice,           ///< a ticket becomes two events
  loses_with_a_lease,    ///< what is not acknowledged in time is gone
  recurs_blindly,        ///< a worker publishes due times that another one has published
  recurs_without_event,  ///< a due time is done without its event
};

struct simulation_plan {
  std::uint64_t seed = 1;
  planted bug = planted::nothing;
  /// Nothing but this happens: whoever makes the call with this number dies there, before it (even)
  /// or after it (odd, number / 2).
  std::optional<std::size_t> kill_at{};
};

struct simulation_result {
  std::string broken{};        ///< the rule that was broken, or empty
  std::size_t boundaries = 0;  ///< calls that were made
  std::size_t deliveries = 0;
  std::size_t crashes = 0;
};

[[nodiscard]] simulation_result simulate(const simulation_plan& plan);

}  // namespace holdfast::test
