#include "serve/auth/caller.hpp"

#include "serve/auth/audit.hpp"

#include <algorithm>
#include <utility>

namespace HOLDFAST_NAMESPACE::detail::serve {

std::string_view to_string(role value) noexcept {
  switch (value) {
    case role::viewer:
      return "viewer";
    case role::operator_:
      return "operator";
    case role::application:
      return "app";
    case role::admin:
      return "admin";
  }
  return "viewer";
}

namespace {

/// Compares part by part; `*` of the granted scope stands for any text.
bool covers(std::string_view granted, std::string_view requested) noexcept {
  for (;;) {
    const auto granted_part = granted.substr(0, granted.find(':'));
    const auto requested_part = requested.substr(0, requested.find(':'));
    if (granted_part != "*" && granted_part != requested_part) return false;
    const bool granted_ends = granted_part.size() == granted.size();
    const bool requested_ends = requested_part.size() == requested.size();
    if (granted_ends || requested_ends) return granted_ends && requested_ends;
    granted.remove_prefix(granted_part.size() + 1);
    requested.remove_prefix(requested_part.size() + 1);
  }
}

}  // namespace

bool caller::has_scope(std::string_view scope) const noexcept {
  return scopes.empty() || std::ranges::any_of(scopes, [&](const std::string& granted) {
           return covers(granted, scope);
         });
}

void audit_log::record(const caller& actor, std::string action, std::string subject,
                       std::uint64_t count, std::string result) noexcept {
  record(audit_entry{.caller = actor.name,
                     .address = actor.address,
                     .tenant = actor.tenant,
                     .action = std::move(action),
                     .subject = std::move(subject),
                     .count = count,
                     .result = std::move(result)});
}

}  // namespace HOLDFAST_NAMESPACE::detail::serve
