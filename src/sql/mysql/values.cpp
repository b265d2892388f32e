#include "sql/mysql/values.hpp"

#include <holdfast/error.hpp>

#include "sql/answer_limits.hpp"
#include "sql/civil_time.hpp"
#include "sql/driver_support.hpp"
#include "sql/mysql/errors.hpp"

#include <mysql.h>

#include <algorithm>
#include <chrono>
#include <string>

namespace HOLDFAST_NAMESPACE::detail::sql::mysql {

namespace {

[[noreturn]] void refuse(const std::string& message) {
  throw error(errc::invalid_argument, message);
}

MYSQL_TIME to_date(timestamp time) {
  using namespace std::chrono;
  constexpr timestamp first = sys_days(year(1) / 1 / 1);
  if (time < first) throw error(errc::out_of_range, "a DATETIME cannot hold a time before year 1");
  const auto civil = to_civil(std::min(time, last_date));
  MYSQL_TIME date{};
  date.year = static_cast<unsigned>(civil.year);
  date.month = civil.month;
  date.day = civil.day;
  date.hour = civil.hour;
  date.minute = civil.minute;
  date.second = civil.second;
  date.second_part = civil.microsecond;
  date.time_type = MYSQL_TIMESTAMP_DATETIME;
  return date;
}

/// Returns NULL for an invalid date: one such row must not make the others unreadable.
value to_timestamp(const MYSQL_TIME& date) {
  using namespace std::chrono;
  const year_month_day day(year(static_cast<int>(date.year)), month(date.month),
                           std::chrono::day(date.day));
  // 0000-00-00 and the like are in tables that were filled without the strict mode.
  if (date.year == 0 || !day.ok()) return {};
  return timestamp(sys_days(day) + hours(date.hour) + minutes(date.minute) + seconds(date.second) +
                   microseconds(date.second_part));
}

/// libmariadb only reads the buffer of a parameter, although it is declared without const.
void* buffer_of(const void* data) {
  return const_cast<void*>(data);  // NOLINT(cppcoreguidelines-pro-type-const-cast)
}

/// A column of a result. Integers and dates are fetched into this object. Text and bytes are bound
/// without a buffer: the fetch reports the length, then read() fetches the value.
class bound_column {
 public:
  explicit bound_column(type declared) : declared_(declared) {}

  void bind_to(MYSQL_BIND& bind) {
    bind = MYSQL_BIND{};
    bind.is_null = &null_;
    bind.length = &length_;
    bind.error = &truncated_;
    bind.buffer_type = buffer_type();
    switch (declared_) {
      case type::integer:
        bind.buffer = &integer_;
        break;
      case type::time:
        bind.buffer = &date_;
        bind.buffer_length = sizeof date_;
        break;
      case type::text:
      case type::bytes:
        bind.buffer = &empty_buffer_;
        bind.buffer_length = 0;
        break;
    }
  }

  [[nodiscard]] value read(MYSQL_STMT& statement, unsigned column) const {
    if (null_ != 0) return std::monostate{};
    switch (declared_) {
      case type::integer:
        if (truncated_ != 0)
          throw error(errc::out_of_range, "the row holds a number that is not a 64-bit integer");
        return static_cast<std::int64_t>(integer_);
      case type::time:
        return to_timestamp(date_);
      case type::text:
      case type::bytes:
        break;
    }
    std::string text(length_, '\0');
    if (length_ == 0) return text;
    MYSQL_BIND bind{};
    unsigned long length = 0;
    my_bool null = 0;
    my_bool truncated = 0;
    bind.buffer_type = buffer_type();
    bind.buffer = text.data();
    bind.buffer_length = text.size();
    bind.length = &length;
    bind.is_null = &null;
    bind.error = &truncated;
    if (mysql_stmt_fetch_column(&statement, &bind, column, 0) != 0 || length != text.size())
      throw error(errc::malformed, "a value of a row cannot be read");
    return text;
  }

 private:
  [[nodiscard]] enum_field_types buffer_type() const {
    switch (declared_) {
      case type::integer:
        return MYSQL_TYPE_LONGLONG;
      case type::time:
        return MYSQL_TYPE_DATETIME;
      case type::text:
        return MYSQL_TYPE_STRING;
      case type::bytes:
        break;
    }
    return MYSQL_TYPE_BLOB;
  }

  type declared_;
  my_bool null_ = 0;
  my_bool truncated_ = 0;
  unsigned long length_ = 0;
  long long integer_ = 0;
  MYSQL_TIME date_{};
  char empty_buffer_ = 0;
};

/// Frees the stored rows of a statement.
class free_result_guard {
 public:
  explicit free_result_guard(MYSQL_STMT& statement) : statement_(statement) {}
  free_result_guard(const free_result_guard&) = delete;
  free_result_guard& operator=(const free_result_guard&) = delete;
  ~free_result_guard() { mysql_stmt_free_result(&statement_); }

