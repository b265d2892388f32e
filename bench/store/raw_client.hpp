#pragma once

/// \file
/// The floor of a store: the client library of its database, used by hand, with prepared
/// statements, on a connection of its own.

#include <holdfast/store.hpp>

#include "base/url.hpp"

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace holdfast::bench {

/// Rows in a batch. Constant, because the batch statement is prepared once.
inline constexpr std::size_t batch_rows = 100;

/// The columns of a row, copied out of the client library.
struct raw_row {
  timestamp as_of{};
  timestamp expire_on{};
  std::string payload{};
  std::string payload_class{};
};

/// One connection. It replaces rows unconditionally: it does not check which entry is newer.
/// Errors: every function throws errc::unavailable if the client library fails.
class raw_client {
 public:
  raw_client() = default;
  raw_client(const raw_client&) = delete;
  raw_client& operator=(const raw_client&) = delete;
  virtual ~raw_client() = default;

  /// Runs text without parameters.
  virtual void run(const std::string& text) = 0;
  /// Prepares the statements that write to one table and read from the other.
  virtual void prepare(const std::string& written_table, const std::string& read_table) = 0;
  /// Writes exactly `batch_rows` entries, durably, as fast as the database allows.
  virtual void put(std::span<const entry> entries) = 0;
  /// Writes each entry in a transaction of its own.
  virtual void put_singly(std::span<const entry> entries) = 0;
  [[nodiscard]] virtual raw_row find(std::string_view name, std::string_view key) = 0;
};

/// Where to connect.
struct raw_client_settings {
  std::string url_text;
  holdfast::detail::url parts;
  /// Of the URL, or of the variable HOLDFAST_PASSWORD.
  std::string password;

  /// Returns a parameter of the URL, or an empty text.
  [[nodiscard]] std::string parameter(std::string_view name) const;
};

/// Throws errc::invalid_argument if the URL is invalid.
[[nodiscard]] raw_client_settings read_settings(const std::string& url);

/// Throws errc::invalid_argument if this build has no client library for the URL.
[[nodiscard]] std::unique_ptr<raw_client> connect_raw_client(const raw_client_settings& settings);

[[nodiscard]] std::unique_ptr<raw_client> connect_sqlite(const raw_client_settings& settings);
[[nodiscard]] std::unique_ptr<raw_client> connect_postgres(const raw_client_settings& settings);
[[nodiscard]] std::unique_ptr<raw_client> connect_mysql(const raw_client_settings& settings);

/// The columns of an INSERT.
inline constexpr std::string_view store_columns =
    "FAILOVER_NAME, FAILOVER_KEY, AS_OF, EXPIRE_ON, PAYLOAD, PAYLOAD_CLASS";
/// The end of an upsert of SQLite and PostgreSQL.
inline constexpr std::string_view on_conflict =
    " ON CONFLICT (FAILOVER_NAME, FAILOVER_KEY) DO UPDATE SET AS_OF = EXCLUDED.AS_OF, "
    "EXPIRE_ON = EXCLUDED.EXPIRE_ON, PAYLOAD = EXCLUDED.PAYLOAD, "
    "PAYLOAD_CLASS = EXCLUDED.PAYLOAD_CLASS";

}  // namespace holdfast::bench
