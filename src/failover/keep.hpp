#pragma once

/// \file
/// Stores live answers. A value is encoded before its caller gets it, so the caller cannot change
/// what is stored. None of these functions throws: problems are counted and logged.

#include <holdfast/store.hpp>

#include "failover/point_core.hpp"

namespace HOLDFAST_NAMESPACE::detail::failover {

/// Encodes a live value. Returns nothing if it is not to be stored. After putting the row, call
/// engine_core::note_served.
[[nodiscard]] std::optional<entry> row_of(const point_core& point, call_base& call) noexcept;

/// Sets the provenance of a live answer, and stores it.
void keep(const point_core& point, call_base& call) noexcept;

/// The same in two steps. `put_encoded` does not use the call.
struct encoded_answer {
  entry row{};
  std::uint64_t id = 0;
  std::chrono::steady_clock::time_point started{};
};
[[nodiscard]] std::optional<encoded_answer> encode_answer(const point_core& point,
                                                          call_base& call) noexcept;
void put_encoded(const point_core& point, const encoded_answer& answer) noexcept;

/// Runs the enrich hook of a live answer and counts the call.
void finish_answer(const point_core& point, call_base& call) noexcept;

/// Call in a catch clause: an answer could not be stored.
void record_store_failure(const point_core& point,
                          const char* message = "an answer could not be stored") noexcept;

}  // namespace HOLDFAST_NAMESPACE::detail::failover
