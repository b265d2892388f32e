#include "net/tls.hpp"

#include "base/hex.hpp"
#include "net/address.hpp"

#include <arpa/inet.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <ctime>
#include <new>
#include <system_error>
#include <utility>

namespace HOLDFAST_NAMESPACE::detail::net {

namespace {

/// Returns the reason of the oldest error in OpenSSL's queue, and clears the queue.
std::string openssl_reason() {
  const unsigned long code = ERR_get_error();
  ERR_clear_error();
  if (code == 0) return "OpenSSL gives no reason";
  if (ERR_SYSTEM_ERROR(code))
    return std::generic_category().message(ERR_GET_REASON(code)) +
           "; name a PEM file that this process may read";
  const char* reason = ERR_reason_error_string(code);
  return reason != nullptr ? reason : "OpenSSL error " + std::to_string(code);
}

bool would_block(ssize_t returned) noexcept {
  return returned < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR);
}

int descriptor_of(BIO* bio) noexcept { return *static_cast<const int*>(BIO_get_data(bio)); }

int bio_write(BIO* bio, const char* data, int size) {
  BIO_clear_retry_flags(bio);
  const ssize_t count =
      ::send(descriptor_of(bio), data, static_cast<std::size_t>(size), MSG_NOSIGNAL | MSG_DONTWAIT);
  if (would_block(count)) BIO_set_retry_write(bio);
  return static_cast<int>(count);
}

int bio_read(BIO* bio, char* data, int size) {
  BIO_clear_retry_flags(bio);
  const ssize_t count =
      ::recv(descriptor_of(bio), data, static_cast<std::size_t>(size), MSG_DONTWAIT);
  if (would_block(count)) BIO_set_retry_read(bio);
  return static_cast<int>(count);
}

long bio_control(BIO* /*bio*/, int operation, long /*number*/, void* /*pointer*/) {
  return operation == BIO_CTRL_FLUSH ? 1 : 0;
}

int bio_create(BIO* bio) {
  BIO_set_init(bio, 1);
  return 1;
}

BIO_METHOD* make_socket_method() {
  BIO_METHOD* method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "holdfast socket");
  if (method == nullptr) throw std::bad_alloc();
  BIO_meth_set_write(method, bio_write);
  BIO_meth_set_read(method, bio_read);
  BIO_meth_set_ctrl(method, bio_control);
  BIO_meth_set_create(method, bio_create);
  return method;
}

/// A socket that does not raise SIGPIPE. Immutable, and lives as long as OpenSSL itself.
BIO_METHOD* socket_method() {
  static BIO_METHOD* const method = make_socket_method();
  return method;
}

[[noreturn]] void throw_bad_options(const std::string& problem, const std::string& path = "tls") {
  throw error(errc::invalid_argument, problem + ": " + openssl_reason(), {.path = path});
}

bool is_ip_address(const std::string& host) {
  std::array<unsigned char, 16> address{};
  return ::inet_pton(AF_INET, host.c_str(), address.data()) == 1 ||
         ::inet_pton(AF_INET6, host.c_str(), address.data()) == 1;
}

/// Makes the handshake accept only certificates of this host. Returns false if that is impossible.
bool expect_host(SSL* session, const std::string& host) {
  if (is_ip_address(host))
    return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(session), host.c_str()) == 1;
  if (host.empty()) return false;
  // The macro SSL_set_tlsext_host_name has an old-style cast.
  SSL_ctrl(session, SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name,
           const_cast<char*>(host.c_str()));
  return SSL_set1_host(session, host.c_str()) == 1;
}

/// `kind` is for messages: `client certificate`. The paths name the options.
void load_certificate(SSL_CTX* context, const std::string& certificate, const std::string& key,
                      const std::string& kind, const std::string& certificate_path,
                      const std::string& key_path) {
  // Without a callback OpenSSL would ask for the password of an encrypted key on the terminal.
  SSL_CTX_set_default_passwd_cb(context, [](char*, int, int, void*) { return 0; });
  if (SSL_CTX_use_certificate_chain_file(context, certificate.c_str()) != 1)
    throw_bad_options("cannot read the " + kind + ' ' + certificate, certificate_path);
  if (SSL_CTX_use_PrivateKey_file(context, key.c_str(), SSL_FILETYPE_PEM) != 1)
    throw_bad_options("cannot read the key " + key, key_path);
  if (SSL_CTX_check_private_key(context) != 1)
    throw_bad_options("the key does not belong to the " + kind, key_path);
}

