#include "program.hpp"

#include <unistd.h>

#include <csignal>
#include <string>
#include <vector>

int main(int argc, char** argv) {
  // A closed pipe is then an error of write(2), which output.cpp knows.
  std::signal(SIGPIPE, SIG_IGN);
  holdfast::cli::output out(STDOUT_FILENO);
  holdfast::cli::output err(STDERR_FILENO);
  return holdfast::cli::run(std::vector<std::string>(argv + (argc > 0 ? 1 : 0), argv + argc), out, err);
}
