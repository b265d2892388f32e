#pragma once

/// \file
/// `--key-file` and `--key-variable`: the keys of a sealed store. They are not on the command line,
/// which every user of the machine can read.

#include <holdfast/store/sealed.hpp>

#include "terminal/command.hpp"
#include "terminal/exclusive_options.hpp"

namespace holdfast::cli {

struct key_ring_options {
  option file;
  option variable;

  explicit key_ring_options(command& cmd)
      : file(cmd.value("--key-file", "FILE",
                       "File with the key ring: one id:base64 per line, the current key first")
                 .file()),
        variable(cmd.value("--key-variable", "NAME",
                           "Instead of a file: environment variable with the key ring")) {}

  [[nodiscard]] bool is_set() const { return file.is_set() || variable.is_set(); }
  /// Throws errc::invalid_argument unless exactly one of the options is set.
  [[nodiscard]] sealing_ring read() const {
    require_one("key ring", {{file, "--key-file FILE"}, {variable, "--key-variable NAME"}});
    return file.is_set() ? sealing_ring::from_file(file.text())
                         : sealing_ring::from_environment(variable.text());
  }
};

}  // namespace holdfast::cli
