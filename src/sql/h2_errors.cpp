#include "sql/h2_errors.hpp"

#include "sql/unfilled_column.hpp"

#include <algorithm>
#include <array>

namespace HOLDFAST_NAMESPACE::sql::h2 {

namespace {

struct meaning {
  std::string_view state;  ///< an SQLSTATE, or its beginning
  errc code;
  bool transient;
  std::string_view words;  ///< what to do; or, from '=' on, all there is to say: the message may repeat a value
};

// The first that fits counts.
constexpr std::array meanings{
    meaning{"08", errc::unavailable, true, "the connection failed; try again"},
    meaning{"21", errc::invalid_argument, false, ""},
    meaning{"22001", errc::too_large, false, "=a value is too long for its column; use a longer one, or CLOB"},
    meaning{"22003", errc::out_of_range, false, "=a number is outside the range of its column"},
    meaning{"22", errc::invalid_argument, false, "=H2 refused a value (what it said is left out, since it may repeat the value)"},
    meaning{"23502", errc::missing_object, false, unfilled_column_alone},
    meaning{"23505", errc::duplicate, false, "=the key is there already"},
    meaning{"23", errc::invalid_argument, false, "=H2 refused a row: a rule of the table"},
    meaning{"28000", errc::permission, false, "check the user and the password"},
    meaning{"40", errc::unavailable, true, "try again"},
    meaning{"42S02", errc::missing_object, false,
            "the table is missing; create it with --create-schema (in C++: .create_schema), or see: holdfast store schema --dialect h2"},
    meaning{"42S03", errc::missing_object, false,
            "the table is missing; create it with --create-schema (in C++: .create_schema), or see: holdfast store schema --dialect h2"},
    meaning{"42S04", errc::missing_object, false,
            "the table is missing; create it with --create-schema (in C++: .create_schema), or see: holdfast store schema --dialect h2"},
    meaning{"42S22", errc::missing_object, false, "the column is missing; see what is needed with: holdfast store schema --dialect h2"},
    meaning{"42", errc::grammar, false, ""},
    meaning{"57014", errc::timeout, true, "nothing was changed"},
    meaning{"90020", errc::unavailable, true, "another process has the database open"},
    meaning{"90028", errc::unavailable, true, "the file could not be read; look at the server's log"},
    meaning{"90031", errc::unavailable, true, "the disk failed, or is full; look at the server's log"},
    meaning{"90040", errc::permission, false, ""},
    meaning{"90067", errc::unavailable, true, "the connection failed; try again"},
    meaning{"90079", errc::missing_object, false, "create the schema, or correct the prefix of the table"},
    meaning{"90096", errc::permission, false, "grant it to the user of the connection"},
    meaning{"90097", errc::unavailable, true, "the database is read-only"},
    meaning{"90098", errc::unavailable, true, "the database was closed; try again"},
    meaning{"90121", errc::unavailable, true, "the database was closed; try again"},
    meaning{"90131", errc::unavailable, true, "another session wrote the same row; try again"},
    meaning{"90135", errc::unavailable, true, "somebody has the database for himself"},
    meaning{"90", errc::unavailable, false, ""},
    meaning{"HYT00", errc::unavailable, true, "another session holds the row; try again"},
    meaning{"HY004", errc::grammar, false, ""},
    meaning{"HY000", errc::unavailable, true, "look at the server's log"},
    meaning{"HY", errc::grammar, false, ""},
};

/// One line without the statement's text, which H2 adds.
std::string tidy(std::string_view text) {
  constexpr std::size_t longest = 300;
  text = text.substr(0, text.find("; SQL statement:"));
  std::string result(text.substr(0, longest));
  if (text.size() > longest) {
    while (!result.empty() && static_cast<unsigned char>(result.back()) >= 0x80U) result.pop_back();
    result += "...";
  }
  std::replace_if(result.begin(), result.end(), [](unsigned char c) { return c < 0x20U || c == 0x7FU; }, ' ');
  return result;
}

}  // namespace

error from_server(const postgres::server_message& from) {
  error::details more{.backend_code = std::string(from.sqlstate)};
  const auto found = std::find_if(meanings.begin(), meanings.end(), [&](const meaning& m) { return from.sqlstate.starts_with(m.state); });
  if (found == meanings.end()) return {errc::unavailable, "H2 says: " + tidy(from.text), more};
  more.transient = found->transient;
  if (found->words.starts_with('=')) return {found->code, std::string(found->words.substr(1)), more};
  auto message = tidy(from.text);
  if (!found->words.empty()) message += "; " + std::string(found->words);
  return {found->code, message, more};
}

}  // namespace HOLDFAST_NAMESPACE::sql::h2
