#include "sql/sqlite_errors.hpp"

#include "sql/unfilled_column.hpp"

namespace HOLDFAST_NAMESPACE::sql {

namespace {

/// SQLite's numbers, which never change (https://sqlite.org/rescode.html): a build without SQLite explains them all the same.
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

}  // namespace

error sqlite_error(int extended, const std::string& message) {
  const int code = extended & 0xFF;
  error::details more{.backend_code = std::to_string(extended)};
  switch (code) {
    case busy:
    case locked:
      more.transient = true;
      return {errc::unavailable, "the database file is locked by another process; try again, or raise the statement timeout", more};
    case interrupted:
      more.transient = true;
      return {errc::timeout, "the statement did not end in time", more};
    case full:
      more.transient = true;
      return {errc::unavailable, "the disk is full; nothing was written", more};
    case io_failure:
      return {errc::unavailable, "the disk failed: " + message, more};
    case read_only:
      return {errc::permission, "the database file is read-only; check its owner and its directory's", more};
    case cannot_open:
      return {errc::permission, "the database file cannot be opened; check that its directory exists and may be written", more};
    case no_permission:
    case no_authority:
      return {errc::permission, message, more};
    case not_a_database:
      return {errc::malformed, "the file is not an SQLite database; choose another, or remove it", more};
    case corrupt:
      return {errc::malformed, "the database file is damaged: " + message + "; restore it from a copy", more};
    case too_big:
      return {errc::too_large, "the value is larger than the 128 MiB that an SQLite database may hold here", more};
    case constraint:
      if (extended == primary_key_constraint || extended == unique_constraint) return {errc::duplicate, "the key is there already", more};
      if (extended == not_null_constraint) {
        return {errc::missing_object, message + "; " + std::string(unfilled_column), more};
      }
      return {errc::invalid_argument, message, more};
    case any_error:
      if (message.starts_with("no such table")) {
        return {errc::missing_object,
                message + "; create it with --create-schema (in C++: .create_schema), or see: holdfast store schema --dialect sqlite",
                more};
      }
      if (message.starts_with("no such column") || message.find("has no column") != std::string::npos)
        return {errc::missing_object, message, more};
      return {errc::grammar, message, more};
    default:
      return {errc::internal, "SQLite says: " + message, more};
  }
}

}  // namespace HOLDFAST_NAMESPACE::sql
