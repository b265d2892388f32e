#pragma once

/// \file
/// The write-behind store is composed of these parts:
///
///     write_behind_store   the public store
///     queue_intake         puts and erases; a full queue
///     queue_reader         reads: pending operations over the store below
///     writer_loop          tasks and timers; flushes
///     batch_writer         writes a batch: one call, halves, suspects and their quarantine
///     queue_state          options, mutex, and:
///       pending_operations   all unfinished operations (see operation.hpp for their states):
///         operation_log        queued
///         write_batch          in flight, and suspects
///         held_operations      held
///         last_written         the last written answer of recent keys

#include <holdfast/store/write_behind.hpp>

#include "store/write_behind/queue_rules.hpp"

#include <memory>

namespace HOLDFAST_NAMESPACE::detail::store {

/// As holdfast::make_write_behind, with other rules (for tests).
[[nodiscard]] std::shared_ptr<write_behind> make_write_behind(
    std::shared_ptr<holdfast::store> next, write_behind_options options,
    std::shared_ptr<const queue_rules> rules);

}  // namespace HOLDFAST_NAMESPACE::detail::store
