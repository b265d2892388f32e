// The names of the enumerations of SQL connections. A value that is not in its enumeration is
// "unknown".

#include <holdfast/sql.hpp>

#include <string_view>

namespace HOLDFAST_NAMESPACE::sql {

std::string_view to_string(type value_type) noexcept {
  switch (value_type) {
    case type::integer:
      return "integer";
    case type::text:
      return "text";
    case type::bytes:
      return "bytes";
    case type::time:
      return "time";
  }
  return "unknown";
}

std::string_view to_string(transport_kind kind) noexcept {
  switch (kind) {
    case transport_kind::unknown:
      return "unknown";
    case transport_kind::local:
      return "local";
    case transport_kind::plaintext:
      return "plaintext";
    case transport_kind::encrypted:
      return "encrypted";
    case transport_kind::verified:
      return "verified";
  }
  return "unknown";
}

}  // namespace HOLDFAST_NAMESPACE::sql
