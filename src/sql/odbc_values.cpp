#include "sql/odbc_values.hpp"

#include "base/utf8.hpp"
#include "sql/civil_time.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <optional>
#include <type_traits>

namespace HOLDFAST_NAMESPACE::sql::odbc {

namespace {

/// Where drivers begin to want another type for the same thing.
constexpr std::size_t longest_short_text = 4'000;   // characters
constexpr std::size_t longest_short_bytes = 8'000;  // bytes

[[noreturn]] void fail_type() { throw error(errc::invalid_argument, "a parameter is declared as one type, but its value is of another"); }

std::optional<std::string_view> characters_of(const parameter& p) {
  if (const auto* text = std::get_if<std::string_view>(&p)) return *text;
  if (const auto* bytes = std::get_if<std::span<const std::byte>>(&p))
    return std::string_view(reinterpret_cast<const char*>(bytes->data()), bytes->size());
  return std::nullopt;
}

bool is_null(const parameter& p) { return std::holds_alternative<std::monostate>(p); }

civil_time civil_of(const parameter& p) {
  const auto* when = std::get_if<timestamp>(&p);
  if (when == nullptr) fail_type();
  const auto t = to_civil(std::min(*when, last_date));
  if (t.year < 1) throw error(errc::out_of_range, "a moment before the year 1 cannot be sent through ODBC");
  return t;
}

SQL_TIMESTAMP_STRUCT struct_of(const parameter& p) {
  const auto t = civil_of(p);
  SQL_TIMESTAMP_STRUCT made{};
  made.year = static_cast<SQLSMALLINT>(t.year);
  made.month = static_cast<SQLUSMALLINT>(t.month);
  made.day = static_cast<SQLUSMALLINT>(t.day);
  made.hour = static_cast<SQLUSMALLINT>(t.hour);
  made.minute = static_cast<SQLUSMALLINT>(t.minute);
  made.second = static_cast<SQLUSMALLINT>(t.second);
  made.fraction = t.microsecond * 1'000U;
  return made;
}

std::int64_t number_of(const parameter& p) {
  if (const auto* number = std::get_if<std::int64_t>(&p)) return *number;
  if (const auto* when = std::get_if<timestamp>(&p)) return when->time_since_epoch().count();
  fail_type();
}

std::string time_text(const parameter& p) {
  const auto t = civil_of(p);
  std::array<char, 48> text{};
  const int length = std::snprintf(text.data(), text.size(), "%04lld-%02u-%02u %02u:%02u:%02u.%06u+00", static_cast<long long>(t.year),
                                   t.month, t.day, t.hour, t.minute, t.second, t.microsecond);
  return {text.data(), static_cast<std::size_t>(length)};
}

}  // namespace

std::vector<SQLWCHAR> to_wide(std::string_view text) {
  if (!is_utf8(text)) throw error(errc::ill_formed_text, "a text is not well-formed UTF-8; keep it in a column of bytes");
  std::vector<SQLWCHAR> made;
  made.reserve(text.size());
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  for (std::size_t i = 0; i < text.size();) {
    const unsigned lead = byte(i);
    const std::size_t length = lead < 0x80U ? 1 : lead < 0xE0U ? 2 : lead < 0xF0U ? 3 : 4;
    std::uint32_t point = length == 1 ? lead : lead & (0xFFU >> (length + 1));
    for (std::size_t k = 1; k < length; ++k) point = (point << 6U) | (byte(i + k) & 0x3FU);
    i += length;
    if (point >= 0x10000U) {
      point -= 0x10000U;
      made.push_back(static_cast<SQLWCHAR>(0xD800U + (point >> 10U)));
      point = 0xDC00U + (point & 0x3FFU);
    }
    made.push_back(static_cast<SQLWCHAR>(point));
  }
  return made;
}

std::string from_wide(std::span<const SQLWCHAR> text) {
  std::string made;
  made.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    char32_t point = text[i];
    if (point >= 0xD800U && point < 0xDC00U && i + 1 < text.size() && text[i + 1] >= 0xDC00U && text[i + 1] < 0xE000U)
      point = 0x10000U + ((point - 0xD800U) << 10U) + (text[++i] - 0xDC00U);
    std::array<char, 4> bytes{};
    auto length = encode_utf8(point, bytes.data());
    if (length == 0) length = encode_utf8(0xFFFDU, bytes.data());
    made.append(bytes.data(), length);
  }
  return made;
}

