#include "bench/outbox/sql_outbox.hpp"

#include <holdfast/database.hpp>
#include <holdfast/error.hpp>
#include <holdfast/outbox.hpp>
#include <holdfast/outbox/sql.hpp>
#include <holdfast/worker.hpp>
#if HOLDFAST_HAS_SQLITE
#include <holdfast/join/sqlite3.hpp>
#endif
#if HOLDFAST_HAS_POSTGRES
#include <holdfast/join/libpq.hpp>
#endif
#if HOLDFAST_HAS_MYSQL
#include <holdfast/join/mariadb.hpp>
#endif

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <utility>

namespace holdfast::bench {

namespace {

using steady = std::chrono::steady_clock;

constexpr std::size_t publish_size = 100;
constexpr std::size_t deliver_size = 100;
constexpr std::size_t raw_claim_size = 500;
constexpr std::size_t key_count = 1000;

double seconds_after(steady::time_point start) {
  return std::chrono::duration<double>(steady::now() - start).count();
}

/// A connection of the client library.
class raw_sql {
 public:
  virtual ~raw_sql() = default;
  virtual void run(const std::string& text) = 0;
  virtual join::transaction& joined() = 0;
  virtual sql::dialect_id dialect() const = 0;

  std::vector<std::int64_t> numbers(const std::string& text) {
    const auto rows = joined().execute({.text = text, .results = {sql::type::integer}}, {}).rows;
    std::vector<std::int64_t> values;
    for (std::size_t i = 0; i < rows.size(); ++i)
      values.push_back(std::get<std::int64_t>(rows.at(i, 0)));
    return values;
  }
};

#if HOLDFAST_HAS_SQLITE
class raw_sqlite final : public raw_sql {
 public:
  explicit raw_sqlite(const std::string& path) {
    if (sqlite3_open(path.c_str(), &handle_) != SQLITE_OK)
      throw error(errc::unavailable, "sqlite3_open failed");
    joined_ = std::make_unique<join::sqlite>(handle_);
    sqlite3_busy_timeout(handle_, 10'000);
    run("PRAGMA journal_mode = WAL");
  }
  raw_sqlite(const raw_sqlite&) = delete;
  raw_sqlite& operator=(const raw_sqlite&) = delete;
  ~raw_sqlite() override { sqlite3_close(handle_); }
  void run(const std::string& text) override {
    if (sqlite3_exec(handle_, text.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK)
      throw error(errc::internal, sqlite3_errmsg(handle_));
  }
  join::transaction& joined() override { return *joined_; }
  sql::dialect_id dialect() const override { return sql::dialect_id::sqlite; }

 private:
  sqlite3* handle_ = nullptr;
  std::unique_ptr<join::sqlite> joined_{};
};
#endif

#if HOLDFAST_HAS_POSTGRES
class raw_libpq final : public raw_sql {
 public:
  explicit raw_libpq(const std::string& url) : handle_(PQconnectdb(url.c_str())), joined_(handle_) {
    if (PQstatus(handle_) != CONNECTION_OK) throw error(errc::unavailable, PQerrorMessage(handle_));
  }
  raw_libpq(const raw_libpq&) = delete;
  raw_libpq& operator=(const raw_libpq&) = delete;
  ~raw_libpq() override { PQfinish(handle_); }
  void run(const std::string& text) override {
    PGresult* result = PQexec(handle_, text.c_str());
    const bool succeeded = PQresultStatus(result) == PGRES_COMMAND_OK;
    PQclear(result);
    if (!succeeded) throw error(errc::internal, PQerrorMessage(handle_));
  }
  join::transaction& joined() override { return joined_; }
  sql::dialect_id dialect() const override { return sql::dialect_id::postgresql; }

 private:
  PGconn* handle_;
  join::libpq joined_;
};
#endif

#if HOLDFAST_HAS_MYSQL
/// `mysql://user:password@host:port/name`, as holdfast_bench store takes it.
class raw_mariadb final : public raw_sql {
 public:
  explicit raw_mariadb(const std::string& url) : handle_(mysql_init(nullptr)), joined_(handle_) {
    auto rest = url.substr(url.find("://") + 3);
    const auto at = rest.rfind('@');
    const auto login = at == std::string::npos ? std::string() : rest.substr(0, at);
    if (at != std::string::npos) rest = rest.substr(at + 1);
    const auto slash = rest.find('/');
    const auto name = rest.substr(slash + 1);
    const auto place = rest.substr(0, slash);
    const auto colon = place.find(':');
    const auto port = colon == std::string::npos
                          ? 3306U
                          : static_cast<unsigned>(std::stoul(place.substr(colon + 1)));
    const auto separator = login.find(':');
    const auto user = login.substr(0, separator);
    const auto password =
        separator == std::string::npos ? std::string() : login.substr(separator + 1);
    if (mysql_real_connect(handle_, place.substr(0, colon).c_str(), user.c_str(), password.c_str(),
                           name.c_str(), port, nullptr, 0) == nullptr)
      throw error(errc::unavailable, mysql_error(handle_));
    mysql_set_character_set(handle_, "utf8mb4");
  }
  raw_mariadb(const raw_mariadb&) = delete;
  raw_mariadb& operator=(const raw_mariadb&) = delete;
  ~raw_mariadb() override { mysql_close(handle_); }
  void run(const std::string& text) override {
    if (mysql_real_query(handle_, text.data(), text.size()) != 0)
      throw error(errc::internal, mysql_error(handle_));
  }
  join::transaction& joined() override { return joined_; }
  sql::dialect_id dialect() const override {
    return std::string_view(mysql_get_server_info(handle_)).find("MariaDB") !=
                   std::string_view::npos
               ? sql::dialect_id::mariadb
               : sql::dialect_id::mysql;
  }

 private:
  MYSQL* handle_;
  join::mariadb joined_;
};
#endif

std::unique_ptr<raw_sql> connect_raw(const std::string& url) {
#if HOLDFAST_HAS_SQLITE
  if (url.starts_with("sqlite:")) {
    auto path = url.substr(7, url.find('?') - 7);
    if (path.starts_with("//")) path = path.substr(2);
    return std::make_unique<raw_sqlite>(path);
  }
#endif
#if HOLDFAST_HAS_POSTGRES
  if (url.starts_with("postgres")) return std::make_unique<raw_libpq>(url);
#endif
#if HOLDFAST_HAS_MYSQL
  if (url.starts_with("mysql:") || url.starts_with("mariadb:"))
    return std::make_unique<raw_mariadb>(url);
#endif
  throw error(errc::invalid_argument, "holdfast_bench has no raw client for this URL");
}

/// The outbox that is measured, and tables with the same columns for the floor.
class sql_bench {
 public:
  explicit sql_bench(const outbox_bench_options& options)
      : tag_("bench_" + std::to_string(::getpid())),
        raw_(connect_raw(options.url)),
        outbox_(
            open(options.url)
                .outbox(
                    {.prefix = "{" + tag_ + "_ours}", .lane_alarm = 0, .create_schema = true})) {
    for (const auto& text : outbox_schema(raw_->dialect(), "{" + tag_ + "_raw}")) raw_->run(text);
    if (const auto problem = outbox_.admin().health()) throw error(*problem);
  }
  sql_bench(const sql_bench&) = delete;
  sql_bench& operator=(const sql_bench&) = delete;
  ~sql_bench() {
    for (const auto* owner : {"_ours", "_raw"}) {
      for (const auto* table : {"", "_ENTRY", "_TICKET", "_LANE", "_TALLY", "_STRIPE"}) {
        try {
          raw_->run("DROP TABLE " + tag_ + owner + "_OUTBOX" + table);
        } catch (...) {
          // Not every database has all of them.
        }
      }
    }
  }

  /// `keys` 0: events without a key.
  double publish(std::size_t events, std::size_t keys = 0) {
    std::vector<event> batch(publish_size);
    for (auto& each : batch) {
      each.type = "ticket.created";
      each.payload = payload();
    }
    const auto start = steady::now();
    for (std::size_t i = 0; i < events; i += publish_size) {
      for (std::size_t k = 0; k < publish_size && keys != 0; ++k)
        batch[k].key = "customer-" + std::to_string((i + k) % keys);
      for (const auto& receipt : outbox_.publish_all(batch)) {
        if (receipt.problem) throw error(*receipt.problem);
      }
    }
    return static_cast<double>(events) / seconds_after(start);
  }

  double deliver(std::size_t events, std::size_t size = deliver_size) {
    const auto start = steady::now();
    std::size_t delivered = 0;
    while (delivered < events) {
      const auto claim = outbox_.claim({.most = size});
      std::vector<settlement> settlements;
      for (const auto& each : claim.events) settlements.push_back({.id = each.event.id});
      if (settlements.empty()) throw error(errc::internal, "events are missing");
      delivered += settlements.size();
      (void)outbox_.settle(0, claim.fence, std::move(settlements));
    }
    return static_cast<double>(events) / seconds_after(start);
  }

  double work(std::size_t events) {
    std::atomic<std::uint64_t> delivered = 0;
    worker counter(outbox_,
                   [&delivered](const delivery&) {
                     delivered.fetch_add(1, std::memory_order_relaxed);
                     return outcome::done();
                   },
                   {.concurrency = 1, .compete = true});
    const auto start = steady::now();
    counter.run_until_empty();
    if (delivered < events) throw error(errc::internal, "events are missing");
    return static_cast<double>(delivered) / seconds_after(start);
  }

  double raw_publish(std::size_t events) {
    const auto start = steady::now();
    for (std::size_t i = 0; i < events; i += publish_size) {
      std::string rows;
      std::string entries;
      for (std::size_t k = 0; k < publish_size; ++k) {
        const auto id = new_event_id();
        const std::string comma = k == 0 ? "" : ", ";
        rows +=
            comma + "(0, '" + id + "', '', NULL, 1700000000000, 1700000000000, 260, 1700000000000)";
        entries += comma + "('" + id + R"(', '{"v":1,"id":")" + id +
                   R"(","type":"ticket.created","payload":)" + payload() + "}')";
      }
      raw_->run(begin());
      raw_->run("INSERT INTO " + raw_table() +
                " (LANE, ID, EVENT_KEY, QUEUE, DUE, AT, BYTES, CREATED) VALUES " + rows);
      raw_->run("INSERT INTO " + raw_table() + "_ENTRY (ID, ENTRY) VALUES " + entries);
      raw_->run("COMMIT");
    }
    return static_cast<double>(events) / seconds_after(start);
  }

