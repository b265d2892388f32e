#include <holdfast/error.hpp>

#include "bench/store/raw_client.hpp"

#include <endian.h>
#include <libpq-fe.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <initializer_list>

namespace holdfast::bench {

namespace {

struct close_connection {
  void operator()(PGconn* connection) const noexcept { PQfinish(connection); }
};
struct clear_result {
  void operator()(PGresult* result) const noexcept { PQclear(result); }
};
using result_ptr = std::unique_ptr<PGresult, clear_result>;

constexpr Oid text_oid = 25;
constexpr Oid text_array_oid = 1009;
constexpr Oid time_oid = 1184;
constexpr Oid time_array_oid = 1185;
constexpr std::size_t column_count = 6;
/// PostgreSQL counts microseconds from the year 2000.
constexpr timestamp postgres_epoch = std::chrono::sys_days(std::chrono::January / 1 / 2000);

std::uint64_t encode_time(timestamp time) {
  return htobe64(static_cast<std::uint64_t>((time - postgres_epoch).count()));
}
timestamp decode_time(const char* data) {
  std::uint64_t encoded = 0;
  std::memcpy(&encoded, data, sizeof encoded);
  return postgres_epoch + std::chrono::microseconds(static_cast<std::int64_t>(be64toh(encoded)));
}

void append_integer(std::string& array, std::size_t number) {
  const std::uint32_t encoded = htobe32(static_cast<std::uint32_t>(number));
  array.append(reinterpret_cast<const char*>(&encoded), sizeof encoded);
}
void append_text(std::string& array, std::string_view text) {
  append_integer(array, text.size());
  array.append(text);
}
void append_time(std::string& array, timestamp time) {
  const std::uint64_t encoded = encode_time(time);
  append_integer(array, sizeof encoded);
  array.append(reinterpret_cast<const char*>(&encoded), sizeof encoded);
}

/// A batch is one prepared statement whose parameters are binary arrays, one for each column.
class raw_postgres final : public raw_client {
 public:
  explicit raw_postgres(const raw_client_settings& settings) {
    // A later keyword wins, so a password in the URL replaces ours. Without a password the first
    // keyword is one that does nothing.
    const std::string& password = settings.password;
    const std::array<const char*, 4> keywords{password.empty() ? "application_name" : "password",
                                              "dbname", "client_encoding", nullptr};
    const std::array<const char*, 4> values{password.c_str(), settings.url_text.c_str(), "UTF8",
                                            nullptr};
    connection_.reset(PQconnectdbParams(keywords.data(), values.data(), 1));
    if (PQstatus(connection_.get()) != CONNECTION_OK) fail();
    run("SET client_min_messages = warning");
  }

  void run(const std::string& text) override {
    check(result_ptr(PQexec(connection_.get(), text.c_str())), PGRES_COMMAND_OK);
  }

  void prepare(const std::string& written_table, const std::string& read_table) override {
    const std::string insert =
        "INSERT INTO " + written_table + " (" + std::string(store_columns) + ") ";
    prepare_statement(
        "batch",
        insert +
            "SELECT * FROM unnest($1::text[], $2::text[], $3::timestamptz[], $4::timestamptz[], "
            "$5::text[], $6::text[])" +
            std::string(on_conflict),
        {text_array_oid, text_array_oid, time_array_oid, time_array_oid, text_array_oid,
         text_array_oid});
    prepare_statement("single",
                      insert + "VALUES ($1, $2, $3, $4, $5, $6)" + std::string(on_conflict),
                      {text_oid, text_oid, time_oid, time_oid, text_oid, text_oid});
    prepare_statement("find",
                      "SELECT AS_OF, EXPIRE_ON, PAYLOAD, PAYLOAD_CLASS FROM " + read_table +
                          " WHERE FAILOVER_NAME = $1 AND FAILOVER_KEY = $2",
                      {text_oid, text_oid});
  }

