#include "store/java_peer.hpp"

#include "sql/dialect.hpp"

#include <algorithm>
#include <string_view>

namespace HOLDFAST_NAMESPACE::detail::store {

namespace {

/// Accepts the form of UUID.nameUUIDFromBytes(...).toString(): lower case, version 3, RFC variant.
bool is_java_key(std::string_view key) {
  if (key.size() != 36) return false;
  for (std::size_t i = 0; i < key.size(); ++i) {
    const char c = key[i];
    const bool dash = i == 8 || i == 13 || i == 18 || i == 23;
    if (dash ? c != '-' : !((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'))) return false;
  }
  return key[14] == '3' && (key[19] == '8' || key[19] == '9' || key[19] == 'a' || key[19] == 'b');
}

/// Accepts identifiers separated by dots. Java allows Unicode letters, so all non-ASCII bytes count
/// as letters.
bool is_binary_name(std::string_view name) {
  bool at_start = true;  // of an identifier
  for (const char c : name) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$' ||
                        (static_cast<unsigned char>(c) & 0x80U) != 0;
    const bool digit = c >= '0' && c <= '9';
    if (c == '.') {
      if (at_start) return false;
      at_start = true;
    } else {
      if (!letter && !(digit && !at_start)) return false;
      at_start = false;
    }
  }
  return !at_start;
}

/// Accepts the names that Class.forName accepts: `com.acme.Country`, `com.acme.Country$Region`,
/// `[Lcom.acme.Country;`, `[I`.
bool is_java_class(std::string_view name) {
  const auto dimensions = std::min(name.find_first_not_of('['), name.size());
  if (dimensions == 0) return is_binary_name(name);
  const auto element = name.substr(dimensions);
  if (element.size() == 1)
    return std::string_view("BCDFIJSZ").find(element.front()) != std::string_view::npos;
  return element.size() > 2 && element.front() == 'L' && element.back() == ';' &&
         is_binary_name(element.substr(1, element.size() - 2));
}

}  // namespace

void check_peer(std::optional<sql::dialect_id> dialect, const store_options& options) {
  if (options.peer == peer::none) return;
  const auto fail = [](const std::string& message) {
    throw error(errc::invalid_argument, message, {.path = "peer"});
  };
  if (dialect == sql::dialect_id::sqlite)
    fail(
        "a table in SQLite cannot be shared with Java: it stores times as integers, which JDBC "
        "reads differently; share a table on a server");
  if (dialect && sql::is_mysql(*dialect) && options.zone.empty()) {
    throw error(errc::invalid_argument,
                "the columns AS_OF and EXPIRE_ON are DATETIME, which has no time zone: a JVM in "
                "another zone would shift every time by "
                "hours; let every JVM write UTC (docs/java.md has the JDBC URLs), and set "
                "store_options::zone = \"UTC\" (failover.store.zone, --zone)",
                {.path = "zone"});
  }
  if (options.payload == payload_column::bytes)
    fail(
        "the Java library reads its payload column as text; share the table with "
        "payload_column::text");
}

void check_for_java(const entry& e) {
  const auto fail = [&](const std::string& message) {
    throw error(errc::invalid_argument, message, {.path = e.name + "/" + e.key});
  };
  if (!is_java_key(e.key)) {
    fail(
        "the table is shared with Java, which looks for UUIDs of version 3; make the key with "
        "key::style::exact and key::row_hash::md5");
  }
  if (e.payload && !is_java_class(e.payload_class)) {
    fail(
        "the table is shared with Java, but the payload class is not a Java class name; register "
        "the type under its Java name, for example com.acme.Country");
  }
}

}  // namespace HOLDFAST_NAMESPACE::detail::store
