#include "sql/driver_support.hpp"

#include <holdfast/error.hpp>

#include <unistd.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>

namespace HOLDFAST_NAMESPACE::detail::sql {

namespace {

[[noreturn]] void refuse_inherited() {
  throw error(errc::invalid_argument,
              "the connection was opened by the parent process; open one in this process");
}

}  // namespace

void check_parameter_count(const statement& s, std::span<const parameter> parameters) {
  if (parameters.size() == s.parameters.size()) return;
  throw error(errc::invalid_argument, "the statement has " + std::to_string(s.parameters.size()) +
                                          " parameters, but " + std::to_string(parameters.size()) +
                                          " values are given");
}

std::size_t check_batch(const batch_statement& s, std::span<const std::vector<parameter>> columns,
                        std::span<const parameter> common) {
  if (columns.empty() || columns.size() != s.columns.size() || common.size() != s.common.size())
    throw error(errc::invalid_argument,
                "the batch declares " + std::to_string(s.columns.size()) + " columns and " +
                    std::to_string(s.common.size()) + " common parameters, but " +
                    std::to_string(columns.size()) + " and " + std::to_string(common.size()) +
                    " are given; it needs at least one column");
  const auto rows = columns.front().size();
  if (std::ranges::any_of(columns, [rows](const auto& column) { return column.size() != rows; }))
    throw error(errc::invalid_argument, "the columns of a batch must have equal length");
  return rows;
}

void check_column_count(std::size_t returned, std::size_t declared) {
  if (returned == declared) return;
  throw error(errc::invalid_argument, "the statement returns " + std::to_string(returned) +
                                          " columns, but " + std::to_string(declared) +
                                          " are expected");
}

void check_statement_text(std::string_view text) {
  if (text.find('\0') != std::string_view::npos)
    throw error(errc::invalid_argument, "the text of a statement contains a NUL byte");
}

void check_process(pid_t owner) {
  if (getpid() != owner) refuse_inherited();
}
void check_process(const fork_detector& process) {
  if (process.inherited_by_fork()) refuse_inherited();
}

void fail_type(type declared) {
  static constexpr std::array<std::string_view, 4> names{"integer", "text", "bytes", "time"};
  throw error(errc::invalid_argument,
              "a parameter is declared as " +
                  std::string(names.at(static_cast<std::size_t>(declared))) +
                  ", but its value has another type");
}

std::optional<std::string_view> characters_of(const parameter& p) noexcept {
  if (const auto* text = std::get_if<std::string_view>(&p)) return *text;
  if (const auto* bytes = std::get_if<std::span<const std::byte>>(&p))
    return std::string_view(reinterpret_cast<const char*>(bytes->data()), bytes->size());
  return std::nullopt;
}

void append_result(outcome& total, outcome part, std::size_t columns) {
  total.affected += part.affected;
  for (std::size_t row = 0; row < part.rows.size(); ++row)
    for (std::size_t column = 0; column < columns; ++column)
      total.rows.add(std::move(part.rows.at(row, column)));
}

}  // namespace HOLDFAST_NAMESPACE::detail::sql
