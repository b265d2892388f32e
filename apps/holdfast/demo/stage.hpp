#pragma once

/// \file
/// Output of the demonstration: headings, commands and their results. Coloured on a terminal, plain
/// text elsewhere.

#include "terminal/output.hpp"

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::cli {

/// The default: colours on a terminal that supports them, unless NO_COLOR is set.
[[nodiscard]] bool wants_colour(const output& out);

/// Thread-safety: none.
class stage {
 public:
  stage(output& out, bool colour);

  void heading(std::string_view text);
  void chapter(std::size_t number, std::size_t total, std::string_view title);
  /// A paragraph, folded to the width of the page.
  void paragraph(std::string_view text);
  /// A command line or code that the reader could type.
  void typed(std::string_view command_line);
  /// A result with its label.
  void show(std::string_view label, std::string_view value);
  /// What a result proves.
  void good(std::string_view text);
  /// What is wrong with a result, on purpose.
  void bad(std::string_view text);
  void gap();

 private:
  [[nodiscard]] std::string painted(std::string_view code, std::string_view text) const;

  output& out_;
  bool colour_;
  bool symbols_;
};

/// One part of the demonstration. Each capability has its own chapters.
struct chapter {
  std::string_view title;
  std::function<void(stage&)> play;
};

[[nodiscard]] std::vector<chapter> failover_chapters();
[[nodiscard]] std::vector<chapter> gateway_chapters();
[[nodiscard]] std::vector<chapter> key_chapters();
[[nodiscard]] std::vector<chapter> outbox_chapters();
[[nodiscard]] std::vector<chapter> sequence_chapters();
[[nodiscard]] std::vector<chapter> store_chapters();

}  // namespace holdfast::cli