column::column(type declared, std::span<const parameter> values, const habits& how) {
  const bool number = declared == type::integer || (declared == type::time && how.times_as_numbers);
  lengths_.reserve(values.size());
  if (number && !how.numbers_as_text) {
    c_type_ = SQL_C_SBIGINT;
    sql_type_ = SQL_BIGINT;
    size_ = 19;
    stride_ = sizeof(std::int64_t);
    for (const auto& each : values) {
      const std::int64_t n = is_null(each) ? 0 : number_of(each);
      add_element(is_null(each) ? nullptr : &n, sizeof n);
    }
  } else if (declared == type::time && !number) {
    c_type_ = SQL_C_TYPE_TIMESTAMP;
    sql_type_ = SQL_TYPE_TIMESTAMP;
    size_ = 26;
    digits_ = 6;
    stride_ = sizeof(SQL_TIMESTAMP_STRUCT);
    for (const auto& each : values) {
      const auto t = is_null(each) ? SQL_TIMESTAMP_STRUCT{} : struct_of(each);
      add_element(is_null(each) ? nullptr : &t, sizeof t);
    }
  } else if (declared == type::bytes) {
    std::size_t longest = 1;
    for (const auto& each : values) {
      const auto bytes = characters_of(each);
      if (!bytes && !is_null(each)) fail_type();
      if (bytes) longest = std::max(longest, bytes->size());
    }
    c_type_ = SQL_C_BINARY;
    sql_type_ = longest > longest_short_bytes ? SQL_LONGVARBINARY : SQL_VARBINARY;
    size_ = longest;
    stride_ = longest;
    in_pieces_ = values.size() == 1 && longest > large_value;
    for (const auto& each : values) {
      const auto bytes = characters_of(each);
      add_element(bytes ? bytes->data() : nullptr, bytes ? bytes->size() : 0);
      if (bytes && bytes->empty()) lengths_.back() = 0;
    }
  } else {
    std::vector<std::vector<SQLWCHAR>> texts;
    texts.reserve(values.size());
    for (const auto& each : values) {
      if (is_null(each)) {
        texts.emplace_back();
        continue;
      }
      const auto text = characters_of(each);
      if (declared == type::integer) texts.push_back(to_wide(std::to_string(number_of(each))));
      else if (text) texts.push_back(to_wide(*text));
      else fail_type();
    }
    fill(texts);
    for (std::size_t i = 0; i < values.size(); ++i)
      if (is_null(values[i])) lengths_[i] = SQL_NULL_DATA;
  }
}

void column::fill(std::span<const std::vector<SQLWCHAR>> texts) {
  std::size_t longest = 1;
  for (const auto& each : texts) longest = std::max(longest, each.size());
  sql_type_ = longest > longest_short_text ? SQL_WLONGVARCHAR : SQL_WVARCHAR;
  size_ = longest;
  // Room for an end, which some drivers look for although they know the length.
  stride_ = (longest + 1) * sizeof(SQLWCHAR);
  in_pieces_ = texts.size() == 1 && longest * sizeof(SQLWCHAR) > large_value;
  for (const auto& each : texts) {
    static constexpr SQLWCHAR nothing = 0;
    add_element(each.empty() ? &nothing : each.data(), each.size() * sizeof(SQLWCHAR));
  }
}

void column::add_element(const void* data, std::size_t length) {
  const auto at = data_.size();
  data_.resize(at + stride_);
  if (data != nullptr && length != 0) std::memcpy(data_.data() + at, data, length);
  lengths_.push_back(data == nullptr ? SQLLEN{SQL_NULL_DATA} : static_cast<SQLLEN>(length));
}

SQLRETURN column::bind(SQLHSTMT to, SQLUSMALLINT number) {
  if (in_pieces_) {
    at_execution_ = SQL_LEN_DATA_AT_EXEC(lengths_.front());
    return SQLBindParameter(to, number, SQL_PARAM_INPUT, c_type_, sql_type_, size_, digits_, this, 0, &at_execution_);
  }
  return SQLBindParameter(to, number, SQL_PARAM_INPUT, c_type_, sql_type_, size_, digits_, data_.data(), static_cast<SQLLEN>(stride_),
                          lengths_.data());
}

SQLRETURN column::put(SQLHSTMT to) const {
  auto left = static_cast<std::size_t>(lengths_.front());
  const char* at = data_.data();
  SQLRETURN done = SQL_SUCCESS;
  while (left != 0 && SQL_SUCCEEDED(done)) {
    const auto piece = std::min(left, large_value);
    done = SQLPutData(to, const_cast<char*>(at), static_cast<SQLLEN>(piece));
    at += piece;
    left -= piece;
  }
  return done;
}

