#pragma once

/// \file
/// TLS settings of the connections that Holdfast opens itself. SQL drivers take theirs from the
/// URL. docs/tls.md lists every default.

#include <holdfast/version.hpp>

#include <string>

namespace HOLDFAST_NAMESPACE {

struct tls_options {
  /// False accepts any certificate. For tests only.
  bool verify = true;
  /// File with the certificates to trust. Empty: those of the system.
  std::string ca{};
  /// Client certificate, if the server asks for one.
  std::string certificate{};
  /// Private key of `certificate`.
  std::string key{};
  /// Name that the server's certificate must have. Empty: the host of the address.
  std::string server_name{};
};

}  // namespace HOLDFAST_NAMESPACE