  /// Claims with an UPDATE and removes with a DELETE, 500 at a time.
  double raw_deliver(std::size_t events) {
    const std::string lock =
        raw_->dialect() == sql::dialect_id::sqlite ? "" : " FOR UPDATE SKIP LOCKED";
    const auto start = steady::now();
    for (std::size_t delivered = 0; delivered < events;) {
      raw_->run(begin());
      const auto seqs = raw_->numbers("SELECT SEQ FROM " + raw_table() +
                                      " WHERE LANE = 0 AND DUE <= 1800000000000 AND DUE IS NOT "
                                      "NULL ORDER BY DUE, ID LIMIT " +
                                      std::to_string(raw_claim_size) + lock);
      if (seqs.empty()) throw error(errc::internal, "rows are missing");
      std::string list;
      for (const auto seq : seqs) list.append(list.empty() ? "" : ",").append(std::to_string(seq));
      raw_->run("UPDATE " + raw_table() + " SET TOKEN = 1, DUE = 1900000000000 WHERE SEQ IN (" +
                list + ")");
      raw_->run("COMMIT");
      raw_->run(begin());
      raw_->run("DELETE FROM " + raw_table() + " WHERE SEQ IN (" + list + ")");
      raw_->run("COMMIT");
      delivered += seqs.size();
    }
    return static_cast<double>(events) / seconds_after(start);
  }

