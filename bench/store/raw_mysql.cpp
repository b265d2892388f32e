#include <holdfast/error.hpp>

#include "bench/store/raw_client.hpp"

#include <mysql.h>

#include <array>
#include <vector>

namespace holdfast::bench {

namespace {

struct close_connection {
  void operator()(MYSQL* connection) const noexcept { mysql_close(connection); }
};
struct close_statement {
  void operator()(MYSQL_STMT* statement) const noexcept { mysql_stmt_close(statement); }
};
using prepared_statement = std::unique_ptr<MYSQL_STMT, close_statement>;

constexpr std::size_t column_count = 6;

MYSQL_TIME encode_time(timestamp time) {
  const auto day = std::chrono::floor<std::chrono::days>(time);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss clock(time - day);
  MYSQL_TIME encoded{};
  encoded.year = static_cast<unsigned>(static_cast<int>(date.year()));
  encoded.month = static_cast<unsigned>(date.month());
  encoded.day = static_cast<unsigned>(date.day());
  encoded.hour = static_cast<unsigned>(clock.hours().count());
  encoded.minute = static_cast<unsigned>(clock.minutes().count());
  encoded.second = static_cast<unsigned>(clock.seconds().count());
  encoded.second_part = static_cast<unsigned long>(clock.subseconds().count());
  encoded.time_type = MYSQL_TIMESTAMP_DATETIME;
  return encoded;
}

timestamp decode_time(const MYSQL_TIME& time) {
  const std::chrono::year_month_day date(std::chrono::year(static_cast<int>(time.year)),
                                         std::chrono::month(time.month),
                                         std::chrono::day(time.day));
  return std::chrono::sys_days(date) + std::chrono::hours(time.hour) +
         std::chrono::minutes(time.minute) + std::chrono::seconds(time.second) +
         std::chrono::microseconds(time.second_part);
}

/// The library does not change the buffer of a parameter, although the type is not const.
void bind_text(MYSQL_BIND& parameter, std::string_view text) {
  parameter.buffer_type = MYSQL_TYPE_STRING;
  parameter.buffer = const_cast<char*>(text.data());
  parameter.buffer_length = static_cast<unsigned long>(text.size());
}
void bind_time(MYSQL_BIND& parameter, MYSQL_TIME& time) {
  parameter.buffer_type = MYSQL_TYPE_DATETIME;
  parameter.buffer = &time;
  parameter.buffer_length = sizeof time;
}

/// A batch is one prepared statement with all rows in its VALUES.
class raw_mysql final : public raw_client {
 public:
  explicit raw_mysql(const raw_client_settings& settings) : connection_(mysql_init(nullptr)) {
    if (!connection_) throw std::bad_alloc();
    const std::string socket = settings.parameter("socket");
    const unsigned protocol = socket.empty() ? MYSQL_PROTOCOL_TCP : MYSQL_PROTOCOL_SOCKET;
    mysql_options(connection_.get(), MYSQL_OPT_PROTOCOL, &protocol);
    mysql_options(connection_.get(), MYSQL_SET_CHARSET_NAME, "utf8mb4");
    const my_bool encrypted = settings.parameter("tls") == "1" ? 1 : 0;
    mysql_options(connection_.get(), MYSQL_OPT_SSL_ENFORCE, &encrypted);
    if (encrypted != 0) {
      const my_bool verified = settings.parameter("tls_verify") == "0" ? 0 : 1;
      mysql_options(connection_.get(), MYSQL_OPT_SSL_VERIFY_SERVER_CERT, &verified);
      set(MYSQL_OPT_SSL_CA, settings.parameter("tls_ca"));
      set(MYSQL_OPT_SSL_CERT, settings.parameter("tls_cert"));
      set(MYSQL_OPT_SSL_KEY, settings.parameter("tls_key"));
    }
    const detail::url& parts = settings.parts;
    const std::string host = parts.host.empty() ? "127.0.0.1" : parts.host;
    if (mysql_real_connect(connection_.get(), socket.empty() ? host.c_str() : nullptr,
                           parts.user ? parts.user->c_str() : nullptr, settings.password.c_str(),
                           parts.path.c_str(), parts.port.value_or(3306),
                           socket.empty() ? nullptr : socket.c_str(), 0) == nullptr) {
      fail(mysql_error(connection_.get()));
    }
    run("SET time_zone = '+00:00'");
    run("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED");
  }

  void run(const std::string& text) override {
    if (mysql_real_query(connection_.get(), text.data(), static_cast<unsigned long>(text.size())) !=
        0)
      fail(mysql_error(connection_.get()));
  }