/// What contexts of clients and servers have in common.
void set_common_rules(SSL_CTX* context) {
  SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
  SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  // A peer that dies sends no close notification. That is a lost connection, not a protocol error.
  SSL_CTX_set_options(context, SSL_OP_IGNORE_UNEXPECTED_EOF);
}

/// Chooses http/1.1 among the protocols that a client offers.
int choose_protocol(SSL* /*session*/, const unsigned char** chosen, unsigned char* size,
                    const unsigned char* offered, unsigned offered_size, void* /*argument*/) {
  constexpr std::string_view protocol = "http/1.1";
  const std::string_view list(reinterpret_cast<const char*>(offered), offered_size);
  for (std::size_t i = 0; i < list.size();) {
    const auto length = static_cast<unsigned char>(list[i]);
    if (list.substr(i + 1, length) == protocol) {
      *chosen = offered + i + 1;
      *size = length;
      return SSL_TLSEXT_ERR_OK;
    }
    i += std::size_t{1} + length;
  }
  return SSL_TLSEXT_ERR_ALERT_FATAL;
}

struct certificate_deleter {
  void operator()(GENERAL_NAMES* names) const noexcept { GENERAL_NAMES_free(names); }
  void operator()(unsigned char* text) const noexcept { OPENSSL_free(text); }
};

/// Adds a name of a certificate. Skips one with control characters: a program that reads texts up
/// to a null byte would take another name from it.
void add_name(std::vector<std::string>& names, std::string_view kind, std::string_view text) {
  const bool is_clean = std::ranges::all_of(
      text, [](char c) { return static_cast<unsigned char>(c) >= 0x20 && c != 0x7F; });
  if (text.empty() || !is_clean) return;
  names.push_back(std::string(kind).append(text));
}

std::string_view text_of(const ASN1_STRING* value) {
  return {reinterpret_cast<const char*>(ASN1_STRING_get0_data(value)),
          static_cast<std::size_t>(ASN1_STRING_length(value))};
}

std::string in_lower_case(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return lower;
}

void add_alternative_names(std::vector<std::string>& names, const X509* certificate) {
  const std::unique_ptr<GENERAL_NAMES, certificate_deleter> list(static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)));
  if (!list) return;
  for (int i = 0; i < sk_GENERAL_NAME_num(list.get()); ++i) {
    const GENERAL_NAME* const name = sk_GENERAL_NAME_value(list.get(), i);
    if (name->type == GEN_DNS) add_name(names, "dns:", in_lower_case(text_of(name->d.dNSName)));
    else if (name->type == GEN_URI)
      add_name(names, "uri:", text_of(name->d.uniformResourceIdentifier));
    else if (name->type == GEN_EMAIL) add_name(names, "email:", text_of(name->d.rfc822Name));
  }
}

void add_common_names(std::vector<std::string>& names, const X509* certificate) {
  const X509_NAME* const subject = X509_get_subject_name(certificate);
  for (int i = -1; (i = X509_NAME_get_index_by_NID(subject, NID_commonName, i)) >= 0;) {
    unsigned char* text = nullptr;
    const int size =
        ASN1_STRING_to_UTF8(&text, X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, i)));
    const std::unique_ptr<unsigned char, certificate_deleter> owner(text);
    if (size > 0)
      add_name(names, "cn:", {reinterpret_cast<const char*>(text), static_cast<std::size_t>(size)});
  }
}

std::string fingerprint_of(const X509* certificate) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned size = 0;
  if (X509_digest(certificate, EVP_sha256(), digest.data(), &size) != 1) throw std::bad_alloc();
  std::string text(std::size_t{size} * 2, '0');
  to_hex(digest.data(), size, text.data());
  return "sha256:" + text;
}

