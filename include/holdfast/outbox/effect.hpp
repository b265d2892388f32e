#pragma once

/// \file
/// The effect of an event, applied once, though the event may come twice.

#include <holdfast/outbox/commit.hpp>
#include <holdfast/outbox/outcome.hpp>
#include <holdfast/version.hpp>
#include <holdfast/worker.hpp>

#include <vector>

namespace HOLDFAST_NAMESPACE {

/// For what lives on the Redis of the outbox: writes on keys of `outbox::key_of` and further events, in one step with a note that this event
/// was applied. A second delivery within the dedup window finds the note and changes nothing: done. A worker whose lease was lost is refused
/// by its fence, and nothing is written: the event is with another one.
///
///     worker.on("order.paid", [](const delivery& d) {
///       return effect_once(d, {{.what = commit_write::kind::add, .key = d.from().key_of(d.event().key, "balance"), .number = 5}});
///     });
///
/// Throws what the outbox throws, errc::unsupported_type on SQL: there the note is a row in the handler's own transaction.
[[nodiscard]] HOLDFAST_API outcome effect_once(const delivery& what, std::vector<commit_write> writes, std::vector<event> events = {});

}  // namespace HOLDFAST_NAMESPACE
