#pragma once

#include "support/child_process.hpp"
#include "support/temporary_directory.hpp"

#include <stdexcept>
#include <string>

namespace holdfast::test {

/// A certificate for 127.0.0.1, signed by itself, where the server of `owner` can read it. It is
/// its own authority.
class certificate {
 public:
  explicit certificate(const std::string& owner) : directory_("tls", owner) {
    const auto made =
        run_program({.argv = {"openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout",
                              key(), "-out", file(), "-days", "2", "-subj", "/CN=tests", "-addext",
                              "subjectAltName=IP:127.0.0.1"},
                     .user = owner});
    if (!made.status.success()) throw std::runtime_error("openssl: " + made.error);
  }
  [[nodiscard]] std::string file() const { return directory_.path() / "server.pem"; }
  [[nodiscard]] std::string key() const { return directory_.path() / "server.key"; }

 private:
  temporary_directory directory_;
};

}  // namespace holdfast::test
