// holdfast serve and its subcommands.

#include "commands/groups.hpp"

namespace holdfast::cli {

void add_serve_commands(command root) {
  command group = root.add("serve", "Manage the tokens of the HTTP server");
  group.examples(
      "holdfast serve token add --role app --scope outbox:orders:publish --name shop\n"
      "holdfast serve token list");
  add_token_commands(group);
}

}  // namespace holdfast::cli
