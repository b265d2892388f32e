#pragma once

/// \file
/// The seed of a randomised test: HOLDFAST_SEED=n in the environment repeats one run.

#include <cstdint>
#include <cstdlib>
#include <optional>
#include <stdexcept>
#include <string>

namespace holdfast::test {

/// HOLDFAST_SEED, or nothing if it is not set or empty. Throws std::invalid_argument if it is not a number: a run with another seed than
/// the one that was asked for would look like a repetition that passed.
inline std::optional<std::uint64_t> seed_from_environment() {
  const char* const variable = std::getenv("HOLDFAST_SEED");  // NOLINT(concurrency-mt-unsafe)
  if (variable == nullptr || *variable == '\0') return std::nullopt;
  const std::string text = variable;
  if (text.find_first_not_of("0123456789") != std::string::npos) throw std::invalid_argument("HOLDFAST_SEED=" + text + " is not a number");
  return std::stoull(text);
}

/// The sentence that a failing test adds to its message.
inline std::string repeated_by(std::uint64_t seed) { return "HOLDFAST_SEED=" + std::to_string(seed) + " repeats this run"; }

}  // namespace holdfast::test
