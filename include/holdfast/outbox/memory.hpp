#pragma once

/// \file
/// An outbox in the memory of this process, for tests. Its content ends with the process. The other
/// backends are tested against it.

#include <holdfast/clock.hpp>
#include <holdfast/outbox/backend.hpp>
#include <holdfast/version.hpp>

#include <cstddef>
#include <memory>

namespace HOLDFAST_NAMESPACE {

struct memory_outbox_options {
  /// A power of two up to 256
  std::size_t lanes = 1;
  /// Null: the clock of the machine
  std::shared_ptr<const holdfast::clock> clock{};
};

/// Throws errc::invalid_argument if the number of lanes is invalid.
[[nodiscard]] HOLDFAST_API std::shared_ptr<outbox_backend> make_memory_outbox(
    memory_outbox_options options = {});

}  // namespace HOLDFAST_NAMESPACE
