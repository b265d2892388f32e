#include "sql/postgres_conninfo.hpp"

#include <holdfast/error.hpp>

#include "base/aes_gcm.hpp"
#include "base/local_host.hpp"
#include "base/secret.hpp"

#include <libpq-fe.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <limits>
#include <memory>
#include <span>
#include <string_view>

namespace HOLDFAST_NAMESPACE::sql::postgres {

namespace {

struct free_options {
  void operator()(PQconninfoOption* list) const noexcept {
    for (auto* each = list; each != nullptr && each->keyword != nullptr; ++each) {
      if (each->val != nullptr) wipe(std::as_writable_bytes(std::span(each->val, std::strlen(each->val))));
    }
    PQconninfoFree(list);
  }
};
using option_list = std::unique_ptr<PQconninfoOption, free_options>;

std::string_view value_of(const option_list& list, std::string_view keyword) {
  for (const auto* each = list.get(); each != nullptr && each->keyword != nullptr; ++each)
    if (each->keyword == keyword && each->val != nullptr) return each->val;
  return {};
}

struct finish_connection {
  void operator()(PGconn* connection) const noexcept { PQfinish(connection); }
};

/// What libpq would connect with: the string, the environment, the service file, its own defaults. Connects to nothing: libpq refuses the
/// port 0 before it looks up a host.
option_list resolved(const std::string& given) {
  constexpr std::array<const char*, 3> keywords{"dbname", "port", nullptr};
  const std::array<const char*, 3> values{given.c_str(), "0", nullptr};
  const std::unique_ptr<PGconn, finish_connection> probe(PQconnectStartParams(keywords.data(), values.data(), 1));
  option_list options(probe ? PQconninfo(probe.get()) : nullptr);
  if (!options) throw std::bad_alloc();
  return options;
}

/// Cuts the first part of a list with commas off.
std::string_view next_part(std::string_view& list) {
  const auto comma = list.find(',');
  const auto part = list.substr(0, comma);
  list = comma == std::string_view::npos ? std::string_view() : list.substr(comma + 1);
  return part;
}

/// Whether every host that may be connected to is this machine. An address counts more than the name beside it.
bool all_hosts_are_local(std::string_view hosts, std::string_view addresses) {
  do {
    const auto host = next_part(hosts);
    const auto address = next_part(addresses);
    if (!is_local_host(address.empty() ? host : address)) return false;
  } while (!hosts.empty() || !addresses.empty());
  return true;
}

/// libpq's own default, `prefer`, gives the password to a server that says it has no TLS, and to anything between that says so.
bool needs_tls_by_default(const option_list& parsed, const option_list& options) {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): libpq reads the environment, too
  if (!value_of(parsed, "sslmode").empty() || std::getenv("PGSSLMODE") != nullptr) return false;
  return value_of(options, "sslmode") == "prefer" && !all_hosts_are_local(value_of(options, "host"), value_of(options, "hostaddr"));
}

/// libpq reads a colon in sslkey as `engine:key`, also where a file of that name exists, and OpenSSL loads the library of the engine; its
/// name may be a path. libpq 18 writes the secrets of TLS sessions to sslkeylogfile.
void refuse_code_and_logs(const option_list& options) {
  const auto key = value_of(options, "sslkey");
  const char* const own_key = std::getenv("PGSSLKEY");  // NOLINT(concurrency-mt-unsafe): see above
  if (key.find(':') != std::string_view::npos && (own_key == nullptr || key != own_key)) {
    throw error(errc::invalid_argument,
                "sslkey of the PostgreSQL connection has a colon: libpq would load an OpenSSL engine into this process; name a key file "
                "without a colon, or set the engine in the environment variable PGSSLKEY",
                {.path = "url"});
  }
  if (!value_of(options, "sslkeylogfile").empty()) {
    throw error(errc::invalid_argument, "sslkeylogfile of the PostgreSQL connection would write the secrets of TLS to a file; remove it",
                {.path = "url"});
  }
}

/// libpq verifies the certificate with `require`, too, where there is a file of authorities.
bool has_root_certificate(std::string_view file) {
  std::error_code unknown;
  if (!file.empty()) return std::filesystem::exists(file, unknown);
  const char* const home = std::getenv("HOME");  // NOLINT(concurrency-mt-unsafe): see above
  return home != nullptr && std::filesystem::exists(std::filesystem::path(home) / ".postgresql/root.crt", unknown);
}

// libpq's own complaint would repeat the part that it stumbled over, and that may be half a password.
[[noreturn]] void refuse() {
  throw error(errc::invalid_argument,
              "the PostgreSQL connection string cannot be read; write postgresql://user:password@host:port/database?sslmode=require with "
              "parameters that libpq knows, and percent-encode special characters (@ is %40, / is %2F, : is %3A, % is %25)");
}

/// A password with a bare @ or / in it moves the parts of a URI: the rest of it would be taken for a host and shown in an error.
bool is_misread(std::string_view uri) {
  const auto scheme = uri.find("://");
  if (!uri.starts_with("postgres") || scheme == std::string_view::npos) return false;
  const auto rest = uri.substr(scheme + 3, uri.find('?') - (scheme + 3));
  const auto slash = std::min(rest.find('/'), rest.size());
  const auto authority = rest.substr(0, slash);
  return std::count(authority.begin(), authority.end(), '@') > 1 || rest.substr(slash).find('@') != std::string_view::npos;
}

}  // namespace

