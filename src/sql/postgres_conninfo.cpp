#include "sql/postgres_conninfo.hpp"

#include <holdfast/error.hpp>

#include <libpq-fe.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <string_view>

namespace HOLDFAST_NAMESPACE::sql::postgres {

namespace {

struct free_options {
  void operator()(PQconninfoOption* o) const noexcept { PQconninfoFree(o); }
};
using option_list = std::unique_ptr<PQconninfoOption, free_options>;

std::string_view value_of(const option_list& list, std::string_view keyword) {
  for (const auto* each = list.get(); each != nullptr && each->keyword != nullptr; ++each)
    if (each->keyword == keyword && each->val != nullptr) return each->val;
  return {};
}

// libpq's own complaint would repeat the part that it stumbled over, and that may be half a password.
[[noreturn]] void refuse() {
  throw error(errc::invalid_argument,
              "the PostgreSQL connection string cannot be read; write postgresql://user:password@host:port/database?sslmode=require with "
              "parameters that libpq knows, and percent-encode special characters (@ is %40, / is %2F, : is %3A, % is %25)");
}

/// A password with a bare @ or / in it moves the parts of a URI: the rest of it would be taken for a host and shown in an error.
bool is_misread(std::string_view uri) {
  const auto scheme = uri.find("://");
  if (!uri.starts_with("postgres") || scheme == std::string_view::npos) return false;
  const auto rest = uri.substr(scheme + 3, uri.find('?') - (scheme + 3));
  const auto slash = std::min(rest.find('/'), rest.size());
  const auto authority = rest.substr(0, slash);
  return std::count(authority.begin(), authority.end(), '@') > 1 || rest.substr(slash).find('@') != std::string_view::npos;
}

}  // namespace

std::string quoted_value(std::string_view text) {
  std::string result = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') result += '\\';
    result += c;
  }
  return result + "'";
}

conninfo::conninfo(std::vector<std::pair<const char*, std::string>> words) : words_(std::move(words)) {
  for (const auto& [keyword, value] : words_) {
    keywords_.push_back(keyword);
    values_.push_back(value.c_str());
  }
  keywords_.push_back(nullptr);
  values_.push_back(nullptr);
}

conninfo start_parameters(const postgres_options& options) {
  const auto& given = options.connection_string;
  if (given.find('\0') != std::string::npos || is_misread(given)) refuse();
  char* complaint = nullptr;
  const option_list parsed(PQconninfoParse(given.c_str(), &complaint));
  PQfreemem(complaint);
  if (!parsed || value_of(parsed, "port").find_first_not_of("0123456789,") != std::string_view::npos) refuse();

  // What is set later wins. The time zone is ours to choose (it decides what a column without a zone means); the time limit of the
  // server is a default that the caller may replace.
  auto theirs = value_of(parsed, "options");
  const option_list defaults(theirs.empty() ? PQconndefaults() : nullptr);
  if (theirs.empty()) theirs = value_of(defaults, "options");
  const auto server_limit = std::min<std::int64_t>((options.statement_timeout + server_margin).count(), std::numeric_limits<int>::max());
  auto settings = "-c statement_timeout=" + std::to_string(server_limit) + " " + std::string(theirs) + " -c TimeZone=UTC";

  // The string stands first and is taken apart there, so that what follows replaces its parts.
  return conninfo(
      {{"dbname", given}, {"fallback_application_name", "holdfast"}, {"client_encoding", "UTF8"}, {"options", std::move(settings)}});
}

}  // namespace HOLDFAST_NAMESPACE::sql::postgres
