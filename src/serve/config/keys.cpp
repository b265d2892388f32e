#include "serve/config/keys.hpp"

#include "failover/config/key_table.hpp"

#include <algorithm>
#include <array>
#include <optional>

namespace HOLDFAST_NAMESPACE::detail::serve::config {

namespace {

using enum value_kind;

constexpr known_key number(std::string_view name, std::string_view default_value,
                           std::size_t minimum, std::size_t maximum, std::string_view description) {
  return {name, count, default_value, description, {}, minimum, maximum};
}

constexpr std::array table{
    known_key{"serve.listen", names, "127.0.0.1:7360",
              "addresses of the API: host:port, [host]:port, unix:/path"},
    known_key{"serve.names", names, "",
              "values of Host that are answered, beside the addresses and localhost"},
    known_key{"serve.label", text, "", "name of this installation for people: production"},
    known_key{"serve.state", url, "",
              "database of tokens, sessions, audit log and history; default "
              "$STATE_DIRECTORY/serve.db, else ~/.local/state/holdfast/serve.db"},
    known_key{"serve.allow-plain", flag, "false",
              "true: listen without TLS on addresses that are not loopback"},
    known_key{"serve.open", flag, "false",
              "true: callers on this machine need no token; only with loopback addresses"},
    known_key{"serve.trust.header", text, "",
              "field in which a proxy names the user that it has authenticated: X-Forwarded-User"},
    known_key{"serve.trust.addresses", names, "",
              "addresses of that proxy, without port; unix: the Unix socket"},
    known_key{"serve.trust.viewers", names, "", "users with the role viewer; *: all others"},
    known_key{"serve.trust.operators", names, "", "users with the role operator"},
    known_key{"serve.trust.admins", names, "", "users with the role admin"},
    known_key{"serve.tls.certificate", text, "", "file with the certificate and its chain"},
    known_key{"serve.tls.key", text, "", "file with its private key"},
    known_key{"serve.tls.client-ca", text, "",
              "file with the issuers of client certificates; each client needs one then"},
    known_key{"serve.clients.*.certificates", names, "",
              "certificates of this client: dns:, uri:, email: or cn: and a name, or sha256: and a "
              "fingerprint"},
    known_key{"serve.clients.*.role", choice, "", "what it may do", "viewer, operator, app, admin"},
    known_key{"serve.clients.*.scopes", names, "",
              "with the role app: what it may use, as for tokens; default: everything"},
    known_key{"serve.clients.*.tenant", text, "", "the only tenant that it sees; default: all"},
    number("serve.loops", "", 1, 64,
           "threads that read and write; default: as many as processors, at most 4"),
    known_key{"serve.access-log", text, "-",
              "file to which a line of JSON is added for each request; -: standard output; empty: "
              "none"},
    number("serve.limits.connections", "4096", 1, 1'000'000, "open connections"),
    number("serve.limits.connections-per-address", "512", 1, 1'000'000,
           "open connections of one address that is not loopback"),
    known_key{"serve.limits.head-timeout", duration, "10s", "time for the header of a request"},
    known_key{"serve.limits.idle-timeout", duration, "60s", "time between requests"},
    number("serve.limits.workers", "", 1, 1024,
           "threads for what may wait for a database; default: 16 for each database, and 16"),
    number("serve.limits.queue", "1024", 1, 1'000'000,
           "requests that may wait for a worker; more get 503"),
    known_key{"serve.drain", duration, "5s",
              "after SIGTERM: time in which requests are accepted while /readyz says 503"},
    known_key{"serve.grace", duration, "30s",
              "after SIGTERM: time until the process ends, whatever still runs"},

    known_key{"gateway.listen", names, "127.0.0.1:7361",
              "addresses of the gateway: host:port, [host]:port, unix:/path"},
    known_key{"gateway.allow-plain", flag, "false",
              "true: listen without TLS on addresses that are not loopback"},
    known_key{"gateway.tls.certificate", text, "", "file with the certificate and its chain"},
    known_key{"gateway.tls.key", text, "", "file with its private key"},
    known_key{"gateway.upstream-ca", text, "",
              "file with the certificates to trust for https upstreams; default: those of the "
              "system"},
    known_key{"gateway.secret", secret, "",
              "key of the hash that stands for credentials; the same for all gateways of a store"},
    known_key{"gateway.trusted-proxies", names, "",
              "addresses of clients whose X-Forwarded-For and Forwarded are passed on; unix: the "
              "Unix socket"},
    known_key{"gateway.access-log", text, "-",
              "file to which a line of JSON is added for each request; -: standard output; empty: "
              "none"},
    number("gateway.limits.connections", "4096", 1, 1'000'000, "open connections of clients"),
    number("gateway.limits.connections-per-address", "512", 1, 1'000'000,
           "open connections of one address that is not loopback"),
    number("gateway.limits.body", "8388608", 0, 1'073'741'824, "bytes of the content of a request"),
    number("gateway.limits.workers", "16", 1, 1024, "threads for what may wait for the store"),
    number("gateway.limits.queue", "1024", 1, 1'000'000, "requests that may wait for a worker"),
    known_key{"gateway.routes.*.path", text, "/",
              "beginning of the path, in whole segments; the longest one wins"},
    known_key{"gateway.routes.*.host", text, "", "only requests for this host"},
    known_key{"gateway.routes.*.upstream", names, "",
              "the servers: http://host:port or https://host:port"},
    known_key{"gateway.routes.*.vary", names, "",
              "fields of requests that are part of the key; authorization and cookie are hashed"},
    known_key{"gateway.routes.*.query-ignore", names, "",
              "parameters that are neither forwarded nor part of the key; utm_* stands for many"},
    known_key{"gateway.routes.*.failures", names, "",
              "statuses that are failures, beside 500, 502, 503 and 504"},
    known_key{"gateway.routes.*.serve-despite", names, "",
              "directives that do not forbid stale answers: must-revalidate, proxy-revalidate, "
              "no-cache, s-maxage"},
    known_key{"gateway.routes.*.superseded", choice, "invalidate",
              "keep: a newer answer that may not be kept leaves the older one in force",
              "invalidate, keep"},
    known_key{"gateway.routes.*.request-no-cache", choice, "advisory",
              "obey: a request with no-cache gets no stale answer", "advisory, obey"},
    known_key{"gateway.routes.*.host-header", choice, "upstream",
              "client: forward the Host of the client, which is then part of the key",
              "upstream, client"},
    number("gateway.routes.*.hold", "65536", 0, 1'048'576,
           "bytes of a response that are held until it is complete, so that a cut can be replaced"),
    number("gateway.routes.*.max-payload", "1048576", 1, 15'728'640,
           "bytes of the largest content that is kept"),
    known_key{"gateway.routes.*.max-expiry", long_duration, "7d",
              "longest time for which an answer is kept, whatever its stale-if-error says"},
    known_key{"gateway.routes.*.other-deadline", duration, "60s",
              "time limit of methods other than GET and HEAD"},
    known_key{"gateway.routes.*.tell", choice, "all", "which clients get Cache-Status",
              "all, loopback, none"},
    known_key{"gateway.routes.*.legacy-warning", flag, "false",
              "true: stale answers have the obsolete field Warning"},

    known_key{"stores.*.url", url, "", "the database: sqlite:, postgresql://, mysql://, ..."},
    known_key{"stores.*.user", text, "", "instead of the one in the url"},
    known_key{"stores.*.password", secret, "", "instead of the one in the url"},
    known_key{"stores.*.password-file", text, "", "its first line is the password"},
    known_key{"stores.*.prefix", text, "", "prefix of the table name FAILOVER_STORE"},
    known_key{"stores.*.create-schema", flag, "false",
              "create the table and its index if they do not exist"},
    known_key{"stores.*.payload-column", choice, "text", "type of the payload column",
              "text, bytes"},
    number("stores.*.connections", "", 2, 1000,
           "maximum number of connections; default: 20, and 4 for sqlite:"),
    known_key{"stores.*.statement-timeout", duration, "10s",
              "time limit for one statement, even if the server hangs"},

    known_key{"outboxes.*.url", url, "", "the database, or redis://"},
    known_key{"outboxes.*.user", text, "", "instead of the one in the url"},
    known_key{"outboxes.*.password", secret, "", "instead of the one in the url"},
    known_key{"outboxes.*.password-file", text, "", "its first line is the password"},
    known_key{"outboxes.*.prefix", text, "{identity:outbox}",
              "name of the outbox, with a hash tag"},
    number("outboxes.*.lanes", "1", 1, 256, "a power of two; fixed when the outbox is created"),
    known_key{"outboxes.*.create-schema", flag, "false",
              "SQL: create the tables if they do not exist"},
    known_key{"outboxes.*.dedup-window", duration, "5m",
              "how long the ids of delivered events are remembered"},
    number("outboxes.*.max-deliveries", "10", 1, 1'000'000,
           "claims of an event without a settlement after which it is parked"),
    number("outboxes.*.connections", "", 2, 1000,
           "maximum number of connections; default: 20, and 4 for sqlite:"),
    known_key{"outboxes.*.statement-timeout", duration, "10s",
              "time limit for one statement, even if the server hangs"},

    known_key{"sequences.url", url, "", "the database, or redis://"},
    known_key{"sequences.user", text, "", "instead of the one in the url"},
    known_key{"sequences.password", secret, "", "instead of the one in the url"},
    known_key{"sequences.password-file", text, "", "its first line is the password"},
    known_key{"sequences.prefix", text, "", "prefix of the table name SEQUENCES"},
    known_key{"sequences.create-schema", flag, "false", "create the table if it does not exist"},
    known_key{"sequences.allow-unsafe", flag, "false",
              "accept a database whose settings could lose granted ids in a crash"},
    known_key{"sequences.fence", choice, "",
              "on Redis, required there: protection against duplicates after a failover",
              "super, clock, wait, none"},
    known_key{"sequences.super-store", url, "",
              "with fence super: SQL database that grants large blocks"},
    number("sequences.connections", "", 2, 1000,
           "maximum number of connections; default: 20, and 4 for sqlite:"),
    known_key{"sequences.statement-timeout", duration, "10s",
              "time limit for one statement, even if the server hangs"},
};

}  // namespace

std::span<const known_key> known_keys() noexcept { return table; }

const known_key* find_key(const key_path& path) noexcept {
  return failover::config::find_in(known_keys(), path);
}

std::optional<std::size_t> name_position(const known_key& key) noexcept {
  const auto star = key.name.find('*');
  if (star == std::string_view::npos) return std::nullopt;
  return static_cast<std::size_t>(std::ranges::count(key.name.substr(0, star), '.'));
}

std::string_view named_section(const known_key& key) noexcept {
  const auto star = key.name.find('*');
  return star == std::string_view::npos ? std::string_view{} : key.name.substr(0, star - 1);
}

bool is_section(const key_path& path) noexcept {
  return failover::config::has_section(known_keys(), path);
}

std::string nearest_key(const key_path& path) {
  return failover::config::nearest_in(known_keys(), path);
}

}  // namespace HOLDFAST_NAMESPACE::detail::serve::config
