#include "sql/mysql_values.hpp"

#include <holdfast/error.hpp>

#include "sql/answer_limits.hpp"
#include "sql/civil_time.hpp"
#include "sql/mysql_errors.hpp"

#include <mysql.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <optional>
#include <string>
#include <utility>

namespace HOLDFAST_NAMESPACE::sql::mysql {

namespace {

[[noreturn]] void refuse(const std::string& why) { throw error(errc::invalid_argument, why); }

MYSQL_TIME to_date(timestamp moment) {
  using namespace std::chrono;
  constexpr timestamp first = sys_days(year(1) / 1 / 1);
  if (moment < first) throw error(errc::out_of_range, "a moment before the year 1 has no DATETIME");
  moment = std::min(moment, last_date);
  const auto day = floor<days>(moment);
  const year_month_day date(day);
  const hh_mm_ss time(moment - day);
  MYSQL_TIME made{};
  made.year = static_cast<unsigned>(static_cast<int>(date.year()));
  made.month = static_cast<unsigned>(date.month());
  made.day = static_cast<unsigned>(date.day());
  made.hour = static_cast<unsigned>(time.hours().count());
  made.minute = static_cast<unsigned>(time.minutes().count());
  made.second = static_cast<unsigned>(time.seconds().count());
  made.second_part = static_cast<unsigned long>(time.subseconds().count());
  made.time_type = MYSQL_TIMESTAMP_DATETIME;
  return made;
}

/// NULL for a date that is none: one odd row must not cost the others.
value to_moment(const MYSQL_TIME& date) {
  using namespace std::chrono;
  const year_month_day day(year(static_cast<int>(date.year)), month(date.month), std::chrono::day(date.day));
  // 0000-00-00 and its like: MySQL keeps them in tables that were filled without strict mode.
  if (date.year == 0 || !day.ok()) return {};
  return timestamp(sys_days(day) + hours(date.hour) + minutes(date.minute) + seconds(date.second) + microseconds(date.second_part));
}

/// libmariadb only reads from the buffers of parameters, though its type does not say so.
void* readable(const void* from) { return const_cast<void*>(from); }  // NOLINT(cppcoreguidelines-pro-type-const-cast)

/// One column of a result: numbers and dates go where they are bound; text is fetched when its length is known.
class bound_column {
 public:
  explicit bound_column(type declared) : declared_(declared) {}

  void bind(MYSQL_BIND& to) {
    to = MYSQL_BIND{};
    to.is_null = &null_;
    to.length = &length_;
    to.error = &truncated_;
    switch (declared_) {
      case type::integer:
        to.buffer_type = MYSQL_TYPE_LONGLONG;
        to.buffer = &integer_;
        break;
      case type::time:
        to.buffer_type = MYSQL_TYPE_DATETIME;
        to.buffer = &date_;
        to.buffer_length = sizeof date_;
        break;
      case type::text:
      case type::bytes:
        to.buffer_type = declared_ == type::text ? MYSQL_TYPE_STRING : MYSQL_TYPE_BLOB;
        to.buffer = &nothing_;
        to.buffer_length = 0;
        break;
    }
  }

  [[nodiscard]] value read(MYSQL_STMT& statement, unsigned column) {
    if (null_ != 0) return std::monostate{};
    switch (declared_) {
      case type::integer:
        if (truncated_ != 0) throw error(errc::out_of_range, "the row holds a number that is no 64-bit integer");
        return static_cast<std::int64_t>(integer_);
      case type::time:
        return to_moment(date_);
      case type::text:
      case type::bytes:
        break;
    }
    std::string made(length_, '\0');
    if (length_ == 0) return made;
    MYSQL_BIND whole{};
    unsigned long length = 0;
    my_bool null = 0;
    my_bool truncated = 0;
    whole.buffer_type = declared_ == type::text ? MYSQL_TYPE_STRING : MYSQL_TYPE_BLOB;
    whole.buffer = made.data();
    whole.buffer_length = made.size();
    whole.length = &length;
    whole.is_null = &null;
    whole.error = &truncated;
    if (mysql_stmt_fetch_column(&statement, &whole, column, 0) != 0 || length != made.size()) {
      throw error(errc::malformed, "a value of a row cannot be read");
    }
    return made;
  }

 private:
  type declared_;
  my_bool null_ = 0;
  my_bool truncated_ = 0;
  unsigned long length_ = 0;
  long long integer_ = 0;
  MYSQL_TIME date_{};
  char nothing_ = 0;
};

/// The rows of a statement are freed whatever happens while they are read.
class stored_rows {
 public:
  explicit stored_rows(MYSQL_STMT& statement) : statement_(statement) {}
  stored_rows(const stored_rows&) = delete;
  stored_rows& operator=(const stored_rows&) = delete;
  ~stored_rows() { mysql_stmt_free_result(&statement_); }

