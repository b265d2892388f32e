// holdfast man.

#include <holdfast/error.hpp>

#include "commands/groups.hpp"
#include "terminal/manual.hpp"

#include <CLI/CLI.hpp>

#include <fstream>
#include <string>

namespace holdfast::cli {

namespace {

void write_file(const std::string& name, const std::string& text) {
  std::ofstream file(name, std::ios::binary | std::ios::trunc);
  file << text;
  file.close();
  if (!file)
    throw error(errc::unavailable,
                "cannot write '" + name + "'; check that its directory exists, and the free space");
}

}  // namespace

void add_man_command(command root) {
  command cmd = root.add("man", "Write the manual pages into a directory");
  cmd.about("Writes holdfast.1 and a page for each command, and prints their names.");
  cmd.examples(
      "mkdir -p ~/.local/share/man/man1 && holdfast man ~/.local/share/man/man1\n"
      "man holdfast-store");
  const option directory =
      cmd.positional("DIRECTORY", "A directory that exists; pages in it are replaced")
          .required()
          .file();
  cmd.run([directory, &program = root.app()](console& io) {
    for (const manual_page& page : manual_pages(program)) {
      const std::string name = directory.text() + "/" + page.name + ".1";
      write_file(name, page.text);
      io.out << name << "\n";
    }
    return exit_ok;
  });
}

}  // namespace holdfast::cli