  void prepare(const std::string& written_table, const std::string& read_table) override {
    const std::string insert =
        "INSERT INTO " + written_table + " (" + std::string(store_columns) + ") VALUES ";
    const std::string row = "(?, ?, ?, ?, ?, ?)";
    const std::string tail =
        " ON DUPLICATE KEY UPDATE EXPIRE_ON = VALUES(EXPIRE_ON), PAYLOAD = VALUES(PAYLOAD), "
        "PAYLOAD_CLASS = VALUES(PAYLOAD_CLASS), AS_OF = VALUES(AS_OF)";
    std::string rows = row;
    for (std::size_t i = 1; i < batch_rows; ++i) rows += ',' + row;
    batch_ = prepared(insert + rows + tail);
    single_ = prepared(insert + row + tail);
    find_ = prepared("SELECT AS_OF, EXPIRE_ON, PAYLOAD, PAYLOAD_CLASS FROM " + read_table +
                     " WHERE FAILOVER_NAME = ? AND FAILOVER_KEY = ?");

    bind_time(results_[0], result_times_[0]);
    bind_time(results_[1], result_times_[1]);
    bind_text(results_[2], {payload_.data(), payload_.size()});
    bind_text(results_[3], {class_.data(), class_.size()});
    for (std::size_t i = 0; i < results_.size(); ++i) results_[i].length = &lengths_[i];
    if (mysql_stmt_bind_result(find_.get(), results_.data()) != 0)
      fail(mysql_stmt_error(find_.get()));
  }

  void put(std::span<const entry> entries) override { write(batch_, entries); }

  void put_singly(std::span<const entry> entries) override {
    for (std::size_t i = 0; i < entries.size(); ++i) write(single_, entries.subspan(i, 1));
  }

  raw_row find(std::string_view name, std::string_view key) override {
    std::array<MYSQL_BIND, 2> parameters{};
    bind_text(parameters[0], name);
    bind_text(parameters[1], key);
    MYSQL_STMT* const statement = find_.get();
    if (mysql_stmt_bind_param(statement, parameters.data()) != 0 ||
        mysql_stmt_execute(statement) != 0 || mysql_stmt_fetch(statement) != 0)
      fail(mysql_stmt_error(statement));
    raw_row row{.as_of = decode_time(result_times_[0]),
                .expire_on = decode_time(result_times_[1]),
                .payload = std::string(payload_.data(), lengths_[2]),
                .payload_class = std::string(class_.data(), lengths_[3])};
    mysql_stmt_free_result(statement);
    return row;
  }

 private:
  [[noreturn]] static void fail(const char* reason) {
    throw error(errc::unavailable, std::string("libmariadb, used by hand, failed: ") + reason);
  }
  void set(mysql_option option, const std::string& file) {
    if (!file.empty()) mysql_options(connection_.get(), option, file.c_str());
  }
  prepared_statement prepared(const std::string& text) {
    prepared_statement statement(mysql_stmt_init(connection_.get()));
    if (!statement) throw std::bad_alloc();
    if (mysql_stmt_prepare(statement.get(), text.data(), static_cast<unsigned long>(text.size())) !=
        0)
      fail(mysql_stmt_error(statement.get()));
    return statement;
  }
  void write(const prepared_statement& statement, std::span<const entry> entries) {
    parameters_.assign(entries.size() * column_count, {});
    parameter_times_.resize(entries.size() * 2);
    for (std::size_t i = 0; i < entries.size(); ++i) {
      const entry& written = entries[i];
      MYSQL_BIND* const columns = &parameters_[i * column_count];
      parameter_times_[2 * i] = encode_time(written.as_of);
      parameter_times_[2 * i + 1] = encode_time(written.expire_on);
      bind_text(columns[0], written.name);
      bind_text(columns[1], written.key);
      bind_time(columns[2], parameter_times_[2 * i]);
      bind_time(columns[3], parameter_times_[2 * i + 1]);
      bind_text(columns[4], *written.payload);
      bind_text(columns[5], written.payload_class);
    }
    if (mysql_stmt_bind_param(statement.get(), parameters_.data()) != 0 ||
        mysql_stmt_execute(statement.get()) != 0)
      fail(mysql_stmt_error(statement.get()));
  }

  std::unique_ptr<MYSQL, close_connection> connection_;
  prepared_statement batch_{};
  prepared_statement single_{};
  prepared_statement find_{};
  std::vector<MYSQL_BIND> parameters_{};
  std::vector<MYSQL_TIME> parameter_times_{};
  std::array<MYSQL_BIND, 4> results_{};
  std::array<MYSQL_TIME, 2> result_times_{};
  std::array<unsigned long, 4> lengths_{};
  std::array<char, 2048> payload_{};
  std::array<char, 256> class_{};
};

}  // namespace

std::unique_ptr<raw_client> connect_mysql(const raw_client_settings& settings) {
  return std::make_unique<raw_mysql>(settings);
}

}  // namespace holdfast::bench
