#include "hidden_arguments.hpp"
#include "program.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <csignal>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace {

/// Descriptors that were closed before we came are taken: the next file or socket would get their number, and what we print. Opened the
/// wrong way round, so that to read or write them still fails.
bool take_closed_descriptors() {
  for (const int each : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    // The lowest free number is given out first: this one.
    if (::fcntl(each, F_GETFD) < 0 && ::open("/dev/null", each == STDIN_FILENO ? O_WRONLY : O_RDONLY) != each) return false;
  }
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  if (!take_closed_descriptors()) return holdfast::cli::exit_unavailable;
  // A closed pipe is then an error of write(2), which output.cpp knows.
  std::signal(SIGPIPE, SIG_IGN);
  holdfast::cli::output out(STDOUT_FILENO);
  holdfast::cli::output err(STDERR_FILENO);
  std::vector<std::string> words(argv + (argc > 0 ? 1 : 0), argv + argc);
  holdfast::cli::hide_passwords({argv, static_cast<std::size_t>(argc)});
  return holdfast::cli::run(std::move(words), out, err);
}