std::string array_text(type declared, std::span<const parameter> values) {
  static constexpr std::string_view digits = "0123456789abcdef";
  std::string made = "{";
  for (const auto& each : values) {
    if (made.size() > 1) made += ',';
    if (is_null(each)) {
      made += "NULL";
    } else if (declared == type::integer) {
      made += std::to_string(number_of(each));
    } else if (declared == type::time) {
      made.append("\"").append(time_text(each)).append("\"");
    } else {
      const auto text = characters_of(each);
      if (!text) fail_type();
      made += declared == type::bytes ? R"("\\x)" : "\"";
      for (const char c : *text) {
        if (declared == type::bytes) {
          made += digits[static_cast<unsigned char>(c) >> 4U];
          made += digits[static_cast<unsigned char>(c) & 0xFU];
        } else {
          if (c == '"' || c == '\\') made += '\\';
          made += c;
        }
      }
      made += '"';
    }
  }
  return made + "}";
}

std::size_t size_of(const parameter& value) noexcept {
  if (const auto* text = std::get_if<std::string_view>(&value)) return text->size() * 2;
  if (const auto* bytes = std::get_if<std::span<const std::byte>>(&value)) return bytes->size();
  return 16;
}

namespace {

constexpr SQLLEN longest_value = SQLLEN{1} << 30U;

[[noreturn]] void malformed() { throw error(errc::malformed, "the ODBC driver gives a value with a length that cannot be"); }

/// In pieces, however long: some drivers do not know how much is to come.
template <class Unit>
bool read_long(SQLHSTMT from, SQLUSMALLINT column, SQLSMALLINT c_type, std::vector<Unit>& into, SQLRETURN& failed) {
  constexpr std::size_t end = std::is_same_v<Unit, SQLWCHAR> ? 1 : 0;  // text is ended, and the end takes room
  std::size_t room = 2'048;
  for (std::size_t have = 0;;) {
    into.resize(have + room);
    SQLLEN told = 0;
    const auto got = SQLGetData(from, column, c_type, into.data() + have, static_cast<SQLLEN>(room * sizeof(Unit)), &told);
    if (got == SQL_NO_DATA) return into.resize(have), true;
    if (!SQL_SUCCEEDED(got)) return failed = got, false;
    if (told == SQL_NULL_DATA) return false;
    const bool cut = got == SQL_SUCCESS_WITH_INFO;
    const std::size_t held = (room - end) * sizeof(Unit);
    // Lengths come from the server, by way of a driver that may pass on whatever it was sent.
    if (told == SQL_NO_TOTAL ? !cut : told < 0 || (!cut && static_cast<std::size_t>(told) > held) || told > longest_value) malformed();
    const bool more = cut && (told == SQL_NO_TOTAL || static_cast<std::size_t>(told) > held);
    if (!more) return into.resize(have + static_cast<std::size_t>(told) / sizeof(Unit)), true;
    have += room - end;
    room = told == SQL_NO_TOTAL ? room * 2 : static_cast<std::size_t>(told) / sizeof(Unit) - (room - end) + 1 + end;
  }
}

}  // namespace

value read(SQLHSTMT from, SQLUSMALLINT column, type wanted, const habits& how, SQLRETURN& failed) {
  SQLLEN told = 0;
  if (wanted == type::integer || (wanted == type::time && how.times_as_numbers)) {
    std::int64_t number = 0;
    const auto got = SQLGetData(from, column, SQL_C_SBIGINT, &number, sizeof number, &told);
    if (!SQL_SUCCEEDED(got)) return failed = got, value();
    if (told == SQL_NULL_DATA) return {};
    if (wanted == type::integer) return number;
    return timestamp(std::chrono::microseconds(number));
  }
  if (wanted == type::time) {
    SQL_TIMESTAMP_STRUCT t{};
    const auto got = SQLGetData(from, column, SQL_C_TYPE_TIMESTAMP, &t, sizeof t, &told);
    if (!SQL_SUCCEEDED(got)) return failed = got, value();
    if (told == SQL_NULL_DATA) return {};
    const civil_time c{t.year, t.month, t.day, t.hour, t.minute, t.second, static_cast<unsigned>(t.fraction / 1'000U)};
    if (!is_civil(c)) return {};  // one odd row must not cost the others
    return from_civil(c);
  }
  if (wanted == type::bytes) {
    std::vector<char> bytes;
    if (!read_long(from, column, SQL_C_BINARY, bytes, failed)) return {};
    return std::string(bytes.begin(), bytes.end());
  }
  std::vector<SQLWCHAR> text;
  if (!read_long(from, column, SQL_C_WCHAR, text, failed)) return {};
  return from_wide(text);
}

}  // namespace HOLDFAST_NAMESPACE::sql::odbc