  void put(std::span<const entry> entries) override {
    constexpr std::array<Oid, column_count> element_types{text_oid, text_oid, time_oid,
                                                          time_oid, text_oid, text_oid};
    std::array<const char*, column_count> values{};
    std::array<int, column_count> lengths{};
    for (std::size_t i = 0; i < column_count; ++i) {
      arrays_[i].clear();
      // The header: dimensions, whether there are NULLs, element type, length, first index.
      for (const std::size_t number :
           {std::size_t{1}, std::size_t{0}, std::size_t{element_types[i]}, entries.size(),
            std::size_t{1}}) {
        append_integer(arrays_[i], number);
      }
    }
    for (const entry& written : entries) {
      append_text(arrays_[0], written.name);
      append_text(arrays_[1], written.key);
      append_time(arrays_[2], written.as_of);
      append_time(arrays_[3], written.expire_on);
      append_text(arrays_[4], *written.payload);
      append_text(arrays_[5], written.payload_class);
    }
    for (std::size_t i = 0; i < column_count; ++i) {
      values[i] = arrays_[i].data();
      lengths[i] = static_cast<int>(arrays_[i].size());
    }
    execute("batch", values, lengths, PGRES_COMMAND_OK);
  }

  void put_singly(std::span<const entry> entries) override {
    for (const entry& written : entries) {
      const std::uint64_t as_of = encode_time(written.as_of);
      const std::uint64_t expire_on = encode_time(written.expire_on);
      const std::array<const char*, column_count> values{written.name.data(),
                                                         written.key.data(),
                                                         reinterpret_cast<const char*>(&as_of),
                                                         reinterpret_cast<const char*>(&expire_on),
                                                         written.payload->data(),
                                                         written.payload_class.data()};
      const std::array<int, column_count> lengths{static_cast<int>(written.name.size()),
                                                  static_cast<int>(written.key.size()),
                                                  sizeof as_of,
                                                  sizeof expire_on,
                                                  static_cast<int>(written.payload->size()),
                                                  static_cast<int>(written.payload_class.size())};
      execute("single", values, lengths, PGRES_COMMAND_OK);
    }
  }

  raw_row find(std::string_view name, std::string_view key) override {
    const std::array<const char*, 2> values{name.data(), key.data()};
    const std::array<int, 2> lengths{static_cast<int>(name.size()), static_cast<int>(key.size())};
    const result_ptr result = execute("find", values, lengths, PGRES_TUPLES_OK);
    if (PQntuples(result.get()) != 1)
      throw error(errc::unavailable, "libpq, used by hand, does not find an existing row");
    const auto text = [&result](int column) {
      return std::string(PQgetvalue(result.get(), 0, column),
                         static_cast<std::size_t>(PQgetlength(result.get(), 0, column)));
    };
    return {.as_of = decode_time(PQgetvalue(result.get(), 0, 0)),
            .expire_on = decode_time(PQgetvalue(result.get(), 0, 1)),
            .payload = text(2),
            .payload_class = text(3)};
  }

 private:
  [[noreturn]] void fail() const {
    const std::string message = PQerrorMessage(connection_.get());
    throw error(errc::unavailable,
                "libpq, used by hand, failed: " + message.substr(0, message.find('\n')));
  }
  void check(const result_ptr& result, ExecStatusType expected) const {
    if (PQresultStatus(result.get()) != expected) fail();
  }
  void prepare_statement(const char* name, const std::string& text,
                         std::initializer_list<Oid> types) {
    check(result_ptr(PQprepare(connection_.get(), name, text.c_str(),
                               static_cast<int>(types.size()), types.begin())),
          PGRES_COMMAND_OK);
  }
  template <std::size_t Count>
  result_ptr execute(const char* name, const std::array<const char*, Count>& values,
                     const std::array<int, Count>& lengths, ExecStatusType expected) {
    std::array<int, Count> binary_formats{};
    binary_formats.fill(1);
    result_ptr result(PQexecPrepared(connection_.get(), name, static_cast<int>(Count),
                                     values.data(), lengths.data(), binary_formats.data(), 1));
    check(result, expected);
    return result;
  }

  std::unique_ptr<PGconn, close_connection> connection_{};
  std::array<std::string, column_count> arrays_{};
};

}  // namespace

std::unique_ptr<raw_client> connect_postgres(const raw_client_settings& settings) {
  return std::make_unique<raw_postgres>(settings);
}

}  // namespace holdfast::bench
