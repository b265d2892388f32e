// holdfast demo.

#include <holdfast/version.hpp>

#include "commands/groups.hpp"
#include "demo/console_demo.hpp"
#include "demo/stage.hpp"

#include <vector>

namespace holdfast::cli {

namespace {

std::vector<chapter> all_chapters() {
  std::vector<chapter> all;
  for (auto chapters : {failover_chapters(), gateway_chapters(), key_chapters(), store_chapters(),
                        sequence_chapters(), outbox_chapters()}) {
    for (chapter& next : chapters) all.push_back(std::move(next));
  }
  return all;
}

}  // namespace

void add_demo_command(command root) {
  command cmd = root.add("demo", "Take a guided tour: what Holdfast does, and what to try next");
  cmd.about(
      "Needs no server and removes its files. Uses colours on a terminal, unless NO_COLOR is set.");
  cmd.examples("holdfast demo\nholdfast demo --color | less -R\nholdfast demo --console");
  const option colour = cmd.flag("--color", "Use colours even if the output is not a terminal");
  const option plain = cmd.flag("--no-color", "Use plain text even on a terminal");

  const option browser =
      cmd.flag("--console", "Run a busy example until Ctrl-C, and print the link of its console");

  cmd.run([=](console& io) {
    if (browser.is_set()) return run_console_demo(io);
    stage show(io.out, !plain.is_set() && (colour.is_set() || wants_colour(io.out)));
    show.heading("Holdfast " HOLDFAST_VERSION_STRING);
    show.paragraph(
        "Keeps services answering and consistent when what they depend on fails. First the main "
        "job, failover, in a program and in front of one; then keys, the store, sequences and the "
        "outbox.");
    const std::vector<chapter> chapters = all_chapters();
    for (std::size_t i = 0; i < chapters.size(); ++i) {
      show.chapter(i + 1, chapters.size(), chapters[i].title);
      chapters[i].play(show);
      io.out.flush();  // display each chapter as soon as it is complete
    }
    show.gap();
    show.heading("What to try next");
    show.gap();
    show.typed("holdfast key failover --name country-by-code --domain country FR");
    show.typed(
        "holdfast key cachekit --module app.users --qualname get_user --json --json-args 42");
    show.typed(
        "holdfast store put --store sqlite:answers.db --create-schema --name country --key FR "
        "--payload '{}'");
    show.typed(
        "holdfast seq next --store sqlite:ids.db --create-schema --name account.id --count 3");
    show.typed("holdfast demo --console");
    show.typed("holdfast bench store --store memory:");
    show.typed("source <(holdfast completion bash)");
    show.typed("holdfast --help");
    return exit_ok;
  });
}

}  // namespace holdfast::cli