 private:
  MYSQL_STMT& statement_;
};

}  // namespace

union bound_parameters::scalar {
  long long integer;
  MYSQL_TIME date;
};

bound_parameters::bound_parameters() = default;
bound_parameters::~bound_parameters() = default;

std::size_t bound_parameters::size() const noexcept { return binds_.size(); }

void bound_parameters::start(std::size_t count) {
  binds_.clear();
  scalars_.clear();
  binds_.reserve(count);
  // The binds point into it: it must not move while they are added.
  scalars_.reserve(count);
}

void bound_parameters::add(type declared, const parameter& value) {
  // A NULL keeps the type of its column: the server then needs not look at the types again.
  static my_bool is_null = 1;
  MYSQL_BIND made{};
  const bool null = std::holds_alternative<std::monostate>(value);
  if (null) made.is_null = &is_null;
  const auto wrong = [&] { refuse("parameter " + std::to_string(binds_.size() + 1) + " is not of the type that the statement declares"); };
  switch (declared) {
    case type::integer:
      made.buffer_type = MYSQL_TYPE_LONGLONG;
      if (const auto* number = std::get_if<std::int64_t>(&value)) {
        scalars_.push_back({.integer = *number});
        made.buffer = &scalars_.back().integer;
      } else if (!null) {
        wrong();
      }
      break;
    case type::time:
      made.buffer_type = MYSQL_TYPE_DATETIME;
      if (const auto* moment = std::get_if<timestamp>(&value)) {
        scalars_.push_back({.date = to_date(*moment)});
        made.buffer = &scalars_.back().date;
        made.buffer_length = sizeof(MYSQL_TIME);
      } else if (!null) {
        wrong();
      }
      break;
    case type::text:
      made.buffer_type = MYSQL_TYPE_STRING;
      if (const auto* text = std::get_if<std::string_view>(&value)) {
        made.buffer = readable(text->empty() ? "" : text->data());
        made.buffer_length = text->size();
      } else if (!null) {
        wrong();
      }
      break;
    case type::bytes:
      made.buffer_type = MYSQL_TYPE_BLOB;
      if (const auto* bytes = std::get_if<std::span<const std::byte>>(&value)) {
        made.buffer = readable(bytes->empty() ? static_cast<const void*>("") : bytes->data());
        made.buffer_length = bytes->size();
      } else if (!null) {
        wrong();
      }
      break;
  }
  binds_.push_back(made);
}

void bound_parameters::bind_to(st_mysql_stmt& statement) {
  if (mysql_stmt_param_count(&statement) != binds_.size()) {
    refuse("the statement has " + std::to_string(mysql_stmt_param_count(&statement)) + " parameters, " + std::to_string(binds_.size()) +
           " were given");
  }
  if (!binds_.empty() && mysql_stmt_bind_param(&statement, binds_.data()) != 0) refuse("libmariadb refuses the parameters");
}

std::size_t wire_size(const parameter& value) noexcept {
  constexpr std::size_t type_and_length = 2 + 9 + 1;
  if (const auto* text = std::get_if<std::string_view>(&value)) return type_and_length + text->size();
  if (const auto* bytes = std::get_if<std::span<const std::byte>>(&value)) return type_and_length + bytes->size();
  return type_and_length + 12;
}

void read_rows(st_mysql_stmt& statement, std::span<const type> columns, rows& into) {
  const stored_rows freed_in_the_end(statement);
  if (columns.empty()) return;
  if (mysql_stmt_field_count(&statement) != columns.size()) {
    refuse("the statement returns " + std::to_string(mysql_stmt_field_count(&statement)) + " columns, " + std::to_string(columns.size()) +
           " were announced");
  }
  std::vector<bound_column> bound(columns.begin(), columns.end());
  std::vector<MYSQL_BIND> binds(bound.size());
  for (std::size_t i = 0; i < bound.size(); ++i) bound[i].bind(binds[i]);
  if (mysql_stmt_bind_result(&statement, binds.data()) != 0) refuse("libmariadb refuses the columns");
  const auto count = mysql_stmt_num_rows(&statement);
  // A row of NULLs has a bit for each column on the wire, and a whole value here.
  if (count > largest_result / (columns.size() * sizeof(value))) throw answer_too_large(largest_result, false);
  into.reserve(into.size() + count);
  for (;;) {
    const int state = mysql_stmt_fetch(&statement);
    if (state == MYSQL_NO_DATA) return;
    // Truncation is the rule here: text is bound without room and fetched when its length is known.
    if (state != 0 && state != MYSQL_DATA_TRUNCATED) throw error(errc::malformed, "a row cannot be read");
    for (unsigned i = 0; i < bound.size(); ++i) into.add(bound[i].read(statement, i));
  }
}

}  // namespace HOLDFAST_NAMESPACE::sql::mysql