 private:
  MYSQL_STMT& statement_;
};

}  // namespace

union bindings::scalar {
  long long integer;
  MYSQL_TIME date;
};

bindings::bindings() = default;
bindings::~bindings() = default;

void bindings::start(std::size_t count) {
  binds_.clear();
  scalars_.clear();
  binds_.reserve(count);
  scalars_.reserve(count);  // binds_ points into it, so it must not move
}

void bindings::add(type declared, const parameter& value) {
  // A NULL keeps the type of its column, so that the server need not resolve the types again.
  static my_bool is_null_flag = 1;
  MYSQL_BIND bind{};
  const bool null = is_null(value);
  if (null) bind.is_null = &is_null_flag;
  bool has_type = false;
  switch (declared) {
    case type::integer:
      bind.buffer_type = MYSQL_TYPE_LONGLONG;
      if (const auto* number = std::get_if<std::int64_t>(&value)) {
        scalars_.push_back({.integer = *number});
        bind.buffer = &scalars_.back().integer;
        has_type = true;
      }
      break;
    case type::time:
      bind.buffer_type = MYSQL_TYPE_DATETIME;
      if (const auto* time = std::get_if<timestamp>(&value)) {
        scalars_.push_back({.date = to_date(*time)});
        bind.buffer = &scalars_.back().date;
        bind.buffer_length = sizeof(MYSQL_TIME);
        has_type = true;
      }
      break;
    case type::text:
      bind.buffer_type = MYSQL_TYPE_STRING;
      if (const auto* text = std::get_if<std::string_view>(&value)) {
        bind.buffer = buffer_of(text->empty() ? "" : text->data());
        bind.buffer_length = text->size();
        has_type = true;
      }
      break;
    case type::bytes:
      bind.buffer_type = MYSQL_TYPE_BLOB;
      if (const auto* bytes = std::get_if<std::span<const std::byte>>(&value)) {
        bind.buffer = buffer_of(bytes->empty() ? static_cast<const void*>("") : bytes->data());
        bind.buffer_length = bytes->size();
        has_type = true;
      }
      break;
  }
  if (!has_type && !null)
    refuse("parameter " + std::to_string(binds_.size() + 1) +
           " does not have the type that the statement declares");
  binds_.push_back(bind);
}

void bindings::bind_to(st_mysql_stmt& statement) {
  if (mysql_stmt_param_count(&statement) != binds_.size()) {
    refuse("the statement has " + std::to_string(mysql_stmt_param_count(&statement)) +
           " parameters, but " + std::to_string(binds_.size()) + " values are given");
  }
  if (!binds_.empty() && mysql_stmt_bind_param(&statement, binds_.data()) != 0)
    refuse("libmariadb refuses the parameters");
}

std::size_t wire_size(const parameter& value) noexcept {
  constexpr std::size_t type_and_length = 2 + 9 + 1;
  constexpr std::size_t largest_scalar = 12;
  const auto characters = characters_of(value);
  return type_and_length + (characters ? characters->size() : largest_scalar);
}

void read_rows(st_mysql_stmt& statement, std::span<const type> columns, rows& result) {
  const free_result_guard guard(statement);
  if (columns.empty()) return;
  check_column_count(mysql_stmt_field_count(&statement), columns.size());
  std::vector<bound_column> bound(columns.begin(), columns.end());
  std::vector<MYSQL_BIND> binds(bound.size());
  for (std::size_t i = 0; i < bound.size(); ++i) bound[i].bind_to(binds[i]);
  if (mysql_stmt_bind_result(&statement, binds.data()) != 0)
    refuse("libmariadb refuses the columns");
  const auto row_count = mysql_stmt_num_rows(&statement);
  // A NULL has one bit on the wire and is a whole value here.
  if (row_count > largest_result / (columns.size() * sizeof(value)))
    throw answer_too_large(largest_result, loss::harmless);
  result.reserve(result.size() + row_count);
  for (;;) {
    const int status = mysql_stmt_fetch(&statement);
    if (status == MYSQL_NO_DATA) return;
    // Text and bytes are always truncated: they are bound without a buffer.
    if (status != 0 && status != MYSQL_DATA_TRUNCATED)
      throw error(errc::malformed, "a row cannot be read");
    for (unsigned i = 0; i < bound.size(); ++i) result.add(bound[i].read(statement, i));
  }
}

}  // namespace HOLDFAST_NAMESPACE::detail::sql::mysql