std::chrono::sys_seconds end_of(const X509* certificate) {
  std::tm time{};
  // A certificate without a readable end has not passed the verification.
  if (ASN1_TIME_to_tm(X509_get0_notAfter(certificate), &time) != 1) return {};
  using namespace std::chrono;
  return sys_days(year(time.tm_year + 1900) / (time.tm_mon + 1) / time.tm_mday) +
         hours(time.tm_hour) + minutes(time.tm_min) + seconds(time.tm_sec);
}

}  // namespace

void tls_context::deleter::operator()(SSL_CTX* context) const noexcept { SSL_CTX_free(context); }

// Does not send a close notification: that could block, and in a child after fork it would end the
// parent's session.
void tls_session::deleter::operator()(SSL* session) const noexcept { SSL_free(session); }

tls_context::tls_context(const tls_options& options) : options_(options) {
  if (options.certificate.empty() != options.key.empty())
    throw error(errc::invalid_argument,
                "a client certificate needs its key, and a key its certificate: give both",
                {.path = "tls"});
  context_.reset(SSL_CTX_new(TLS_client_method()));
  SSL_CTX* const context = context_.get();
  if (context == nullptr) throw std::bad_alloc();
  set_common_rules(context);
  SSL_CTX_set_verify(context, options.verify ? SSL_VERIFY_PEER : SSL_VERIFY_NONE, nullptr);
  if (!options.ca.empty()) {
    if (SSL_CTX_load_verify_locations(context, options.ca.c_str(), nullptr) != 1)
      throw_bad_options("cannot read the certificates to trust from " + options.ca);
  } else if (options.verify && SSL_CTX_set_default_verify_paths(context) != 1) {
    throw_bad_options("cannot find the system's certificates");
  }
  if (!options.certificate.empty())
    load_certificate(context, options.certificate, options.key, "client certificate", "tls", "tls");
}

void tls_server_context::deleter::operator()(SSL_CTX* context) const noexcept {
  SSL_CTX_free(context);
}

tls_server_context::tls_server_context(const tls_server_options& options)
    : context_(SSL_CTX_new(TLS_server_method())) {
  SSL_CTX* const context = context_.get();
  if (context == nullptr) throw std::bad_alloc();
  set_common_rules(context);
  // The server has many idle connections: 34 KB of buffers for each are freed between requests.
  SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_CIPHER_SERVER_PREFERENCE);
  SSL_CTX_set_alpn_select_cb(context, choose_protocol, nullptr);
  load_certificate(context, options.certificate, options.key, "certificate",
                   options.section + ".certificate", options.section + ".key");
  if (options.client_ca.empty()) return;
  if (SSL_CTX_load_verify_locations(context, options.client_ca.c_str(), nullptr) != 1)
    throw_bad_options("cannot read the certificates to trust from " + options.client_ca,
                      options.section + ".client-ca");
  // Without a context of its own, a client that resumes its session would be refused.
  constexpr std::array<unsigned char, 8> session_context{'h', 'o', 'l', 'd', 'f', 'a', 's', 't'};
  SSL_CTX_set_session_id_context(context, session_context.data(), session_context.size());
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
}

bool tls_server_context::requires_client_certificate() const noexcept {
  return (SSL_CTX_get_verify_mode(get()) & SSL_VERIFY_PEER) != 0;
}

std::optional<std::chrono::sys_seconds> tls_server_context::not_after() const {
  const auto time = end_of(SSL_CTX_get0_certificate(get()));
  if (time == std::chrono::sys_seconds{}) return std::nullopt;
  return time;
}

void tls_session::use_socket() {
  BIO* bio = BIO_new(socket_method());
  if (!session_ || bio == nullptr) {
    BIO_free(bio);
    throw std::bad_alloc();
  }
  BIO_set_data(bio, &socket_);
  SSL_set_bio(session_.get(), bio, bio);
}

tls_session::tls_session(const tls_server_context& context, int socket, std::string peer)
    : socket_(socket),
      verify_(context.requires_client_certificate()),
      peer_(std::move(peer)),
      session_(SSL_new(context.get())) {
  use_socket();
  SSL_set_accept_state(session_.get());
}

