#include "redis/tls.hpp"

#include "redis/address.hpp"

#include <arpa/inet.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <new>
#include <system_error>

namespace HOLDFAST_NAMESPACE::redis {

namespace {

std::string last_problem() {
  const unsigned long code = ERR_get_error();
  ERR_clear_error();
  if (code == 0) return "OpenSSL does not say why";
  const char* reason = ERR_reason_error_string(code);
  return reason != nullptr ? reason : "OpenSSL error " + std::to_string(code);
}

int descriptor_of(BIO* bio) noexcept { return *static_cast<const int*>(BIO_get_data(bio)); }

int bio_write(BIO* bio, const char* data, int size) {
  BIO_clear_retry_flags(bio);
  const ssize_t done = ::send(descriptor_of(bio), data, static_cast<std::size_t>(size), MSG_NOSIGNAL | MSG_DONTWAIT);
  if (done < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) BIO_set_retry_write(bio);
  return static_cast<int>(done);
}

int bio_read(BIO* bio, char* data, int size) {
  BIO_clear_retry_flags(bio);
  const ssize_t done = ::recv(descriptor_of(bio), data, static_cast<std::size_t>(size), MSG_DONTWAIT);
  if (done < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) BIO_set_retry_read(bio);
  return static_cast<int>(done);
}

long bio_control(BIO* /*bio*/, int what, long /*number*/, void* /*pointer*/) { return what == BIO_CTRL_FLUSH ? 1 : 0; }

int bio_create(BIO* bio) {
  BIO_set_init(bio, 1);
  return 1;
}

BIO_METHOD* make_method() {
  BIO_METHOD* made = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "holdfast socket");
  if (made == nullptr) throw std::bad_alloc();
  BIO_meth_set_write(made, bio_write);
  BIO_meth_set_read(made, bio_read);
  BIO_meth_set_ctrl(made, bio_control);
  BIO_meth_set_create(made, bio_create);
  return made;
}

/// A socket that does not raise SIGPIPE. Immutable, and as long-lived as OpenSSL itself.
BIO_METHOD* quiet_socket() {
  static BIO_METHOD* const method = make_method();
  return method;
}

[[noreturn]] void refuse(const std::string& what) { throw error(errc::invalid_argument, what + ": " + last_problem(), {.path = "tls"}); }

bool is_number(const std::string& host) {
  std::array<unsigned char, 16> room{};
  return ::inet_pton(AF_INET, host.c_str(), room.data()) == 1 || ::inet_pton(AF_INET6, host.c_str(), room.data()) == 1;
}

}  // namespace

tls_context::tls_context(const tls_options& options) : options_(options) {
  if (options.certificate.empty() != options.key.empty())
    throw error(errc::invalid_argument, "a client certificate needs its key, and a key its certificate: give both", {.path = "tls"});
  const std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> made(SSL_CTX_new(TLS_client_method()), &SSL_CTX_free);
  if (!made) throw std::bad_alloc();
  SSL_CTX_set_min_proto_version(made.get(), TLS1_2_VERSION);
  SSL_CTX_set_mode(made.get(), SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  // A server that dies closes without TLS's own goodbye; that is a lost connection, not a protocol error.
  SSL_CTX_set_options(made.get(), SSL_OP_IGNORE_UNEXPECTED_EOF);
  SSL_CTX_set_verify(made.get(), options.verify ? SSL_VERIFY_PEER : SSL_VERIFY_NONE, nullptr);
  if (!options.ca.empty()) {
    if (SSL_CTX_load_verify_locations(made.get(), options.ca.c_str(), nullptr) != 1)
      refuse("cannot read the certificates to trust from " + options.ca);
  } else if (options.verify && SSL_CTX_set_default_verify_paths(made.get()) != 1) {
    refuse("cannot find the system's certificates; name a file with tls_ca");
  }
  // OpenSSL would ask whoever sits at the terminal, and hang where nobody does.
  SSL_CTX_set_default_passwd_cb(made.get(), [](char*, int, int, void*) { return 0; });
  if (!options.certificate.empty()) {
    if (SSL_CTX_use_certificate_chain_file(made.get(), options.certificate.c_str()) != 1)
      refuse("cannot read the client certificate " + options.certificate);
    if (SSL_CTX_use_PrivateKey_file(made.get(), options.key.c_str(), SSL_FILETYPE_PEM) != 1) refuse("cannot read the key " + options.key);
    if (SSL_CTX_check_private_key(made.get()) != 1) refuse("the key does not belong to the client certificate");
  }
  SSL_CTX_up_ref(made.get());
  held_ = made.get();
}

tls_context::~tls_context() { SSL_CTX_free(held_); }

tls_session::tls_session(const tls_context& context, int socket, const std::string& address)
    : socket_(socket), verify_(context.options().verify), address_(address) {
  const std::unique_ptr<SSL, decltype(&SSL_free)> made(SSL_new(context.get()), &SSL_free);
  BIO* bio = BIO_new(quiet_socket());
  if (!made || bio == nullptr) {
    BIO_free(bio);
    throw std::bad_alloc();
  }
  BIO_set_data(bio, &socket_);
  SSL_set_bio(made.get(), bio, bio);

  const std::string name = context.options().server_name.empty() ? std::string(host_of(address)) : context.options().server_name;
  bool named = false;
  if (is_number(name)) {
    named = X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(made.get()), name.c_str()) == 1;
  } else if (!name.empty()) {
    SSL_ctrl(made.get(), SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name,
             const_cast<char*>(name.c_str()));  // as the macro does
    named = SSL_set1_host(made.get(), name.c_str()) == 1;
  }
  // Without a name to compare, any certificate of a trusted issuer would do.
  if (!named && context.options().verify)
    throw error(errc::invalid_argument, "the name '" + name + "' cannot be looked for in a certificate; give one with tls_name",
                {.path = "tls"});

  SSL_up_ref(made.get());
  held_ = made.get();
}

