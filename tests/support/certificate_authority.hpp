#pragma once

#include "support/temporary_directory.hpp"

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <stdexcept>
#include <string>

namespace holdfast::test {

/// An issuer of certificates, in files of a directory of its own. The programs that use it link
/// OpenSSL.
class certificate_authority {
 public:
  struct subject {
    /// Of the files, and the common name.
    std::string name{};
    /// As OpenSSL reads it: `DNS:billing.example,URI:spiffe://shop`. Empty: no alternative names.
    std::string names{};
    /// From now on. Negative: it has expired.
    std::chrono::seconds lifetime = std::chrono::hours(1);
  };
  struct issued {
    std::string file;
    std::string key;
  };

  certificate_authority() {
    key_ = make_key();
    certificate_ = make_certificate({.name = "authority"}, *key_, true);
    write_certificate("authority", *certificate_);
  }

  /// The certificate that others are compared with.
  [[nodiscard]] std::string file() const { return path("authority.pem"); }
  [[nodiscard]] issued issue(const subject& owner) const {
    const auto key = make_key();
    const auto certificate = make_certificate(owner, *key, false);
    write_certificate(owner.name, *certificate);
    const file_handle out(std::fopen(path(owner.name + ".key").c_str(), "w"));
    check(out &&
          PEM_write_PrivateKey(out.get(), key.get(), nullptr, nullptr, 0, nullptr, nullptr) == 1);
    return {.file = path(owner.name + ".pem"), .key = path(owner.name + ".key")};
  }

 private:
  struct deleter {
    void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
    void operator()(X509* certificate) const { X509_free(certificate); }
    void operator()(X509_EXTENSION* extension) const { X509_EXTENSION_free(extension); }
    void operator()(std::FILE* file) const { (void)std::fclose(file); }
  };
  using key_handle = std::unique_ptr<EVP_PKEY, deleter>;
  using certificate_handle = std::unique_ptr<X509, deleter>;
  using file_handle = std::unique_ptr<std::FILE, deleter>;

  static void check(bool succeeded) {
    if (!succeeded) throw std::runtime_error("OpenSSL could not make a certificate");
  }
  static key_handle make_key() {
    key_handle key(EVP_EC_gen("P-256"));
    check(key != nullptr);
    return key;
  }
  static void add_extension(X509& certificate, int kind, const std::string& value) {
    const std::unique_ptr<X509_EXTENSION, deleter> extension(
        X509V3_EXT_conf_nid(nullptr, nullptr, kind, value.c_str()));
    check(extension != nullptr && X509_add_ext(&certificate, extension.get(), -1) == 1);
  }
  [[nodiscard]] certificate_handle make_certificate(const subject& owner, EVP_PKEY& key,
                                                    bool is_authority) const {
    certificate_handle made(X509_new());
    check(made != nullptr);
    auto& certificate = *made;
    X509_set_version(&certificate, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(&certificate), ++serial_);
    const auto lifetime = static_cast<long>(owner.lifetime.count());
    X509_gmtime_adj(X509_getm_notBefore(&certificate), std::min(0L, lifetime) - 3600);
    X509_gmtime_adj(X509_getm_notAfter(&certificate), lifetime);
    X509_set_pubkey(&certificate, &key);
    X509_NAME_add_entry_by_txt(X509_get_subject_name(&certificate), "CN", MBSTRING_UTF8,
                               reinterpret_cast<const unsigned char*>(owner.name.c_str()), -1, -1,
                               0);
    X509_set_issuer_name(&certificate,
                         X509_get_subject_name(is_authority ? &certificate : certificate_.get()));
    if (is_authority) add_extension(certificate, NID_basic_constraints, "critical,CA:TRUE");
    if (!owner.names.empty()) add_extension(certificate, NID_subject_alt_name, owner.names);
    check(X509_sign(&certificate, key_.get(), EVP_sha256()) > 0);
    return made;
  }
  void write_certificate(const std::string& name, X509& certificate) const {
    const file_handle out(std::fopen(path(name + ".pem").c_str(), "w"));
    check(out && PEM_write_X509(out.get(), &certificate) == 1);
  }
  [[nodiscard]] std::string path(const std::string& name) const { return directory_.path() / name; }

  temporary_directory directory_{"authority"};
  key_handle key_{};
  certificate_handle certificate_{};
  mutable long serial_ = 0;
};

}  // namespace holdfast::test
