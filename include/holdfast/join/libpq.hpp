#pragma once

/// \file
/// Joins a transaction on a PostgreSQL connection of the application. Header-only: needs
/// <libpq-fe.h>, and the application links libpq.

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

/// The transaction that is open on `handle`, which must not be in pipeline mode. Each statement is
/// one round trip. Table names are resolved with the search_path of the handle.
///
/// The client_encoding of the handle must be UTF8: with another encoding PostgreSQL would store
/// different text. Statements are refused with errc::invalid_argument otherwise. Thread-safety and
/// lifetime: see join::transaction.
class libpq final : public transaction {
 public:
  explicit libpq(PGconn* handle) noexcept : handle_(handle) {}

  [[nodiscard]] sql::dialect_id dialect() const override { return sql::dialect_id::postgresql; }

  sql::outcome execute(const sql::statement& s,
                       std::span<const sql::parameter> parameters) override {
    check_parameters(s, parameters);
    check_connection();
    bound_parameters bound(s, parameters);
    const std::unique_ptr<PGresult, void (*)(PGresult*)> result(
        PQexecParams(handle_, s.text.c_str(), static_cast<int>(parameters.size()),
                     bound.types.data(), bound.values.data(), bound.lengths.data(),
                     bound.formats.data(), 1),
        &PQclear);
    const auto status = PQresultStatus(result.get());
    if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK) {
      const char* state = PQresultErrorField(result.get(), PG_DIAG_SQLSTATE);
      const char* text = PQresultErrorField(result.get(), PG_DIAG_MESSAGE_PRIMARY);
      throw postgres_failure(state != nullptr ? state : "08006",
                             text != nullptr ? text : PQerrorMessage(handle_));
    }
    return read_all(*result, s.results);
  }

 private:
  static constexpr Oid bytea_oid = 17;
  static constexpr Oid int8_oid = 20;
  static constexpr Oid int2_oid = 21;
  static constexpr Oid int4_oid = 23;
  static constexpr Oid text_oid = 25;
  static constexpr Oid timestamptz_oid = 1184;
  // PostgreSQL counts microseconds from here.
  static constexpr timestamp epoch{std::chrono::sys_days(std::chrono::year(2000) / 1 / 1)};

  /// Parameters in PostgreSQL's binary format, as PQexecParams takes them.
  struct bound_parameters {
    bound_parameters(const sql::statement& s, std::span<const sql::parameter> parameters)
        : types(parameters.size()),
          values(parameters.size()),
          lengths(parameters.size()),
          formats(parameters.size(), 1),
          numbers(parameters.size()) {
      for (std::size_t i = 0; i < parameters.size(); ++i) {
        types[i] = oid_of(s.parameters[i]);
        if (const auto* text = std::get_if<std::string_view>(&parameters[i])) {
          bind(i, text->data(), text->size());
        } else if (const auto* bytes = std::get_if<std::span<const std::byte>>(&parameters[i])) {
          bind(i, bytes->data(), bytes->size());
        } else if (const auto* number = std::get_if<std::int64_t>(&parameters[i])) {
          bind_number(i, *number);
        } else if (const auto* time = std::get_if<timestamp>(&parameters[i])) {
          bind_number(i, (*time - epoch).count());
        }
      }
    }

    void bind(std::size_t index, const void* data, std::size_t size) {
      if (size > static_cast<std::size_t>(std::numeric_limits<int>::max()))
        throw error(errc::too_large, "a parameter is larger than PostgreSQL accepts");
      // libpq takes a null pointer for NULL; an empty value needs an address.
      values[index] = data != nullptr ? static_cast<const char*>(data) : "";
      lengths[index] = static_cast<int>(size);
    }
    void bind_number(std::size_t index, std::int64_t number) {
      numbers[index] = big_endian(number);
      bind(index, numbers[index].data(), numbers[index].size());
    }

    std::vector<Oid> types;
    std::vector<const char*> values;
    std::vector<int> lengths;
    std::vector<int> formats;
    std::vector<std::string> numbers;  // memory of the integers and times
  };

  void check_connection() const {
    const auto status = PQtransactionStatus(handle_);
    if (status == PQTRANS_IDLE) throw no_transaction();
    if (status == PQTRANS_UNKNOWN) throw postgres_failure("08006", "the connection is lost");
    const char* encoding = PQparameterStatus(handle_, "client_encoding");
    if (encoding == nullptr || std::string_view(encoding) != "UTF8") {
      throw error(errc::invalid_argument,
                  "the client_encoding of the connection is " +
                      std::string(encoding != nullptr ? encoding : "unknown") +
                      ", not UTF8: call PQsetClientEncoding(handle, \"UTF8\") after connecting");
    }
  }

  [[nodiscard]] static Oid oid_of(sql::type type) noexcept {
    switch (type) {
      case sql::type::integer:
        return int8_oid;
      case sql::type::bytes:
        return bytea_oid;
      case sql::type::time:
        return timestamptz_oid;
      case sql::type::text:
        break;
    }
    return text_oid;
  }

  [[nodiscard]] static std::string big_endian(std::int64_t number) {
    std::string bytes(8, '\0');
    auto rest = static_cast<std::uint64_t>(number);
    for (std::size_t i = 8; i-- > 0; rest >>= 8U) bytes[i] = static_cast<char>(rest & 0xFFU);
    return bytes;
  }

  [[nodiscard]] static sql::outcome read_all(PGresult& result, std::span<const sql::type> types) {
    sql::outcome outcome{.rows = sql::rows(types.size())};
    const std::string_view digits = PQcmdTuples(&result);
    std::from_chars(digits.data(), digits.data() + digits.size(), outcome.affected);
    if (types.empty()) return outcome;
    if (PQnfields(&result) != static_cast<int>(types.size()))
      throw error(errc::invalid_argument, "the statement returns other columns than it declares");
    for (int row = 0; row < PQntuples(&result); ++row) {
      for (int column = 0; column < static_cast<int>(types.size()); ++column) {
        outcome.rows.add(read(result, row, column, types[static_cast<std::size_t>(column)]));
      }
    }
    return outcome;
  }

  [[nodiscard]] static sql::value read(PGresult& result, int row, int column, sql::type type) {
    if (PQgetisnull(&result, row, column) != 0) return {};
    const std::string_view bytes(PQgetvalue(&result, row, column),
                                 static_cast<std::size_t>(PQgetlength(&result, row, column)));
    if (type == sql::type::text || type == sql::type::bytes) return std::string(bytes);
    const Oid oid = PQftype(&result, column);
    const bool fits = type == sql::type::time
                          ? oid == timestamptz_oid
                          : oid == int8_oid || oid == int2_oid || oid == int4_oid;
    if (!fits || bytes.empty() || bytes.size() > 8)
      throw error(errc::unsupported_type, "the column " + std::string(PQfname(&result, column)) +
                                              " does not have the expected type");
    // Big-endian and two's complement: start with the sign.
    std::uint64_t bits =
        (static_cast<unsigned char>(bytes.front()) & 0x80U) != 0 ? ~std::uint64_t{0} : 0;
    for (const char byte : bytes) bits = bits << 8U | static_cast<unsigned char>(byte);
    const auto number = static_cast<std::int64_t>(bits);
    if (type == sql::type::integer) return number;
    return epoch + std::chrono::microseconds(number);
  }

  PGconn* handle_;
};

}  // namespace HOLDFAST_NAMESPACE::join
