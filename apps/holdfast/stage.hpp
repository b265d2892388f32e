#pragma once

/// \file
/// How the demonstration looks: headings, what was typed, what came out. Colour on a terminal, plain text elsewhere.

#include "output.hpp"

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::cli {

/// Whether to colour, when nobody said: on a terminal that can, unless NO_COLOR is set.
[[nodiscard]] bool wants_colour(const output& out);

/// Thread-safety: none.
class stage {
 public:
  stage(output& out, bool colour);

  void heading(std::string_view text);
  void chapter(std::size_t number, std::size_t of, std::string_view title);
  /// A paragraph, folded.
  void say(std::string_view text);
  /// Something that one could type.
  void typed(std::string_view command_line);
  /// Something that came out, with what it is.
  void show(std::string_view label, std::string_view value);
  /// What it proves; or what is wrong with it, on purpose.
  void good(std::string_view text);
  void bad(std::string_view text);
  void gap();

 private:
  [[nodiscard]] std::string painted(std::string_view code, std::string_view text) const;

  output& out_;
  bool colour_;
  bool symbols_;
};

/// One part of the demonstration. Each capability adds its own.
struct chapter {
  std::string_view title;
  std::function<void(stage&)> play;
};

[[nodiscard]] std::vector<chapter> failover_chapters();
[[nodiscard]] std::vector<chapter> key_chapters();
[[nodiscard]] std::vector<chapter> outbox_chapters();
[[nodiscard]] std::vector<chapter> sequence_chapters();
[[nodiscard]] std::vector<chapter> store_chapters();

/// Runs this program again, as another process, and returns its output. Throws errc::unavailable.
[[nodiscard]] std::string run_again(const std::vector<std::string>& words);

}  // namespace holdfast::cli
