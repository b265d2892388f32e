#pragma once

#include <holdfast/sql.hpp>
#include <holdfast/version.hpp>

#include "sql/postgres_binary.hpp"

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// H2's PostgreSQL port takes and gives text: binary results fail, and so do binary times. Only bytes travel as they are.
namespace HOLDFAST_NAMESPACE::sql::h2 {

/// `2026-11-15 12:00:00.000001+00`. Throws nothing: H2's years go far beyond ours.
[[nodiscard]] std::string time_text(timestamp when);
/// Any offset; digits beyond microseconds are cut off. Nothing when it is no time, or none of ours.
[[nodiscard]] std::optional<timestamp> read_time(std::string_view text);

/// A value of a result; a NUL follows the text, as libpq has it. `is_bytea`: the column holds escaped bytes. Throws errc::malformed for a
/// number that is none; a time that is none is NULL.
[[nodiscard]] value read_text(const char* text, std::size_t size, type wanted, bool is_bytea);

/// What is bound to a statement, copied: libpq takes text up to its NUL.
class text_bindings {
 public:
  void clear() noexcept;
  /// Throws errc::invalid_argument (a value of another type, text with a NUL byte) and errc::too_large, both before H2 sees anything: a
  /// failure there would run the statement before once more.
  void add(type declared, const parameter& value);
  /// To be called after the last add; valid until the next one.
  [[nodiscard]] postgres::wire_parameters wire();

 private:
  std::vector<std::optional<std::string>> texts_{};
  std::vector<postgres::oid> types_{};
  std::vector<int> formats_{};
  std::vector<int> lengths_{};
  std::vector<const char*> values_{};
};

}  // namespace HOLDFAST_NAMESPACE::sql::h2
