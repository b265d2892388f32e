#include "program.hpp"
#include "terminal/hidden_arguments.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <csignal>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace {

/// Opens /dev/null on each standard descriptor that the parent process closed. Otherwise the next
/// file or socket would get its number, and our output. The direction is the wrong one on purpose:
/// reading standard input and writing standard output still fail.
bool fill_closed_descriptors() {
  for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(descriptor, F_GETFD) >= 0) continue;
    // open() returns the lowest free number, which is this descriptor.
    const int mode = descriptor == STDIN_FILENO ? O_WRONLY : O_RDONLY;
    if (::open("/dev/null", mode) != descriptor) return false;
  }
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  if (!fill_closed_descriptors()) return holdfast::cli::exit_unavailable;
  // A closed pipe is then an error of write(2), which class output reports.
  std::signal(SIGPIPE, SIG_IGN);
  holdfast::cli::output out(STDOUT_FILENO);
  holdfast::cli::output err(STDERR_FILENO);
  std::vector<std::string> words(argv + (argc > 0 ? 1 : 0), argv + argc);
  holdfast::cli::hide_passwords({argv, static_cast<std::size_t>(argc)});
  return holdfast::cli::run(std::move(words), out, err);
}
