#pragma once

/// \file
/// Options of which exactly one must be set.

#include <holdfast/error.hpp>

#include "terminal/command.hpp"

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::cli {

/// One of several options that exclude each other.
struct alternative {
  option choice;
  /// As the user writes it: `--key K`.
  std::string_view usage;
};

/// Throws errc::invalid_argument unless exactly one option is set. `subject` is what the options
/// give: "key".
inline void require_one(std::string_view subject, std::initializer_list<alternative> alternatives) {
  std::string usages;
  std::vector<std::string> set_names;
  std::size_t remaining = alternatives.size();
  for (const auto& [choice, usage] : alternatives) {
    --remaining;
    usages.append(usages.empty()   ? ""
                  : remaining == 0 ? (alternatives.size() > 2 ? " or " : ", or ")
                                   : ", ");
    usages.append(usage);
    if (choice.is_set()) set_names.emplace_back(usage.substr(0, usage.find(' ')));
  }
  if (set_names.empty())
    throw error(errc::invalid_argument,
                "exactly one " + std::string(subject) + " is required; give " + usages);
  if (set_names.size() == 1) return;
  std::string names;
  for (std::size_t i = 0; i < set_names.size(); ++i)
    names.append(i == 0 ? "" : i + 1 == set_names.size() ? " and " : ", ").append(set_names[i]);
  throw error(errc::invalid_argument, names + " exclude each other; give one of them, not " +
                                          (set_names.size() == 2 ? "both" : "several"));
}

}  // namespace holdfast::cli