std::string quoted_value(std::string_view text) {
  std::string result = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') result += '\\';
    result += c;
  }
  return result + "'";
}

conninfo::conninfo(std::vector<std::pair<const char*, std::string>> words, bool tls_by_default)
    : words_(std::move(words)), tls_by_default_(tls_by_default) {
  for (const auto& [keyword, value] : words_) {
    keywords_.push_back(keyword);
    values_.push_back(value.c_str());
  }
  keywords_.push_back(nullptr);
  values_.push_back(nullptr);
}

conninfo::~conninfo() {
  for (auto& [keyword, value] : words_) wipe(value);
}

conninfo start_parameters(const postgres_options& options) {
  const auto& given = options.connection_string;
  if (given.find('\0') != std::string::npos || is_misread(given)) refuse();
  char* complaint = nullptr;
  const option_list parsed(PQconninfoParse(given.c_str(), &complaint));
  PQfreemem(complaint);
  if (!parsed || value_of(parsed, "port").find_first_not_of("0123456789,") != std::string_view::npos) refuse();

  // What is set later wins. The time zone is ours to choose (it decides what a column without a zone means); the time limit of the
  // server is a default that the caller may replace.
  auto theirs = value_of(parsed, "options");
  const option_list defaults(theirs.empty() ? PQconndefaults() : nullptr);
  if (theirs.empty()) theirs = value_of(defaults, "options");
  const auto server_limit = std::min<std::int64_t>((options.statement_timeout + server_margin).count(), std::numeric_limits<int>::max());
  auto settings = "-c statement_timeout=" + std::to_string(server_limit) + " " + std::string(theirs) + " -c TimeZone=UTC";

  // The string stands first and is taken apart there, so that what follows replaces its parts.
  // Not as an initializer list, of which copies would stay.
  std::vector<std::pair<const char*, std::string>> words;
  words.reserve(5);
  words.emplace_back("dbname", given);
  words.emplace_back("fallback_application_name", "holdfast");
  words.emplace_back("client_encoding", "UTF8");
  words.emplace_back("options", std::move(settings));
  const auto options_in_use = resolved(given);
  refuse_code_and_logs(options_in_use);
  const bool tls_by_default = needs_tls_by_default(parsed, options_in_use);
  if (tls_by_default) words.emplace_back("sslmode", "require");
  return {std::move(words), tls_by_default};
}

transport_kind transport_of(pg_conn* connection) {
  const option_list options(PQconninfo(connection));
  if (!options) throw std::bad_alloc();
  // The name says where the caller wanted to go; only an address that the caller wrote counts more.
  const std::string_view host = value_of(options, "hostaddr").empty() ? PQhost(connection) : PQhostaddr(connection);
  if (is_local_host(host)) return transport_kind::local;
  if (PQgssEncInUse(connection) != 0) return transport_kind::verified;
  if (PQsslInUse(connection) == 0) return transport_kind::plaintext;
  const auto mode = value_of(options, "sslmode");
  const bool verified = mode.starts_with("verify-") || (mode == "require" && has_root_certificate(value_of(options, "sslrootcert")));
  return verified ? transport_kind::verified : transport_kind::encrypted;
}

}  // namespace HOLDFAST_NAMESPACE::sql::postgres
