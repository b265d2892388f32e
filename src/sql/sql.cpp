#include <holdfast/sql.hpp>

#include <array>

namespace HOLDFAST_NAMESPACE::sql {

connection::~connection() = default;

void connection::listen(const std::string&) {
  throw error(errc::unsupported_type, "this database cannot send notifications; poll it instead");
}

std::optional<std::string> connection::notice(std::chrono::milliseconds) { return std::nullopt; }

bool connection::responds(std::chrono::milliseconds) noexcept { return true; }

bool connection::read_only() const noexcept { return false; }

std::string_view to_string(dialect_id id) noexcept {
  static constexpr std::array<std::string_view, 8> names{
      "sqlite", "postgresql", "mysql", "mariadb", "h2", "sqlserver", "oracle", "unknown"};
  return names[static_cast<std::size_t>(id)];
}

}  // namespace HOLDFAST_NAMESPACE::sql
