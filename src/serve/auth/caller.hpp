#pragma once

#include <holdfast/version.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace HOLDFAST_NAMESPACE::detail::serve {

enum class role : std::uint8_t {
  viewer,       ///< sees numbers and names
  operator_,    ///< acts: replay, discard, pause, invalidate, drill
  application,  ///< uses the four jobs, within its scopes and its tenant; written `app`
  admin         ///< everything; reveals payloads, resets, reads the audit log
};
/// `viewer`, `operator`, `app`, `admin`.
[[nodiscard]] std::string_view to_string(role value) noexcept;

/// Who sends a request.
struct caller {
  /// The name of the token, or of the user. Empty: not identified.
  std::string name{};
  serve::role role = role::viewer;
  /// False: no token and no session. Such a caller reaches public endpoints only.
  bool identified = false;
  /// Of an application: `outbox:orders:publish`, `store:*:read`. Empty: all.
  std::vector<std::string> scopes{};
  /// The only tenant that the caller sees and touches. Empty: all.
  std::string tenant{};
  /// Host of the client, or `unix`.
  std::string address{};

  /// Whether a scope such as `store:main:write` is granted. A part `*` of a granted scope stands
  /// for any text.
  [[nodiscard]] bool has_scope(std::string_view scope) const noexcept;
};

}  // namespace HOLDFAST_NAMESPACE::detail::serve