tls_session::tls_session(const tls_context& context, int socket, const std::string& address,
                         std::string peer)
    : socket_(socket),
      verify_(context.options().verify),
      peer_(std::move(peer)),
      session_(SSL_new(context.get())) {
  use_socket();
  SSL_set_connect_state(session_.get());

  const auto& server_name = context.options().server_name;
  const std::string host = server_name.empty() ? std::string(host_of(address)) : server_name;
  // Without a name to compare, any certificate of a trusted issuer would be accepted.
  if (!expect_host(session_.get(), host) && verify_)
    throw error(
        errc::invalid_argument,
        "the name '" + host + "' cannot be compared with a certificate; give one with tls_name",
        {.path = "tls"});
}

short tls_session::handshake() {
  ERR_clear_error();
  const int returned = SSL_do_handshake(session_.get());
  if (returned == 1) return 0;
  const int status = SSL_get_error(session_.get(), returned);
  if (status == SSL_ERROR_WANT_READ) return POLLIN;
  if (status == SSL_ERROR_WANT_WRITE) return POLLOUT;
  const std::string prefix = "cannot connect to " + peer_ + " with TLS: ";
  const long verified = SSL_get_verify_result(session_.get());
  if (verify_ && verified != X509_V_OK) {
    throw error(errc::permission,
                prefix + "its certificate is not accepted, " +
                    X509_verify_cert_error_string(verified) +
                    "; name the file of its issuer with tls_ca, or its name with tls_name");
  }
  if (status == SSL_ERROR_SSL) {
    const std::string reason = openssl_reason();
    throw error(errc::unavailable,
                prefix + reason +
                    "; check that the server speaks TLS there, and whether it requires a client "
                    "certificate",
                {.backend_code = reason, .transient = false});
  }
  throw error(errc::unavailable, prefix + "the server closed it", {.transient = true});
}

io_result tls_session::result_of(int returned, std::size_t bytes) {
  if (returned == 1) return {.status = io_status::done, .bytes = bytes};
  switch (SSL_get_error(session_.get(), returned)) {
    case SSL_ERROR_WANT_READ:
      return {.status = io_status::wait_read};
    case SSL_ERROR_WANT_WRITE:
      return {.status = io_status::wait_write};
    case SSL_ERROR_ZERO_RETURN:
      close_reason_ = "the server closed it";
      return {.status = io_status::closed, .in_order = true};
    case SSL_ERROR_SYSCALL:
      close_reason_ = errno == 0 ? "the server closed it" : std::generic_category().message(errno);
      ERR_clear_error();
      break;
    default:
      close_reason_ = openssl_reason();
  }
  return {.status = io_status::closed};
}

bool tls_session::is_idle() noexcept {
  ERR_clear_error();
  char byte = 0;
  std::size_t count = 0;
  const int returned = SSL_peek_ex(session_.get(), &byte, 1, &count);
  return returned != 1 && SSL_get_error(session_.get(), returned) == SSL_ERROR_WANT_READ;
}

void tls_session::send_close() noexcept {
  ERR_clear_error();
  if (SSL_is_init_finished(session_.get()) == 1) SSL_shutdown(session_.get());
  ERR_clear_error();
}

std::unique_ptr<const peer_certificate> tls_session::client_certificate() const {
  // Without the verification the names could be anything.
  if (!verify_ || SSL_get_verify_result(session_.get()) != X509_V_OK) return nullptr;
  const X509* const shown = SSL_get0_peer_certificate(session_.get());
  if (shown == nullptr) return nullptr;
  auto result = std::make_unique<peer_certificate>();
  add_alternative_names(result->names, shown);
  add_common_names(result->names, shown);
  result->fingerprint = fingerprint_of(shown);
  result->not_after = end_of(shown);
  return result;
}

io_result tls_session::write(std::string_view bytes) {
  if (bytes.empty()) return {};
  ERR_clear_error();
  std::size_t count = 0;
  errno = 0;
  const int returned = SSL_write_ex(session_.get(), bytes.data(), bytes.size(), &count);
  return result_of(returned, count);
}

io_result tls_session::read(std::span<char> buffer) {
  ERR_clear_error();
  std::size_t count = 0;
  errno = 0;
  const int returned = SSL_read_ex(session_.get(), buffer.data(), buffer.size(), &count);
  return result_of(returned, count);
}

}  // namespace HOLDFAST_NAMESPACE::detail::net