  void clear_raw_entries() { raw_->run("DELETE FROM " + raw_table() + "_ENTRY"); }

 private:
  static const std::string& payload() {
    static const std::string text = R"({"seat":12,"text":")" + std::string(180, 'x') + R"("})";
    return text;
  }
  [[nodiscard]] std::string raw_table() const { return tag_ + "_raw_OUTBOX"; }
  [[nodiscard]] std::string begin() const {
    return raw_->dialect() == sql::dialect_id::sqlite ? "BEGIN IMMEDIATE" : "BEGIN";
  }

  std::string tag_;
  std::unique_ptr<raw_sql> raw_;
  holdfast::outbox outbox_;
};

/// Publishing and delivering while a million events wait, compared with `publish` and `deliver`
/// events per second of an outbox that is empty otherwise.
std::vector<row> measure_with_a_million(sql_bench& target, const outbox_bench_options& options,
                                        double publish, double deliver) {
  constexpr std::size_t million = 1'000'000;
  constexpr std::size_t step = 10'000;
  for (std::size_t i = 0; i < million; i += step) {
    (void)target.publish(step);
    if (options.progress) options.progress(i + step, million);
  }
  std::vector<double> publish_large;
  std::vector<double> deliver_large;
  for (std::size_t round = 0; round < options.rounds; ++round) {
    publish_large.push_back(target.publish(options.events));
    deliver_large.push_back(target.deliver(options.events));
  }
  return {make_row("outbox.sql_million_publish", median(publish_large), publish, "events/s", 0.5,
                   bound::at_least),
          make_row("outbox.sql_million_deliver", median(deliver_large), deliver, "events/s", 0.5,
                   bound::at_least)};
}

}  // namespace

