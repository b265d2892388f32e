#include "commands/key/batch_stream.hpp"

#include "terminal/text.hpp"

#include <string>
#include <string_view>
#include <utility>

namespace holdfast::cli {

void run_batch(key::batch_options options, const input_file& cases, output& answers,
               std::size_t longest) {
  key::batch batch(std::move(options));
  line_reader lines(cases, longest, [&answers] { answers.flush(); });
  std::string_view line;
  const bool terminal = answers.is_terminal();
  std::string answer;
  for (;;) {
    switch (lines.next(line)) {
      case line_reader::result::line:
        if (terminal) {
          answer.clear();
          batch.run(line, answer);
          answers << json_for_terminal(answer);
        } else {
          batch.run(line, answers.buffer());
        }
        break;
      case line_reader::result::overlong:
        // The id is unknown: the line was skipped.
        answers << "{\"id\":null,\"error\":{\"code\":\"too_large\",\"path\":\"\",\"message\":\"the "
                   "line has more than " +
                       std::to_string(longest) + " bytes\"}}\n";
        break;
      case line_reader::result::end:
        return;
    }
    answers.flush_if_full();
  }
}

}  // namespace holdfast::cli