short tls_session::shake() {
  ERR_clear_error();
  const int returned = SSL_connect(held_);
  if (returned == 1) return 0;
  const int why = SSL_get_error(held_, returned);
  if (why == SSL_ERROR_WANT_READ) return POLLIN;
  if (why == SSL_ERROR_WANT_WRITE) return POLLOUT;
  const std::string prefix = "cannot connect to Redis at " + address_ + " by TLS: ";
  const long verified = SSL_get_verify_result(held_);
  if (verify_ && verified != X509_V_OK) {
    throw error(errc::permission, prefix + "its certificate is refused, " + X509_verify_cert_error_string(verified) +
                                      "; name the file of its issuer with tls_ca, or its name with tls_name");
  }
  if (why == SSL_ERROR_SSL) {
    const std::string reason = last_problem();
    throw error(errc::unavailable, prefix + reason + "; check that it speaks TLS there, and whether it wants a client certificate",
                {.backend_code = reason, .transient = false});
  }
  throw error(errc::unavailable, prefix + "the server closed it", {.transient = true});
}

// Without a goodbye: it could block, and after fork it would end the parent's session.
tls_session::~tls_session() { SSL_free(held_); }

step_result tls_session::result_of(int returned, std::size_t bytes) {
  if (returned == 1) return {.what = step::done, .bytes = bytes};
  switch (SSL_get_error(held_, returned)) {
    case SSL_ERROR_WANT_READ:
      return {.what = step::wait_read};
    case SSL_ERROR_WANT_WRITE:
      return {.what = step::wait_write};
    case SSL_ERROR_ZERO_RETURN:
      why_ = "the server closed it";
      break;
    case SSL_ERROR_SYSCALL:
      why_ = errno == 0 ? "the server closed it" : std::generic_category().message(errno);
      ERR_clear_error();
      break;
    default:
      why_ = last_problem();
  }
  return {.what = step::closed};
}

bool tls_session::quiet() noexcept {
  ERR_clear_error();
  char byte = 0;
  std::size_t seen = 0;
  const int returned = SSL_peek_ex(held_, &byte, 1, &seen);
  return returned != 1 && SSL_get_error(held_, returned) == SSL_ERROR_WANT_READ;
}

step_result tls_session::write(std::string_view bytes) {
  if (bytes.empty()) return {};
  ERR_clear_error();
  std::size_t done = 0;
  errno = 0;
  const int returned = SSL_write_ex(held_, bytes.data(), bytes.size(), &done);
  return result_of(returned, done);
}

step_result tls_session::read(std::span<char> into) {
  ERR_clear_error();
  std::size_t done = 0;
  errno = 0;
  const int returned = SSL_read_ex(held_, into.data(), into.size(), &done);
  return result_of(returned, done);
}

}  // namespace HOLDFAST_NAMESPACE::redis
