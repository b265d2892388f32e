#include "sql/odbc/values.hpp"

#include <holdfast/error.hpp>

#include "base/hex.hpp"
#include "base/utf8.hpp"
#include "sql/civil_time.hpp"
#include "sql/driver_support.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <type_traits>

namespace HOLDFAST_NAMESPACE::detail::sql::odbc {

namespace {

/// Above these lengths drivers expect the LONG types.
constexpr std::size_t longest_short_text = 4'000;   // characters
constexpr std::size_t longest_short_bytes = 8'000;  // bytes
/// A longer length that a driver reports for a value is an error.
constexpr SQLLEN longest_value = SQLLEN{1} << 30U;

civil_time civil_of(const parameter& p) {
  const auto* time = std::get_if<timestamp>(&p);
  if (time == nullptr) fail_type(type::time);
  const auto civil = to_civil(std::min(*time, last_date));
  if (civil.year < 1)
    throw error(errc::out_of_range, "a time before the year 1 cannot be sent through ODBC");
  return civil;
}

SQL_TIMESTAMP_STRUCT date_of(const parameter& p) {
  const auto civil = civil_of(p);
  SQL_TIMESTAMP_STRUCT date{};
  date.year = static_cast<SQLSMALLINT>(civil.year);
  date.month = static_cast<SQLUSMALLINT>(civil.month);
  date.day = static_cast<SQLUSMALLINT>(civil.day);
  date.hour = static_cast<SQLUSMALLINT>(civil.hour);
  date.minute = static_cast<SQLUSMALLINT>(civil.minute);
  date.second = static_cast<SQLUSMALLINT>(civil.second);
  date.fraction = civil.microsecond * 1'000U;  // nanoseconds
  return date;
}

std::int64_t number_of(const parameter& p, type declared) {
  if (const auto* number = std::get_if<std::int64_t>(&p)) return *number;
  if (const auto* time = std::get_if<timestamp>(&p)) return time->time_since_epoch().count();
  fail_type(declared);
}

std::string time_text(const parameter& p) {
  const auto t = civil_of(p);
  std::array<char, 48> text{};
  const int length = std::snprintf(
      text.data(), text.size(), "%04lld-%02u-%02u %02u:%02u:%02u.%06u+00",
      static_cast<long long>(t.year), t.month, t.day, t.hour, t.minute, t.second, t.microsecond);
  return {text.data(), static_cast<std::size_t>(length)};
}

/// Appends text or bytes as an element of a PostgreSQL array.
void append_element(std::string& array, type declared, std::string_view characters) {
  if (declared == type::bytes) {
    array += R"("\\x)";
    append_hex(array, characters);
  } else {
    array += '"';
    for (const char c : characters) {
      if (c == '"' || c == '\\') array += '\\';
      array += c;
    }
  }
  array += '"';
}

/// Reads a value of any length in pieces: some drivers do not tell how long it is. Returns false
/// for NULL and after a failure.
template <class Unit>
bool read_long(SQLHSTMT statement, SQLUSMALLINT column, SQLSMALLINT c_type,
               std::vector<Unit>& result, SQLRETURN& failure) {
  // The driver ends text with a NUL, which takes a unit of the buffer.
  constexpr std::size_t terminator = std::is_same_v<Unit, SQLWCHAR> ? 1 : 0;
  std::size_t room = 2'048;
  for (std::size_t length = 0;;) {
    result.resize(length + room);
    SQLLEN reported = 0;
    const auto code = SQLGetData(statement, column, c_type, result.data() + length,
                                 static_cast<SQLLEN>(room * sizeof(Unit)), &reported);
    if (code == SQL_NO_DATA) return result.resize(length), true;
    if (!SQL_SUCCEEDED(code)) return failure = code, false;
    if (reported == SQL_NULL_DATA) return false;
    const bool truncated = code == SQL_SUCCESS_WITH_INFO;
    const std::size_t usable = (room - terminator) * sizeof(Unit);
    // The length comes from the server, and a driver may pass on whatever it got.
    const bool plausible = reported == SQL_NO_TOTAL
                               ? truncated
                               : reported >= 0 && reported <= longest_value &&
                                     (truncated || static_cast<std::size_t>(reported) <= usable);
    if (!plausible)
      throw error(errc::malformed, "the ODBC driver reports an impossible length of a value");
    const bool has_more =
        truncated && (reported == SQL_NO_TOTAL || static_cast<std::size_t>(reported) > usable);
    if (!has_more)
      return result.resize(length + static_cast<std::size_t>(reported) / sizeof(Unit)), true;
    length += room - terminator;
    room = reported == SQL_NO_TOTAL ? room * 2
                                    : static_cast<std::size_t>(reported) / sizeof(Unit) -
                                          (room - terminator) + 1 + terminator;
  }
}

}  // namespace

