#pragma once

/// \file
/// An outbox in this process, gone with it: for tests, and the model that all others are compared with.

#include <holdfast/clock.hpp>
#include <holdfast/outbox/backend.hpp>
#include <holdfast/version.hpp>

#include <cstddef>
#include <memory>

namespace HOLDFAST_NAMESPACE {

struct memory_outbox_options {
  std::size_t lanes = 1;
  std::shared_ptr<const holdfast::clock> clock{};  ///< the machine's unless given
};

/// Throws errc::invalid_argument (lanes).
[[nodiscard]] HOLDFAST_API std::shared_ptr<outbox_backend> make_memory_outbox(memory_outbox_options options = {});

}  // namespace HOLDFAST_NAMESPACE
