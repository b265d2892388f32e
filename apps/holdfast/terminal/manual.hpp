#pragma once

/// \file
/// Manual pages, from the tables that --help prints.

#include <string>
#include <vector>

namespace CLI {
class App;
}  // namespace CLI

namespace holdfast::cli {

/// A page in the language of man(7).
struct manual_page {
  std::string name;  // `holdfast-store`
  std::string text;
};

/// A page for the program, and one for each of its commands with all that is below it.
[[nodiscard]] std::vector<manual_page> manual_pages(const CLI::App& root);

}  // namespace holdfast::cli
