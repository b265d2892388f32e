#pragma once

/// \file
/// Opt-in, header-only: joins a transaction on a PostgreSQL connection of the caller's. Needs <libpq-fe.h>, and the caller links libpq.

#include <holdfast/join/transaction.hpp>
#include <holdfast/sql.hpp>
#include <holdfast/version.hpp>

#include <libpq-fe.h>

#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace HOLDFAST_NAMESPACE::join {

/// The transaction that is open on `handle`. One round trip for each statement. Not for a handle in pipeline mode. Names of tables are
/// looked up in the search_path of the handle. Its client_encoding has to be UTF8; else every statement is refused with
/// errc::invalid_argument, since texts would be kept as other texts. Thread-safety and lifetime as join::transaction.
class libpq final : public transaction {
 public:
  explicit libpq(PGconn* handle) noexcept : handle_(handle) {}

  [[nodiscard]] sql::dialect_id dialect() const override { return sql::dialect_id::postgresql; }

  sql::outcome execute(const sql::statement& s, std::span<const sql::parameter> parameters) override {
    check_parameters(s, parameters);
    const auto open = PQtransactionStatus(handle_);
    if (open == PQTRANS_IDLE) throw no_transaction();
    if (open == PQTRANS_UNKNOWN) throw postgres_failure("08006", "the connection is lost");
    const char* encoding = PQparameterStatus(handle_, "client_encoding");
    if (encoding == nullptr || std::string_view(encoding) != "UTF8") {
      throw error(errc::invalid_argument, "the client_encoding of the connection is " +
                                              std::string(encoding != nullptr ? encoding : "unknown") +
                                              ", not UTF8: call PQsetClientEncoding(handle, \"UTF8\") after connecting");
    }
    const std::size_t count = parameters.size();
    std::vector<Oid> types(count);
    std::vector<std::string> numbers(count);  // what is sent as eight bytes
    std::vector<const char*> values(count);
    std::vector<int> lengths(count);
    const std::vector<int> binary(count, 1);
    for (std::size_t i = 0; i < count; ++i) {
      types[i] = oid_of(s.parameters[i]);
      const auto point = [&](const void* data, std::size_t size) {
        if (size > static_cast<std::size_t>(std::numeric_limits<int>::max()))
          throw error(errc::too_large, "a parameter is larger than PostgreSQL can take");
        values[i] = data != nullptr ? static_cast<const char*>(data) : "";
        lengths[i] = static_cast<int>(size);
      };
      if (const auto* text = std::get_if<std::string_view>(&parameters[i])) {
        point(text->data(), text->size());
      } else if (const auto* bytes = std::get_if<std::span<const std::byte>>(&parameters[i])) {
        point(bytes->data(), bytes->size());
      } else if (const auto* number = std::get_if<std::int64_t>(&parameters[i])) {
        numbers[i] = big_endian(*number);
        point(numbers[i].data(), numbers[i].size());
      } else if (const auto* moment = std::get_if<timestamp>(&parameters[i])) {
        numbers[i] = big_endian((*moment - epoch).count());
        point(numbers[i].data(), numbers[i].size());
      }
    }
    const std::unique_ptr<PGresult, void (*)(PGresult*)> done(
        PQexecParams(handle_, s.text.c_str(), static_cast<int>(count), types.data(), values.data(), lengths.data(), binary.data(), 1),
        &PQclear);
    const auto status = PQresultStatus(done.get());
    if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK) {
      const char* state = PQresultErrorField(done.get(), PG_DIAG_SQLSTATE);
      const char* text = PQresultErrorField(done.get(), PG_DIAG_MESSAGE_PRIMARY);
      throw postgres_failure(state != nullptr ? state : "08006", text != nullptr ? text : PQerrorMessage(handle_));
    }
    return read_all(*done, s.results);
  }

 private:
  static constexpr timestamp epoch{std::chrono::sys_days(std::chrono::year(2000) / 1 / 1)};  // PostgreSQL's

  [[nodiscard]] static Oid oid_of(sql::type declared) noexcept {
    switch (declared) {
      case sql::type::integer:
        return 20;  // int8
      case sql::type::bytes:
        return 17;  // bytea
      case sql::type::time:
        return 1184;  // timestamptz
      case sql::type::text:
        break;
    }
    return 25;  // text
  }

  [[nodiscard]] static std::string big_endian(std::int64_t number) {
    std::string bytes(8, '\0');
    auto rest = static_cast<std::uint64_t>(number);
    for (std::size_t i = 8; i-- > 0; rest >>= 8U) bytes[i] = static_cast<char>(rest & 0xFFU);
    return bytes;
  }

  [[nodiscard]] static sql::outcome read_all(PGresult& from, std::span<const sql::type> wanted) {
    sql::outcome result{.rows = sql::rows(wanted.size())};
    const std::string_view digits = PQcmdTuples(&from);
    std::from_chars(digits.data(), digits.data() + digits.size(), result.affected);
    if (wanted.empty()) return result;
    if (PQnfields(&from) != static_cast<int>(wanted.size()))
      throw error(errc::invalid_argument, "the statement returns other columns than it declares");
    for (int row = 0; row < PQntuples(&from); ++row) {
      for (int column = 0; column < static_cast<int>(wanted.size()); ++column) {
        result.rows.add(read(from, row, column, wanted[static_cast<std::size_t>(column)]));
      }
    }
    return result;
  }

  [[nodiscard]] static sql::value read(PGresult& from, int row, int column, sql::type wanted) {
    if (PQgetisnull(&from, row, column) != 0) return {};
    const std::string_view bytes(PQgetvalue(&from, row, column), static_cast<std::size_t>(PQgetlength(&from, row, column)));
    if (wanted == sql::type::text || wanted == sql::type::bytes) return std::string(bytes);
    const Oid held = PQftype(&from, column);
    const bool fits = wanted == sql::type::time ? held == 1184 : held == 20 || held == 21 || held == 23;  // timestamptz; int8, int2, int4
    if (!fits || bytes.empty() || bytes.size() > 8)
      throw error(errc::unsupported_type, "the column " + std::string(PQfname(&from, column)) + " is not of the type that is expected");
    std::uint64_t number = (static_cast<unsigned char>(bytes.front()) & 0x80U) != 0 ? ~std::uint64_t{0} : 0;
    for (const char each : bytes) number = number << 8U | static_cast<unsigned char>(each);
    const auto value = static_cast<std::int64_t>(number);
    if (wanted == sql::type::integer) return value;
    return epoch + std::chrono::microseconds(value);
  }

  PGconn* handle_;
};

}  // namespace HOLDFAST_NAMESPACE::join
