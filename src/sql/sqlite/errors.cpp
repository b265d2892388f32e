#include "sql/sqlite/errors.hpp"

#include "sql/error_class.hpp"

#include <string_view>

namespace HOLDFAST_NAMESPACE::detail::sql::sqlite {

namespace {

/// The values of SQLite's result codes never change (https://sqlite.org/rescode.html). They are
/// repeated here for builds without SQLite.
enum result_code : int {
  any_error = 1,
  no_permission = 3,
  busy = 5,
  locked = 6,
  read_only = 8,
  interrupted = 9,
  io_failure = 10,
  corrupt = 11,
  full = 13,
  cannot_open = 14,
  too_big = 18,
  constraint = 19,
  no_authority = 23,
  not_a_database = 26,
  not_null_constraint = 1299,
  primary_key_constraint = 1555,
  unique_constraint = 2067,
};

/// The column in "NOT NULL constraint failed: TABLE.COLUMN".
std::string column_in(std::string_view message) {
  const auto dot = message.rfind('.');
  return dot == std::string_view::npos ? std::string() : std::string(message.substr(dot + 1));
}

error constraint_error(int extended_code, const std::string& message, error::details details) {
  if (extended_code == primary_key_constraint || extended_code == unique_constraint)
    return {errc::duplicate, "the key is there already", details};
  if (extended_code == not_null_constraint) {
    details.not_null_column = column_in(message);
    return {errc::missing_object, message + "; " + std::string(not_null_advice), details};
  }
  return {errc::invalid_argument, message, details};
}

/// SQLite has one code for everything that is wrong with the text of a statement.
error text_error(const std::string& message, const error::details& details) {
  if (message.starts_with("no such table")) {
    return {errc::missing_object,
            message +
                "; create it with --create-schema (in C++: .create_schema), or see: holdfast "
                "store schema --dialect sqlite",
            details};
  }
  if (message.starts_with("no such column") || message.find("has no column") != std::string::npos)
    return {errc::missing_object, message, details};
  return {errc::grammar, message, details};
}

}  // namespace

error to_error(int extended_code, const std::string& message) {
  const int code = extended_code & 0xFF;
  const error::details details{
      .backend_code = std::to_string(extended_code),
      .transient = code == busy || code == locked || code == interrupted || code == full};
  switch (code) {
    case busy:
    case locked:
      return {errc::unavailable,
              "the database file is locked by another process; try again, or raise the statement "
              "timeout",
              details};
    case interrupted:
      return {errc::timeout, "the statement did not end in time", details};
    case full:
      return {errc::unavailable, "the disk is full; nothing was written", details};
    case io_failure:
      return {errc::unavailable, "the disk failed: " + message, details};
    case read_only:
      return {
          errc::permission,
          "the database file is read-only; remove mode=ro from the URL, or check the permissions "
          "of the file and its directory",
          details};
    case cannot_open:
      return {
          errc::permission,
          "the database file cannot be opened; check that its directory exists and may be written",
          details};
    case no_permission:
    case no_authority:
      return {errc::permission, message, details};
    case not_a_database:
      return {errc::malformed, "the file is not an SQLite database; choose another, or remove it",
              details};
    case corrupt:
      return {errc::malformed,
              "the database file is damaged: " + message + "; restore it from a backup", details};
    case too_big:
      return {errc::too_large,
              "the value is larger than the 128 MiB that an SQLite database may hold here",
              details};
    case constraint:
      return constraint_error(extended_code, message, details);
    case any_error:
      return text_error(message, details);
    default:
      return {errc::internal, "SQLite says: " + message, details};
  }
}

}  // namespace HOLDFAST_NAMESPACE::detail::sql::sqlite
