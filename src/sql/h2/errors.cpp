#include "sql/h2/errors.hpp"

#include "sql/error_class.hpp"

#include <string>

namespace HOLDFAST_NAMESPACE::detail::sql::h2 {

namespace {

constexpr std::size_t text_limit = 300;

constexpr error_class missing_table{
    errc::missing_object, permanent,
    "the table is missing; create it with --create-schema (in C++: .create_schema), or see: "
    "holdfast store schema --dialect h2"};

constexpr sqlstate_class classes[]{
    {"08", {errc::unavailable, transient, "the connection failed; try again"}},
    {"21", {errc::invalid_argument}},
    {"22001",
     {errc::too_large, permanent, "a value is too long for its column; use a longer one, or CLOB",
      hidden}},
    {"22003",
     {errc::out_of_range, permanent, "a number is outside the range of its column", hidden}},
    {"22",
     {errc::invalid_argument, permanent,
      "H2 refused a value (its message is hidden, since it may repeat the value)", hidden}},
    {"23502",
     {.code = errc::missing_object,
      .advice = not_null_advice,
      .hides_server_text = true,
      .is_not_null_violation = true}},
    {"23505", {errc::duplicate, permanent, "the key is there already", hidden}},
    {"23",
     {errc::invalid_argument, permanent, "H2 refused a row: it violates a constraint of the table",
      hidden}},
    {"28000", {errc::permission, permanent, "check the user and the password"}},
    {"40", {errc::unavailable, transient, "try again"}},
    {"42S02", missing_table},
    {"42S03", missing_table},
    {"42S04", missing_table},
    {"42S22",
     {errc::missing_object, permanent,
      "the column is missing; see what is needed with: holdfast store schema --dialect h2"}},
    {"42", {errc::grammar}},
    {"57014", {errc::timeout, transient, "nothing was changed"}},
    {"90020", {errc::unavailable, transient, "another process has the database open"}},
    {"90028",
     {errc::unavailable, transient, "the file could not be read; look at the server's log"}},
    {"90031",
     {errc::unavailable, transient, "the disk failed, or is full; look at the server's log"}},
    {"90040", {errc::permission}},
    {"90067", {errc::unavailable, transient, "the connection failed; try again"}},
    {"90079",
     {errc::missing_object, permanent, "create the schema, or correct the prefix of the table"}},
    {"90096", {errc::permission, permanent, "grant it to the user of the connection"}},
    {"90097", {errc::unavailable, transient, "the database is read-only"}},
    {"90098", {errc::unavailable, transient, "the database was closed; try again"}},
    {"90121", {errc::unavailable, transient, "the database was closed; try again"}},
    {"90131", {errc::unavailable, transient, "another session wrote the same row; try again"}},
    {"90135", {errc::unavailable, transient, "the database is in exclusive mode"}},
    {"90", {errc::unavailable}},
    {"HYT00", {errc::unavailable, transient, "another session holds the row; try again"}},
    {"HY004", {errc::grammar}},
    {"HY000", {errc::unavailable, transient, "look at the server's log"}},
    {"HY", {errc::grammar}},
};

}  // namespace

error to_error(const postgres::server_message& message) {
  const error::details details{.backend_code = std::string(message.sqlstate)};
  // H2 appends the text of the statement.
  const auto text =
      one_line_excerpt(message.text.substr(0, message.text.find("; SQL statement:")), text_limit);
  const auto* const meaning = find_class(classes, message.sqlstate);
  if (meaning == nullptr) return {errc::unavailable, "H2 says: " + text, details};
  return make_error(*meaning, text, details);
}

}  // namespace HOLDFAST_NAMESPACE::detail::sql::h2
