#pragma once

/// \file
/// What the store is measured beside: the client library of its database, used as well as one can by hand, with nothing around it.

#include <holdfast/store.hpp>

#include <cstddef>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace holdfast::bench {

/// How many rows a batch of the floor has: always the same, as it is prepared once.
inline constexpr std::size_t batch_rows = 100;

/// A row's columns, copied out.
struct raw_row {
  timestamp as_of{};
  timestamp expire_on{};
  std::string payload{};
  std::string payload_class{};
};

/// One connection of the raw client library. It knows nothing of newer and older: what it is given replaces what is there.
class store_floor {
 public:
  store_floor() = default;
  store_floor(const store_floor&) = delete;
  store_floor& operator=(const store_floor&) = delete;
  virtual ~store_floor() = default;

  /// Text without parameters.
  virtual void run(const std::string& text) = 0;
  /// Prepares the statements: those that write are about one table, the one that reads about the other.
  virtual void prepare(const std::string& written, const std::string& read) = 0;
  /// Writes exactly `batch_rows` entries, durably, in the fastest way there is.
  virtual void put(std::span<const entry> entries) = 0;
  /// Writes them one row a transaction.
  virtual void put_singly(std::span<const entry> entries) = 0;
  [[nodiscard]] virtual raw_row find(std::string_view name, std::string_view key) = 0;
};

/// Where the URL points to. Only read after `holdfast::open` has accepted it.
struct store_place {
  std::string scheme{};
  std::string user{};
  std::string password{};  ///< of the URL, else of HOLDFAST_PASSWORD
  std::string host{};
  unsigned port = 0;
  std::string path{};  ///< the file, or the name of the database
  std::map<std::string, std::string, std::less<>> parameters{};
  std::string url{};

  [[nodiscard]] std::string parameter(std::string_view name) const;
};
[[nodiscard]] store_place read_place(std::string_view url);

/// One for each backend of this build. They throw errc::unavailable when the library fails.
[[nodiscard]] std::unique_ptr<store_floor> sqlite_floor(const store_place& place);
[[nodiscard]] std::unique_ptr<store_floor> postgres_floor(const store_place& place);
[[nodiscard]] std::unique_ptr<store_floor> mysql_floor(const store_place& place);

/// The columns, as every statement names them.
inline constexpr std::string_view store_columns = "FAILOVER_NAME, FAILOVER_KEY, AS_OF, EXPIRE_ON, PAYLOAD, PAYLOAD_CLASS";
/// What an upsert of SQLite and PostgreSQL ends with.
inline constexpr std::string_view on_conflict =
    " ON CONFLICT (FAILOVER_NAME, FAILOVER_KEY) DO UPDATE SET AS_OF = EXCLUDED.AS_OF, EXPIRE_ON = EXCLUDED.EXPIRE_ON, PAYLOAD = "
    "EXCLUDED.PAYLOAD, PAYLOAD_CLASS = EXCLUDED.PAYLOAD_CLASS";

}  // namespace holdfast::bench
