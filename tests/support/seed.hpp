#pragma once

/// \file
/// The seed of a randomised test. The same one each time, so that a run says something of the
/// change and not of the dice; fresh ones are tried by `scripts/seeds`. HOLDFAST_SEED=n in the
/// environment repeats one run, HOLDFAST_SEED=fresh takes a random one.

#include <cstdint>
#include <cstdlib>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <string_view>

namespace holdfast::test {

inline std::string_view seed_variable() {
  const char* const variable = std::getenv("HOLDFAST_SEED");  // NOLINT(concurrency-mt-unsafe)
  return variable == nullptr ? std::string_view{} : std::string_view(variable);
}

/// The one seed to run, or nothing. Throws std::invalid_argument if it is not a number: a run with
/// another seed than the one that was asked for would look like a repetition that passed.
inline std::optional<std::uint64_t> seed_from_environment() {
  const std::string text(seed_variable());
  if (text.empty() || text == "fresh") return std::nullopt;
  if (text.find_first_not_of("0123456789") != std::string::npos) {
    throw std::invalid_argument("HOLDFAST_SEED=" + text +
                                " is neither a number nor the word fresh");
  }
  return std::stoull(text);
}

/// The seed to begin with.
inline std::uint64_t first_seed() {
  constexpr std::uint64_t usual = 20'260'101;
  if (const auto only = seed_from_environment()) return *only;
  return seed_variable() == "fresh" ? std::random_device{}() : usual;
}

/// The sentence that a failing test adds to its message.
inline std::string repeated_by(std::uint64_t seed) {
  return "HOLDFAST_SEED=" + std::to_string(seed) + " repeats this run";
}

}  // namespace holdfast::test
