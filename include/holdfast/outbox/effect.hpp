#pragma once

/// \file
/// Applies the effect of an event once, even if the event is delivered twice.

#include <holdfast/outbox/commit.hpp>
#include <holdfast/outbox/outcome.hpp>
#include <holdfast/version.hpp>
#include <holdfast/worker.hpp>

#include <vector>

namespace HOLDFAST_NAMESPACE {

/// For handlers whose effect is on the Redis of the outbox: performs the writes, publishes the
/// events, and marks this event as applied, all in one step.
///
/// - Another delivery finds the mark, changes nothing, and is `done`. The mark lives as long as the
///   event (also while it is parked), and for the dedup window after that.
/// - A worker that lost its lease is refused by its fence, changes nothing, and gets `retry`.
///
///     worker.on("order.paid", [](const delivery& d) {
///       const auto balance = d.outbox().key_of(d.claimed(), "balance");
///       return effect_once(d, {{.action = commit_write::kind::add, .key = balance, .number = 5}});
///     });
///
/// Throws what outbox::commit throws: errc::unsupported_type on SQL. There, use
/// outbox::effect_once in the transaction of the handler.
[[nodiscard]] HOLDFAST_API outcome effect_once(const delivery& delivery,
                                               std::vector<commit_write> writes,
                                               std::vector<event> events = {});

}  // namespace HOLDFAST_NAMESPACE
