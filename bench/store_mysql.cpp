#include <holdfast/error.hpp>

#include "store_floor.hpp"

#include <mysql.h>

#include <array>
#include <vector>

namespace holdfast::bench {

namespace {

struct close_connection {
  void operator()(MYSQL* held) const noexcept { mysql_close(held); }
};
struct close_statement {
  void operator()(MYSQL_STMT* held) const noexcept { mysql_stmt_close(held); }
};
using prepared = std::unique_ptr<MYSQL_STMT, close_statement>;

constexpr std::size_t columns = 6;

MYSQL_TIME to_wire(timestamp t) {
  const auto day = std::chrono::floor<std::chrono::days>(t);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss clock(t - day);
  MYSQL_TIME made{};
  made.year = static_cast<unsigned>(static_cast<int>(date.year()));
  made.month = static_cast<unsigned>(date.month());
  made.day = static_cast<unsigned>(date.day());
  made.hour = static_cast<unsigned>(clock.hours().count());
  made.minute = static_cast<unsigned>(clock.minutes().count());
  made.second = static_cast<unsigned>(clock.seconds().count());
  made.second_part = static_cast<unsigned long>(clock.subseconds().count());
  made.time_type = MYSQL_TIMESTAMP_DATETIME;
  return made;
}

timestamp from_wire(const MYSQL_TIME& t) {
  const std::chrono::year_month_day date(std::chrono::year(static_cast<int>(t.year)), std::chrono::month(t.month), std::chrono::day(t.day));
  return std::chrono::sys_days(date) + std::chrono::hours(t.hour) + std::chrono::minutes(t.minute) + std::chrono::seconds(t.second) +
         std::chrono::microseconds(t.second_part);
}

/// The library reads what a parameter points to, but takes it as if it wrote.
void bind_text(MYSQL_BIND& to, std::string_view words) {
  to.buffer_type = MYSQL_TYPE_STRING;
  to.buffer = const_cast<char*>(words.data());
  to.buffer_length = static_cast<unsigned long>(words.size());
}
void bind_time(MYSQL_BIND& to, MYSQL_TIME& t) {
  to.buffer_type = MYSQL_TYPE_DATETIME;
  to.buffer = &t;
  to.buffer_length = sizeof t;
}

/// One prepared statement with all rows in its VALUES.
class floor_of_mysql final : public store_floor {
 public:
  explicit floor_of_mysql(const store_place& place) : held_(mysql_init(nullptr)) {
    if (!held_) throw std::bad_alloc();
    const std::string socket = place.parameter("socket");
    const unsigned protocol = socket.empty() ? MYSQL_PROTOCOL_TCP : MYSQL_PROTOCOL_SOCKET;
    mysql_options(held_.get(), MYSQL_OPT_PROTOCOL, &protocol);
    mysql_options(held_.get(), MYSQL_SET_CHARSET_NAME, "utf8mb4");
    const my_bool encrypted = place.parameter("tls") == "1" ? 1 : 0;
    mysql_options(held_.get(), MYSQL_OPT_SSL_ENFORCE, &encrypted);
    if (encrypted != 0) {
      const my_bool verified = place.parameter("tls_verify") == "0" ? 0 : 1;
      mysql_options(held_.get(), MYSQL_OPT_SSL_VERIFY_SERVER_CERT, &verified);
      set(MYSQL_OPT_SSL_CA, place.parameter("tls_ca"));
      set(MYSQL_OPT_SSL_CERT, place.parameter("tls_cert"));
      set(MYSQL_OPT_SSL_KEY, place.parameter("tls_key"));
    }
    const std::string host = place.host.empty() ? "127.0.0.1" : place.host;
    if (mysql_real_connect(held_.get(), socket.empty() ? host.c_str() : nullptr, place.user.empty() ? nullptr : place.user.c_str(),
                           place.password.c_str(), place.path.c_str(), place.port == 0 ? 3306 : place.port,
                           socket.empty() ? nullptr : socket.c_str(), 0) == nullptr) {
      fail(mysql_error(held_.get()));
    }
    run("SET time_zone = '+00:00'");
    run("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED");
  }

  void run(const std::string& text) override {
    if (mysql_real_query(held_.get(), text.data(), static_cast<unsigned long>(text.size())) != 0) fail(mysql_error(held_.get()));
  }