std::vector<row> measure_sql_outbox(const outbox_bench_options& options) {
  sql_bench target(options);
  std::vector<double> publish;
  std::vector<double> deliver;
  std::vector<double> deliver_many;
  std::vector<double> work;
  std::vector<double> work_keys;
  std::vector<double> raw_publish;
  std::vector<double> raw_deliver;
  const auto events = options.events;
  (void)target.publish(publish_size);  // prepares statements
  (void)target.deliver(publish_size);
  for (std::size_t round = 0; round < options.rounds; ++round) {
    raw_publish.push_back(target.raw_publish(events));
    publish.push_back(target.publish(events));
    raw_deliver.push_back(target.raw_deliver(events));
    deliver.push_back(target.deliver(events));
    target.clear_raw_entries();
    (void)target.publish(events);
    deliver_many.push_back(target.deliver(events, raw_claim_size));
    (void)target.publish(events);
    work.push_back(target.work(events));
    (void)target.publish(events, key_count);
    work_keys.push_back(target.work(events));
  }
  std::vector<row> rows{make_row("outbox.sql_publish", median(publish), median(raw_publish),
                                 "events/s", 0.7, bound::at_least),
                        make_row("outbox.sql_deliver", median(deliver), median(raw_deliver),
                                 "events/s", 0.6, bound::at_least),
                        make_row("outbox.sql_deliver_500", median(deliver_many),
                                 median(raw_deliver), "events/s", 0.6, bound::at_least),
                        make_row("outbox.sql_worker", median(work), median(raw_deliver), "events/s",
                                 0.6, bound::at_least),
                        make_row("outbox.sql_worker_keys", median(work_keys), median(raw_deliver),
                                 "events/s", 0.2, bound::at_least)};
  if (!options.large) return rows;
  for (auto& row : measure_with_a_million(target, options, median(publish), median(deliver)))
    rows.push_back(std::move(row));
  return rows;
}

}  // namespace holdfast::bench
