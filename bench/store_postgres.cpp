#include <holdfast/error.hpp>

#include "store_floor.hpp"

#include <endian.h>
#include <libpq-fe.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <initializer_list>

namespace holdfast::bench {

namespace {

struct finish {
  void operator()(PGconn* held) const noexcept { PQfinish(held); }
};
struct clear {
  void operator()(PGresult* held) const noexcept { PQclear(held); }
};
using answer = std::unique_ptr<PGresult, clear>;

constexpr Oid text_oid = 25;
constexpr Oid text_array_oid = 1009;
constexpr Oid time_oid = 1184;
constexpr Oid time_array_oid = 1185;
constexpr std::size_t columns = 6;
/// PostgreSQL counts microseconds from the year 2000.
constexpr timestamp postgres_epoch = std::chrono::sys_days(std::chrono::January / 1 / 2000);

std::uint64_t to_wire(timestamp t) { return htobe64(static_cast<std::uint64_t>((t - postgres_epoch).count())); }
timestamp from_wire(const char* data) {
  std::uint64_t raw = 0;
  std::memcpy(&raw, data, sizeof raw);
  return postgres_epoch + std::chrono::microseconds(static_cast<std::int64_t>(be64toh(raw)));
}

void add_word(std::string& to, std::size_t number) {
  const std::uint32_t raw = htobe32(static_cast<std::uint32_t>(number));
  to.append(reinterpret_cast<const char*>(&raw), sizeof raw);
}
void add_text(std::string& to, std::string_view words) {
  add_word(to, words.size());
  to.append(words);
}
void add_time(std::string& to, timestamp t) {
  const std::uint64_t raw = to_wire(t);
  add_word(to, sizeof raw);
  to.append(reinterpret_cast<const char*>(&raw), sizeof raw);
}

/// One prepared statement; its parameters are binary arrays, one for each column.
class floor_of_postgres final : public store_floor {
 public:
  explicit floor_of_postgres(const store_place& place) {
    // The later one wins: a password in the URL. Only the first "dbname" may be a URL, so something harmless stands for no password.
    const std::array<const char*, 4> words{place.password.empty() ? "application_name" : "password", "dbname", "client_encoding", nullptr};
    const std::array<const char*, 4> values{place.password.empty() ? "" : place.password.c_str(), place.url.c_str(), "UTF8", nullptr};
    held_.reset(PQconnectdbParams(words.data(), values.data(), 1));
    if (PQstatus(held_.get()) != CONNECTION_OK) fail();
    run("SET client_min_messages = warning");
  }

  void run(const std::string& text) override { check(answer(PQexec(held_.get(), text.c_str())), PGRES_COMMAND_OK); }

  void prepare(const std::string& written, const std::string& read) override {
    const std::string into = "INSERT INTO " + written + " (" + std::string(store_columns) + ") ";
    make("batch",
         into + "SELECT * FROM unnest($1::text[], $2::text[], $3::timestamptz[], $4::timestamptz[], $5::text[], $6::text[])" +
             std::string(on_conflict),
         {text_array_oid, text_array_oid, time_array_oid, time_array_oid, text_array_oid, text_array_oid});
    make("single", into + "VALUES ($1, $2, $3, $4, $5, $6)" + std::string(on_conflict),
         {text_oid, text_oid, time_oid, time_oid, text_oid, text_oid});
    make("find", "SELECT AS_OF, EXPIRE_ON, PAYLOAD, PAYLOAD_CLASS FROM " + read + " WHERE FAILOVER_NAME = $1 AND FAILOVER_KEY = $2",
         {text_oid, text_oid});
  }

  void put(std::span<const entry> entries) override {
    constexpr std::array<Oid, columns> elements{text_oid, text_oid, time_oid, time_oid, text_oid, text_oid};
    std::array<const char*, columns> values{};
    std::array<int, columns> lengths{};
    for (std::size_t i = 0; i < columns; ++i) {
      arrays_[i].clear();
      // Dimensions, NULLs, the type; the length, the first index.
      for (const std::size_t word : {std::size_t{1}, std::size_t{0}, std::size_t{elements[i]}, entries.size(), std::size_t{1}}) {
        add_word(arrays_[i], word);
      }
    }
    for (const entry& each : entries) {
      add_text(arrays_[0], each.name);
      add_text(arrays_[1], each.key);
      add_time(arrays_[2], each.as_of);
      add_time(arrays_[3], each.expire_on);
      add_text(arrays_[4], *each.payload);
      add_text(arrays_[5], each.payload_class);
    }
    for (std::size_t i = 0; i < columns; ++i) {
      values[i] = arrays_[i].data();
      lengths[i] = static_cast<int>(arrays_[i].size());
    }
    execute("batch", values, lengths, PGRES_COMMAND_OK);
  }

  void put_singly(std::span<const entry> entries) override {
    for (const entry& each : entries) {
      const std::uint64_t as_of = to_wire(each.as_of);
      const std::uint64_t expire_on = to_wire(each.expire_on);
      const std::array<const char*, columns> values{
          each.name.data(),     each.key.data(),          reinterpret_cast<const char*>(&as_of), reinterpret_cast<const char*>(&expire_on),
          each.payload->data(), each.payload_class.data()};
      const std::array<int, columns> lengths{
          static_cast<int>(each.name.size()),     static_cast<int>(each.key.size()),          sizeof as_of, sizeof expire_on,
          static_cast<int>(each.payload->size()), static_cast<int>(each.payload_class.size())};
      execute("single", values, lengths, PGRES_COMMAND_OK);
    }
  }

  raw_row find(std::string_view name, std::string_view key) override {
    const std::array<const char*, 2> values{name.data(), key.data()};
    const std::array<int, 2> lengths{static_cast<int>(name.size()), static_cast<int>(key.size())};
    const answer found = execute("find", values, lengths, PGRES_TUPLES_OK);
    if (PQntuples(found.get()) != 1) throw error(errc::unavailable, "libpq does not find a row that is there");
    const auto text = [&found](int column) {
      return std::string(PQgetvalue(found.get(), 0, column), static_cast<std::size_t>(PQgetlength(found.get(), 0, column)));
    };
    return {.as_of = from_wire(PQgetvalue(found.get(), 0, 0)),
            .expire_on = from_wire(PQgetvalue(found.get(), 0, 1)),
            .payload = text(2),
            .payload_class = text(3)};
  }

 private:
  [[noreturn]] void fail() const {
    std::string why = PQerrorMessage(held_.get());
    throw error(errc::unavailable, "libpq failed beside the store: " + why.substr(0, why.find('\n')));
  }
  void check(const answer& got, ExecStatusType wanted) const {
    if (PQresultStatus(got.get()) != wanted) fail();
  }
  void make(const char* named, const std::string& text, std::initializer_list<Oid> types) {
    check(answer(PQprepare(held_.get(), named, text.c_str(), static_cast<int>(types.size()), types.begin())), PGRES_COMMAND_OK);
  }
  template <std::size_t Count>
  answer execute(const char* name, const std::array<const char*, Count>& values, const std::array<int, Count>& lengths,
                 ExecStatusType wanted) {
    std::array<int, Count> binary{};
    binary.fill(1);
    answer got(PQexecPrepared(held_.get(), name, static_cast<int>(Count), values.data(), lengths.data(), binary.data(), 1));
    check(got, wanted);
    return got;
  }

  std::unique_ptr<PGconn, finish> held_{};
  std::array<std::string, columns> arrays_{};
};

}  // namespace

std::unique_ptr<store_floor> postgres_floor(const store_place& place) { return std::make_unique<floor_of_postgres>(place); }

}  // namespace holdfast::bench