  void prepare(const std::string& written, const std::string& read) override {
    const std::string into = "INSERT INTO " + written + " (" + std::string(store_columns) + ") VALUES ";
    const std::string row = "(?, ?, ?, ?, ?, ?)";
    const std::string tail =
        " ON DUPLICATE KEY UPDATE EXPIRE_ON = VALUES(EXPIRE_ON), PAYLOAD = VALUES(PAYLOAD), PAYLOAD_CLASS = VALUES(PAYLOAD_CLASS), AS_OF = "
        "VALUES(AS_OF)";
    std::string all = row;
    for (std::size_t i = 1; i < batch_rows; ++i) all += ',' + row;
    batch_ = made(into + all + tail);
    single_ = made(into + row + tail);
    find_ = made("SELECT AS_OF, EXPIRE_ON, PAYLOAD, PAYLOAD_CLASS FROM " + read + " WHERE FAILOVER_NAME = ? AND FAILOVER_KEY = ?");

    bind_time(results_[0], times_[0]);
    bind_time(results_[1], times_[1]);
    bind_text(results_[2], {payload_.data(), payload_.size()});
    bind_text(results_[3], {class_.data(), class_.size()});
    for (std::size_t i = 0; i < results_.size(); ++i) results_[i].length = &lengths_[i];
    if (mysql_stmt_bind_result(find_.get(), results_.data()) != 0) fail(mysql_stmt_error(find_.get()));
  }

  void put(std::span<const entry> entries) override { write(batch_, entries); }

  void put_singly(std::span<const entry> entries) override {
    for (std::size_t i = 0; i < entries.size(); ++i) write(single_, entries.subspan(i, 1));
  }

  raw_row find(std::string_view name, std::string_view key) override {
    std::array<MYSQL_BIND, 2> given{};
    bind_text(given[0], name);
    bind_text(given[1], key);
    MYSQL_STMT* const s = find_.get();
    if (mysql_stmt_bind_param(s, given.data()) != 0 || mysql_stmt_execute(s) != 0 || mysql_stmt_fetch(s) != 0) fail(mysql_stmt_error(s));
    raw_row row{.as_of = from_wire(times_[0]),
                .expire_on = from_wire(times_[1]),
                .payload = std::string(payload_.data(), lengths_[2]),
                .payload_class = std::string(class_.data(), lengths_[3])};
    mysql_stmt_free_result(s);
    return row;
  }

 private:
  [[noreturn]] static void fail(const char* why) {
    throw error(errc::unavailable, std::string("libmariadb failed beside the store: ") + why);
  }
  void set(mysql_option option, const std::string& file) {
    if (!file.empty()) mysql_options(held_.get(), option, file.c_str());
  }
  prepared made(const std::string& text) {
    prepared s(mysql_stmt_init(held_.get()));
    if (!s) throw std::bad_alloc();
    if (mysql_stmt_prepare(s.get(), text.data(), static_cast<unsigned long>(text.size())) != 0) fail(mysql_stmt_error(s.get()));
    return s;
  }
  void write(const prepared& with, std::span<const entry> entries) {
    given_.assign(entries.size() * columns, {});
    moments_.resize(entries.size() * 2);
    for (std::size_t i = 0; i < entries.size(); ++i) {
      const entry& each = entries[i];
      MYSQL_BIND* const to = &given_[i * columns];
      moments_[2 * i] = to_wire(each.as_of);
      moments_[2 * i + 1] = to_wire(each.expire_on);
      bind_text(to[0], each.name);
      bind_text(to[1], each.key);
      bind_time(to[2], moments_[2 * i]);
      bind_time(to[3], moments_[2 * i + 1]);
      bind_text(to[4], *each.payload);
      bind_text(to[5], each.payload_class);
    }
    if (mysql_stmt_bind_param(with.get(), given_.data()) != 0 || mysql_stmt_execute(with.get()) != 0) fail(mysql_stmt_error(with.get()));
  }

  std::unique_ptr<MYSQL, close_connection> held_;
  prepared batch_{};
  prepared single_{};
  prepared find_{};
  std::vector<MYSQL_BIND> given_{};
  std::vector<MYSQL_TIME> moments_{};
  std::array<MYSQL_BIND, 4> results_{};
  std::array<MYSQL_TIME, 2> times_{};
  std::array<unsigned long, 4> lengths_{};
  std::array<char, 2048> payload_{};
  std::array<char, 256> class_{};
};

}  // namespace

std::unique_ptr<store_floor> mysql_floor(const store_place& place) { return std::make_unique<floor_of_mysql>(place); }

}  // namespace holdfast::bench
