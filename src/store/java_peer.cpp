#include "store/java_peer.hpp"

#include <algorithm>
#include <string_view>

namespace HOLDFAST_NAMESPACE {

namespace {

/// As UUID.nameUUIDFromBytes(...).toString() writes it: lower case, version 3, the RFC's variant.
bool is_java_key(std::string_view key) {
  if (key.size() != 36) return false;
  for (std::size_t i = 0; i < key.size(); ++i) {
    const char c = key[i];
    const bool dash = i == 8 || i == 13 || i == 18 || i == 23;
    if (dash ? c != '-' : !((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'))) return false;
  }
  return key[14] == '3' && (key[19] == '8' || key[19] == '9' || key[19] == 'a' || key[19] == 'b');
}

/// Identifiers between dots. Java's letters are those of Unicode: what is beyond ASCII is left to Java.
bool is_binary_name(std::string_view name) {
  bool first = true;
  for (const char c : name) {
    const bool letter =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$' || (static_cast<unsigned char>(c) & 0x80U) != 0;
    const bool digit = c >= '0' && c <= '9';
    if (c == '.') {
      if (first) return false;
      first = true;
    } else {
      if (!letter && !(digit && !first)) return false;
      first = false;
    }
  }
  return !first;
}

/// What Class.forName takes: `com.acme.Country`, `com.acme.Country$Region`, `[Lcom.acme.Country;`, `[I`.
bool is_java_class(std::string_view name) {
  const auto dimensions = std::min(name.find_first_not_of('['), name.size());
  if (dimensions == 0) return is_binary_name(name);
  const auto of = name.substr(dimensions);
  if (of.size() == 1) return std::string_view("BCDFIJSZ").find(of.front()) != std::string_view::npos;
  return of.size() > 2 && of.front() == 'L' && of.back() == ';' && is_binary_name(of.substr(1, of.size() - 2));
}

}  // namespace

void check_peer(sql::dialect_id dialect, const store_options& options) {
  if (options.peer == peer::none) return;
  const auto fail = [](const std::string& why) { throw error(errc::invalid_argument, why, {.path = "peer"}); };
  if (dialect == sql::dialect_id::sqlite)
    fail("a table in SQLite cannot be shared with Java: its times are whole numbers, which JDBC reads as others; share one on a server");
  const bool mysql = dialect == sql::dialect_id::mysql || dialect == sql::dialect_id::mariadb;
  if (mysql && options.zone.empty()) {
    throw error(errc::invalid_argument,
                "the columns AS_OF and EXPIRE_ON are DATETIME, which has no time zone: a JVM in another zone would shift every time by "
                "hours; let every JVM write UTC (docs/java.md has the JDBC URLs), and say so with store_options::zone = \"UTC\" "
                "(failover.store.zone, --zone)",
                {.path = "zone"});
  }
  if (options.payload == payload_column::bytes)
    fail("the Java library reads its payload column as text; share the table with payload_column::text");
}

void check_for_java(const entry& e) {
  const auto fail = [&](const std::string& why) { throw error(errc::invalid_argument, why, {.path = e.name + "/" + e.key}); };
  if (!is_java_key(e.key)) {
    fail("the table is shared with Java, which looks for UUIDs of version 3; make the key with key::style::exact and key::row_hash::md5");
  }
  if (e.payload && !is_java_class(e.payload_class)) {
    fail("the table is shared with Java, and the payload class is no class of Java; register the type as Java names it: com.acme.Country");
  }
}

}  // namespace HOLDFAST_NAMESPACE