std::vector<SQLWCHAR> to_wide(std::string_view text) {
  if (!is_utf8(text))
    throw error(errc::ill_formed_text,
                "a text is not well-formed UTF-8; keep it in a column of bytes");
  std::vector<SQLWCHAR> wide;
  wide.reserve(text.size());
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  for (std::size_t i = 0; i < text.size();) {
    const unsigned lead = byte(i);
    const std::size_t length = lead < 0x80U ? 1 : lead < 0xE0U ? 2 : lead < 0xF0U ? 3 : 4;
    std::uint32_t code_point = length == 1 ? lead : lead & (0xFFU >> (length + 1));
    for (std::size_t k = 1; k < length; ++k)
      code_point = (code_point << 6U) | (byte(i + k) & 0x3FU);
    i += length;
    if (code_point >= 0x10000U) {
      code_point -= 0x10000U;
      wide.push_back(static_cast<SQLWCHAR>(0xD800U + (code_point >> 10U)));
      code_point = 0xDC00U + (code_point & 0x3FFU);
    }
    wide.push_back(static_cast<SQLWCHAR>(code_point));
  }
  return wide;
}

std::string from_wide(std::span<const SQLWCHAR> text) {
  std::string result;
  result.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    char32_t code_point = text[i];
    if (code_point >= 0xD800U && code_point < 0xDC00U && i + 1 < text.size() &&
        text[i + 1] >= 0xDC00U && text[i + 1] < 0xE000U)
      code_point = 0x10000U + ((code_point - 0xD800U) << 10U) + (text[++i] - 0xDC00U);
    std::array<char, 4> bytes{};
    auto length = encode_utf8(code_point, bytes.data());
    if (length == 0) length = encode_utf8(0xFFFDU, bytes.data());
    result.append(bytes.data(), length);
  }
  return result;
}

bound_parameter::bound_parameter(type declared, std::span<const parameter> values,
                                 const value_format& format) {
  lengths_.reserve(values.size());
  const bool is_number =
      declared == type::integer || (declared == type::time && format.times_as_numbers);
  if (is_number && !format.numbers_as_text) add_numbers(values, declared);
  else if (declared == type::time && !is_number) add_times(values);
  else if (declared == type::bytes) add_bytes(values);
  else add_texts(values, declared);
}

void bound_parameter::add_numbers(std::span<const parameter> values, type declared) {
  c_type_ = SQL_C_SBIGINT;
  sql_type_ = SQL_BIGINT;
  column_size_ = 19;
  element_size_ = sizeof(std::int64_t);
  for (const auto& value : values) {
    const std::int64_t number = is_null(value) ? 0 : number_of(value, declared);
    add_element(is_null(value) ? nullptr : &number, sizeof number);
  }
}

void bound_parameter::add_times(std::span<const parameter> values) {
  c_type_ = SQL_C_TYPE_TIMESTAMP;
  sql_type_ = SQL_TYPE_TIMESTAMP;
  column_size_ = 26;
  decimal_digits_ = 6;
  element_size_ = sizeof(SQL_TIMESTAMP_STRUCT);
  for (const auto& value : values) {
    const auto date = is_null(value) ? SQL_TIMESTAMP_STRUCT{} : date_of(value);
    add_element(is_null(value) ? nullptr : &date, sizeof date);
  }
}

void bound_parameter::add_bytes(std::span<const parameter> values) {
  std::size_t longest = 1;
  for (const auto& value : values) {
    const auto bytes = characters_of(value);
    if (!bytes && !is_null(value)) fail_type(type::bytes);
    if (bytes) longest = std::max(longest, bytes->size());
  }
  c_type_ = SQL_C_BINARY;
  sql_type_ = longest > longest_short_bytes ? SQL_LONGVARBINARY : SQL_VARBINARY;
  column_size_ = longest;
  element_size_ = longest;
  in_pieces_ = values.size() == 1 && longest > large_value;
  for (const auto& value : values) {
    const auto bytes = characters_of(value);
    add_element(bytes ? bytes->data() : nullptr, bytes ? bytes->size() : 0);
    if (bytes && bytes->empty()) lengths_.back() = 0;  // not NULL, although data() may be null
  }
}

/// Text, or integers as text.
void bound_parameter::add_texts(std::span<const parameter> values, type declared) {
  std::vector<std::vector<SQLWCHAR>> texts;
  texts.reserve(values.size());
  for (const auto& value : values) {
    const auto text = characters_of(value);
    if (is_null(value)) texts.emplace_back();
    else if (declared == type::integer)
      texts.push_back(to_wide(std::to_string(number_of(value, declared))));
    else if (text) texts.push_back(to_wide(*text));
    else fail_type(declared);
  }
  std::size_t longest = 1;
  for (const auto& text : texts) longest = std::max(longest, text.size());
  sql_type_ = longest > longest_short_text ? SQL_WLONGVARCHAR : SQL_WVARCHAR;
  column_size_ = longest;
  // One more unit: some drivers look for a NUL although they get the length.
  element_size_ = (longest + 1) * sizeof(SQLWCHAR);
  in_pieces_ = texts.size() == 1 && longest * sizeof(SQLWCHAR) > large_value;
  for (std::size_t i = 0; i < values.size(); ++i) {
    static constexpr SQLWCHAR empty = 0;
    add_element(texts[i].empty() ? &empty : texts[i].data(), texts[i].size() * sizeof(SQLWCHAR));
    if (is_null(values[i])) lengths_.back() = SQL_NULL_DATA;
  }
}

