#include <holdfast/version.hpp>

#include "groups.hpp"
#include "stage.hpp"

#include <vector>

namespace holdfast::cli {

namespace {

std::vector<chapter> all_chapters() {
  std::vector<chapter> all;
  for (auto part : {failover_chapters(), key_chapters(), store_chapters(), sequence_chapters(), outbox_chapters()}) {
    for (chapter& each : part) all.push_back(std::move(each));
  }
  return all;
}

}  // namespace

void add_demo_command(command root) {
  command at = root.add("demo", "A guided tour: what Holdfast does, what comes out, what to try next");
  at.about("Needs no server and leaves nothing behind. Coloured on a terminal, unless NO_COLOR is set; plain elsewhere.");
  at.examples("holdfast demo\nholdfast demo --color | less -R");
  const option colour = at.flag("--color", "Colour, wherever the output goes");
  const option plain = at.flag("--no-color", "Plain text, even on a terminal");

  at.run([=](console& io) {
    stage show(io.out, !plain.given() && (colour.given() || wants_colour(io.out)));
    show.heading("Holdfast " HOLDFAST_VERSION_STRING);
    show.say(
        "Keeps services answering and consistent when what they depend on fails. First the main job; then what it stands on: keys, the "
        "store, "
        "and ids.");
    const std::vector<chapter> all = all_chapters();
    for (std::size_t i = 0; i < all.size(); ++i) {
      show.chapter(i + 1, all.size(), all[i].title);
      all[i].play(show);
      io.out.flush();  // a reader on a terminal sees each chapter when it is done
    }
    show.gap();
    show.heading("What to try next");
    show.gap();
    show.typed("holdfast key failover --name country-by-code --domain country FR");
    show.typed("holdfast key cachekit --module app.users --qualname get_user --json --json-args 42");
    show.typed("holdfast store put --store sqlite:answers.db --create-schema --name country --key FR --payload '{}'");
    show.typed("holdfast seq next --store sqlite:ids.db --create-schema --name account.id --count 3");
    show.typed("holdfast bench keys");
    show.typed("source <(holdfast completion bash)");
    show.typed("holdfast --help");
    return exit_fine;
  });
}

}  // namespace holdfast::cli
