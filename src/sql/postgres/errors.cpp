#include "sql/postgres/errors.hpp"

#include "sql/error_class.hpp"

#include <algorithm>
#include <cerrno>
#include <optional>
#include <system_error>

namespace HOLDFAST_NAMESPACE::detail::sql::postgres {

namespace {

constexpr std::size_t text_limit = 400;

// Messages of class 22 may quote the refused value, so their text is hidden.
constexpr sqlstate_class classes[]{
    {"08", {errc::unavailable, transient, "the connection failed; try again"}},
    {"0A000", {errc::grammar}},
    {"21000",
     {errc::duplicate, permanent, "two rows of one batch have the same key; send one of them"}},
    {"22001", {errc::too_large, permanent, "use a longer column, or TEXT"}},
    {"22003",
     {errc::out_of_range, permanent, "a number is outside the range of its column", hidden}},
    {"22008", {errc::out_of_range, permanent, "a time is outside the range of its column", hidden}},
    {"22021",
     {errc::invalid_argument, permanent,
      "text is not well-formed UTF-8, or not in the encoding of the database; store it as "
      "bytes",
      hidden}},
    {"22P05",
     {errc::invalid_argument, permanent,
      "text has a character that the encoding of the database lacks; use a database in "
      "UTF8",
      hidden}},
    {"22",
     {errc::invalid_argument, permanent,
      "the server refused a value (its message is hidden, since it may repeat the value)", hidden}},
    {"23502",
     {.code = errc::missing_object, .advice = not_null_advice, .is_not_null_violation = true}},
    {"23505", {errc::duplicate}},
    {"23", {errc::invalid_argument}},
    {"25006",
     {errc::unavailable, transient,
      "the server is read-only; connect to the primary (target_session_attrs=read-write)"}},
    {"25P02",
     {errc::invalid_argument, permanent,
      "an earlier statement of the transaction failed; roll it back"}},
    {"25P03",
     {errc::unavailable, transient,
      "the transaction was idle for longer than the server allows; nothing was changed"}},
    {"26000", {errc::unavailable, transient, "the server forgot a prepared statement; try again"}},
    {"28",
     {errc::permission, permanent, "check the user, the password and the server's pg_hba.conf"}},
    {"3D000", {errc::missing_object, permanent, "create the database, or correct its name"}},
    {"3F000",
     {errc::missing_object, permanent, "create the schema, or correct the prefix of the table"}},
    {"40", {errc::unavailable, transient, "try again"}},
    {"42501", {errc::permission, permanent, "grant it to the user of the connection"}},
    {"42703",
     {errc::missing_object, permanent,
      "the column is missing; see what is needed with: holdfast store schema --dialect "
      "postgresql"}},
    {"42P01",
     {errc::missing_object, permanent,
      "the table is missing; create it with --create-schema (in C++: .create_schema), or see: "
      "holdfast store schema --dialect postgresql"}},
    {"42", {errc::grammar}},
    {"53100", {errc::unavailable, transient, "the server's disk is full; nothing was written"}},
    {"53300", {errc::unavailable, transient, "raise max_connections, or make the pool smaller"}},
    {"53", {errc::unavailable, transient, "the server lacks resources; try again later"}},
    {"54",
     {errc::too_large, permanent,
      "the statement is above a limit of the server; send less at once"}},
    {"55006", {errc::unavailable, transient, "try again"}},
    {"55P03", {errc::unavailable, transient, "try again"}},
    {"55", {errc::unavailable}},
    {"57014", {errc::timeout, transient, "nothing was changed"}},
    {"57", {errc::unavailable, transient, "the server is stopping or starting; try again"}},
    {"58", {errc::unavailable, transient, "look at the server's log"}},
};

/// Replaces a text that contains the password. libpq and servers do not write it themselves, but it
/// may have been given in the wrong field, or be an ordinary word. Blanking only the password would
/// tell where it was.
std::string_view without_secret(std::string_view text, std::string_view secret,
                                std::string_view replacement) {
  return !secret.empty() && text.find(secret) != std::string_view::npos ? replacement : text;
}

/// Five capital letters and digits with at least one digit: a severity such as ERROR or FATAL may
/// have five letters.
bool is_sqlstate(std::string_view text) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  const auto is_allowed = [&](char c) { return is_digit(c) || (c >= 'A' && c <= 'Z'); };
  return text.size() == 5 && std::ranges::all_of(text, is_allowed) &&
         std::ranges::any_of(text, is_digit);
}

/// Finds the server's answer in a line of libpq's report, for example in `connection to server at
/// "h" failed: FATAL:  28P01: password authentication failed for user "x"`. The words before it are
/// translated, the SQLSTATE is not.
std::optional<server_message> find_server_message(std::string_view line) {
  for (auto colon = line.find(": "); colon != std::string_view::npos;
       colon = line.find(": ", colon + 1)) {
    auto rest = line.substr(colon + 2);
    rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
    if (rest.size() > 7 && rest.substr(5, 2) == ": " && is_sqlstate(rest.substr(0, 5)))
      return server_message{.sqlstate = rest.substr(0, 5), .text = rest.substr(7)};
  }
  return std::nullopt;
}

/// The two most telling parts of libpq's report.
struct connect_report {
  std::string_view reason{};               ///< a line, without what precedes ` failed: `
  std::optional<server_message> answer{};  ///< of the last server that answered
};

/// A host name may have several addresses: `localhost` is tried as ::1, where a server often does
/// not listen, and as 127.0.0.1. The last line counts, and any reason counts more than "connection
/// refused".
connect_report read_report(std::string_view report) {
  const std::string refused = std::system_category().message(ECONNREFUSED);
  connect_report result;
  while (!report.empty()) {
    const auto end = report.find('\n');
    const auto line = report.substr(0, end);
    if (result.reason.empty() ||
        (line.find(" failed: ") != std::string_view::npos && !line.ends_with(refused)))
      result.reason = line;
    if (const auto message = find_server_message(line)) result.answer = message;
    report.remove_prefix(end == std::string_view::npos ? report.size() : end + 1);
  }
  // The part before tells the address, which our message has already. It stays if it is translated.
  if (const auto failed = result.reason.find(" failed: "); failed != std::string_view::npos)
    result.reason.remove_prefix(failed + 9);
  return result;
}

}  // namespace

