#include "store_traffic.hpp"

#include <holdfast/error.hpp>

namespace holdfast::bench {

std::unique_ptr<store_floor> connect_floor(const store_place& place) {
#if HOLDFAST_HAS_SQLITE
  if (place.scheme == "sqlite") return sqlite_floor(place);
#endif
#if HOLDFAST_HAS_POSTGRES
  if (place.scheme == "postgresql" || place.scheme == "postgres") return postgres_floor(place);
#endif
#if HOLDFAST_HAS_MYSQL
  if (place.scheme == "mysql" || place.scheme == "mariadb") return mysql_floor(place);
#endif
  throw error(errc::invalid_argument,
              "'" + place.scheme + ":' has no client library to be measured beside; give sqlite:, postgresql://, mysql://, h2:// or odbc:");
}

void fill(store& into, std::uint64_t rows, timestamp start, const std::function<void(std::uint64_t, std::uint64_t)>& progress) {
  constexpr std::uint64_t at_once = 500;
  std::vector<entry> part;
  for (std::uint64_t row = 0; row < rows; ++row) {
    part.push_back({.name = std::string(name),
                    .key = key_of(row),
                    .as_of = start,
                    .expire_on = start + (row % tenth == 0 ? std::chrono::microseconds(kept_early) : std::chrono::microseconds(kept)),
                    .payload = traffic::payload(),
                    .payload_class = "bench.Country"});
    if (part.size() < at_once && row + 1 < rows) continue;
    into.put(part);
    part.clear();
    if (progress && (row + 1) % 10'000 == 0) progress(row + 1, rows);
  }
}

}  // namespace holdfast::bench
