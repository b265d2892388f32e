#pragma once

/// \file
/// Routes: which requests go to which upstream, and the rules for them. A route is a point of the
/// engine, which has its expiry, deadline, breaker and retries.

#include <holdfast/version.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::serve::gateway {

/// Which clients are told in Cache-Status what the gateway did.
enum class status_audience : std::uint8_t { all, loopback, none };

/// Directives of a response that forbid a stale answer, and that the owner of the upstream
/// overrides (RFC 9111, section 4.2.4).
struct overridden_directives {
  bool must_revalidate = false;
  bool proxy_revalidate = false;
  bool no_cache = false;
  bool s_maxage = false;
};

struct route {
  /// Name of the point.
  std::string name{};
  /// Whole segments: `/api` and `/api/` match `/api/x`, but not `/apix`.
  std::string path = "/";
  /// In lower case, without a port. Empty: any.
  std::string host{};
  /// `http://host:port` or `https://host:port`.
  std::vector<std::string> upstreams{};
  /// Request fields that are part of the key, in lower case.
  std::vector<std::string> vary{};
  /// Names of parameters that are not part of the key; a `*` at the end stands for any text.
  std::vector<std::string> ignored_parameters{};
  /// Statuses that are failures, beside 500, 502, 503 and 504.
  std::vector<int> failures{};
  overridden_directives overridden{};
  /// A newer answer that may not be kept leaves the older one in force.
  bool keep_superseded = false;
  /// A request with no-cache refuses a stale answer.
  bool obey_request_no_cache = false;
  /// Forward the Host of the client, which is then part of the key.
  bool forward_host = false;
  /// Bytes of a response that are held until it is complete, so that a cut can be replaced.
  std::size_t hold = std::size_t{64} << 10U;
  /// Largest content that is kept.
  std::size_t max_payload = std::size_t{1} << 20U;
  /// Longest time for which an answer is kept, whatever its stale-if-error says.
  std::chrono::milliseconds max_expiry = std::chrono::days(7);
  /// Time limit of methods other than GET and HEAD.
  std::chrono::milliseconds other_deadline = std::chrono::seconds(60);
  status_audience audience = status_audience::all;
  /// Add the obsolete field Warning.
  bool legacy_warning = false;

  /// Whether the caller is part of the key, so that private answers may be kept.
  [[nodiscard]] bool varies_by(std::string_view field) const noexcept;
};

/// Thread-safety: immutable.
class route_table {
 public:
  explicit route_table(std::vector<route> routes);

  /// The route with the longest path; of two, the one that names the host. Null if there is none.
  /// `host` is a value of Host.
  [[nodiscard]] const route* find(std::string_view host, std::string_view path) const noexcept;
  [[nodiscard]] const std::vector<route>& routes() const noexcept { return routes_; }

 private:
  std::vector<route> routes_;
};

/// The value of Host in lower case, without its port.
[[nodiscard]] std::string host_without_port(std::string_view host);

}  // namespace HOLDFAST_NAMESPACE::detail::serve::gateway