error to_error(const server_message& message) {
  error::details details{.backend_code = std::string(message.sqlstate)};
  // The table was altered after the statement was prepared. The name of the function tells it: the
  // text may be translated.
  if (message.sqlstate == "0A000" && message.function == "RevalidateCachedQuery") {
    details.transient = true;
    return {errc::unavailable, "the table has changed since the statement was prepared; try again",
            details};
  }
  // PgBouncer uses 08P01 for everything. These failures are permanent: the configuration has to
  // change.
  if (message.sqlstate == "08P01" && message.text.starts_with("unsupported startup parameter")) {
    return {
        errc::permission,
        one_line_excerpt(message.text, text_limit) +
            "; if this is PgBouncer, set ignore_startup_parameters = options in its configuration",
        details};
  }
  if (message.sqlstate == "08P01" && message.text.starts_with("transaction blocks not allowed")) {
    return {errc::unsupported_type,
            one_line_excerpt(message.text, text_limit) +
                "; this is PgBouncer with pool_mode = statement, and Holdfast needs transactions: "
                "set pool_mode = transaction or session in its configuration",
            details};
  }
  details.in_doubt = message.sqlstate == "08007" || message.sqlstate == "40003";
  const auto text = one_line_excerpt(message.text, text_limit);
  const auto* const meaning = find_class(classes, message.sqlstate);
  if (meaning == nullptr) return {errc::unavailable, "PostgreSQL says: " + text, details};
  return make_error(*meaning, text, details, message.column);
}

error connection_lost(loss on_loss, std::string_view sqlstate, std::string_view server) {
  const bool in_doubt = on_loss == loss::in_doubt;
  return {errc::unavailable,
          "the connection to " + std::string(server) +
              (in_doubt ? " was lost before the answer came: the statement may have taken effect"
                        : " is lost; nothing was changed"),
          {.backend_code = std::string(sqlstate), .transient = true, .in_doubt = in_doubt}};
}

error server_replaced(loss on_loss, std::string_view server) {
  const bool in_doubt = on_loss == loss::in_doubt;
  return {errc::unavailable,
          std::string(server) + " does not answer, and new connections lead to another server" +
              (in_doubt ? ": the statement may have taken effect" : "; nothing was changed"),
          {.transient = true, .in_doubt = in_doubt}};
}

error timed_out(std::chrono::milliseconds limit, loss on_loss, std::string_view server) {
  const bool in_doubt = on_loss == loss::in_doubt;
  return {errc::timeout,
          std::string(server) + " did not answer within " + std::to_string(limit.count()) +
              (in_doubt ? " ms: the statement may have taken effect" : " ms; nothing was changed"),
          {.transient = true, .in_doubt = in_doubt}};
}

error answer_too_large(std::size_t limit, loss on_loss, std::string_view server) {
  const bool in_doubt = on_loss == loss::in_doubt;
  return {errc::too_large,
          "the answer of " + std::string(server) + " needs more than " +
              std::to_string(limit >> 20U) +
              " MiB of memory; ask for fewer or smaller rows at once" +
              (in_doubt ? "; the statement may have taken effect" : ""),
          {.in_doubt = in_doubt}};
}

error could_not_connect(const std::string& address, std::string_view report,
                        std::string_view secret, std::string_view server) {
  const std::string start = "cannot connect to " + std::string(server) + " at " + address + ": ";
  const auto parsed = read_report(report);
  if (!parsed.answer) {
    return {
        errc::unavailable,
        start + one_line_excerpt(without_secret(parsed.reason, secret, "no answer"), text_limit),
        {.transient = true}};
  }
  server_message answer = *parsed.answer;
  answer.text = without_secret(answer.text, secret, "refused");
  const auto failure = to_error(answer);
  return {failure.code(),
          start + failure.message(),
          {.backend_code = failure.backend_code(), .transient = failure.transient()}};
}

}  // namespace HOLDFAST_NAMESPACE::detail::sql::postgres
