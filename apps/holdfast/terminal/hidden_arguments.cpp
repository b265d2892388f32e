#include "terminal/hidden_arguments.hpp"

#include "base/url.hpp"

#include <algorithm>

namespace holdfast::cli {

void hide_passwords(std::span<char*> arguments) {
  for (char* argument : arguments) {
    if (argument == nullptr) continue;
    for (const auto& [begin, end] : detail::passwords_in(argument))
      std::fill(argument + begin, argument + end, '*');
  }
}

}  // namespace holdfast::cli
