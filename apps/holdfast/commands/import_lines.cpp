#include "commands/import_lines.hpp"

#include <holdfast/error.hpp>

#include "terminal/input.hpp"
#include "terminal/progress.hpp"
#include "terminal/stop_signals.hpp"

#include <cstddef>
#include <cstdint>

namespace holdfast::cli {

void import_lines(console& io, const std::string& file, const std::string& label,
                  const std::function<void(std::string_view)>& add,
                  const std::function<void()>& flush) {
  const stop_signals stop;
  const input_file input(file);
  const std::uint64_t total = count_lines(input);
  progress shown(io, label, false);
  std::uint64_t number = 0;
  const auto end_early = [&] {
    flush();
    shown.clear();
    throw stopped(label, number, total);
  };
  line_reader lines(input, std::size_t{64} << 20U, [&] {
    while (!input.ready()) {
      if (stop.wait(20)) end_early();
    }
  });
  std::string_view line;
  for (auto result = lines.next(line); result != line_reader::result::end;
       result = lines.next(line)) {
    ++number;
    try {
      if (result == line_reader::result::overlong)
        throw error(errc::too_large, "the line is longer than 64 MiB");
      if (!line.empty()) add(line);
    } catch (const error& e) {
      shown.clear();
      flush();
      throw error(e.code(), input.name() + ", line " + std::to_string(number) + ": " + e.what());
    }
    shown.update(number, total);
    if (number % 500 == 0 && stop.wait(0)) end_early();
  }
  flush();
  shown.clear();
}

}  // namespace holdfast::cli