/// A null pointer is NULL.
void bound_parameter::add_element(const void* data, std::size_t length) {
  const auto offset = elements_.size();
  elements_.resize(offset + element_size_);
  if (data != nullptr && length != 0) std::memcpy(elements_.data() + offset, data, length);
  lengths_.push_back(data == nullptr ? SQLLEN{SQL_NULL_DATA} : static_cast<SQLLEN>(length));
}

SQLRETURN bound_parameter::bind(SQLHSTMT statement, SQLUSMALLINT number) {
  if (in_pieces_) {
    length_at_execution_ = SQL_LEN_DATA_AT_EXEC(lengths_.front());
    return SQLBindParameter(statement, number, SQL_PARAM_INPUT, c_type_, sql_type_, column_size_,
                            decimal_digits_, this, 0, &length_at_execution_);
  }
  return SQLBindParameter(statement, number, SQL_PARAM_INPUT, c_type_, sql_type_, column_size_,
                          decimal_digits_, elements_.data(), static_cast<SQLLEN>(element_size_),
                          lengths_.data());
}

SQLRETURN bound_parameter::send_pieces(SQLHSTMT statement) const {
  auto remaining = static_cast<std::size_t>(lengths_.front());
  const char* position = elements_.data();
  SQLRETURN code = SQL_SUCCESS;
  while (remaining != 0 && SQL_SUCCEEDED(code)) {
    const auto piece = std::min(remaining, large_value);
    code = SQLPutData(statement, const_cast<char*>(position), static_cast<SQLLEN>(piece));
    position += piece;
    remaining -= piece;
  }
  return code;
}

std::string array_text(type declared, std::span<const parameter> values) {
  std::string array = "{";
  for (const auto& value : values) {
    if (array.size() > 1) array += ',';
    if (is_null(value)) {
      array += "NULL";
    } else if (declared == type::integer) {
      array += std::to_string(number_of(value, declared));
    } else if (declared == type::time) {
      array.append("\"").append(time_text(value)).append("\"");
    } else {
      const auto characters = characters_of(value);
      if (!characters) fail_type(declared);
      append_element(array, declared, *characters);
    }
  }
  return array + "}";
}

std::size_t size_of(const parameter& value) noexcept {
  if (const auto* text = std::get_if<std::string_view>(&value)) return text->size() * 2;
  if (const auto* bytes = std::get_if<std::span<const std::byte>>(&value)) return bytes->size();
  return 16;
}

value read_value(SQLHSTMT statement, SQLUSMALLINT column, type expected, const value_format& format,
                 SQLRETURN& failure) {
  SQLLEN length = 0;
  if (expected == type::integer || (expected == type::time && format.times_as_numbers)) {
    std::int64_t number = 0;
    const auto code = SQLGetData(statement, column, SQL_C_SBIGINT, &number, sizeof number, &length);
    if (!SQL_SUCCEEDED(code)) return failure = code, value();
    if (length == SQL_NULL_DATA) return {};
    if (expected == type::integer) return number;
    return timestamp(std::chrono::microseconds(number));
  }
  if (expected == type::time) {
    SQL_TIMESTAMP_STRUCT date{};
    const auto code =
        SQLGetData(statement, column, SQL_C_TYPE_TIMESTAMP, &date, sizeof date, &length);
    if (!SQL_SUCCEEDED(code)) return failure = code, value();
    if (length == SQL_NULL_DATA) return {};
    const civil_time civil{date.year,
                           date.month,
                           date.day,
                           date.hour,
                           date.minute,
                           date.second,
                           static_cast<unsigned>(date.fraction / 1'000U)};
    if (!is_valid(civil)) return {};  // one such row must not make the others unreadable
    return from_civil(civil);
  }
  if (expected == type::bytes) {
    std::vector<char> bytes;
    if (!read_long(statement, column, SQL_C_BINARY, bytes, failure)) return {};
    return std::string(bytes.begin(), bytes.end());
  }
  std::vector<SQLWCHAR> text;
  if (!read_long(statement, column, SQL_C_WCHAR, text, failure)) return {};
  return from_wide(text);
}

}  // namespace HOLDFAST_NAMESPACE::detail::sql::odbc
