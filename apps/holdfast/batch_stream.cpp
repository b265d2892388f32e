#include "batch_stream.hpp"

#include "text.hpp"

#include <string>
#include <string_view>
#include <utility>

namespace holdfast::cli {

void run_batch(key::batch_options options, const input_file& from, output& to, std::size_t longest) {
  key::batch batch(std::move(options));
  line_reader lines(from, longest, [&to] { to.flush(); });
  std::string_view line;
  const bool terminal = to.is_terminal();
  std::string answer;
  for (;;) {
    switch (lines.next(line)) {
      case line_reader::found::line:
        if (terminal) {
          answer.clear();
          batch.run(line, answer);
          to << json_for_terminal(answer);
        } else {
          batch.run(line, to.buffer());
        }
        break;
      case line_reader::found::overlong:
        // Its id is somewhere in what was skipped.
        to << "{\"id\":null,\"error\":{\"code\":\"too_large\",\"path\":\"\",\"message\":\"the line has more than " +
                  std::to_string(longest) + " bytes\"}}\n";
        break;
      case line_reader::found::end:
        return;
    }
    to.settle();
  }
}

}  // namespace holdfast::cli
