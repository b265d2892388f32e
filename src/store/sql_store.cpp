#include <holdfast/database.hpp>
#include <holdfast/store/memory.hpp>
#include <holdfast/store/sealed.hpp>

#include "sql/database.hpp"
#include "sql/unfilled_column.hpp"
#include "store/checks.hpp"
#include "store/java_peer.hpp"
#include "store/probe_start.hpp"
#include "store/realm_statements.hpp"

#include <algorithm>
#include <atomic>
#include <limits>
#include <random>
#include <thread>
#include <utility>

namespace HOLDFAST_NAMESPACE {

namespace {

using namespace std::chrono_literals;

/// How often a statement is tried when it fails for a reason that passes.
constexpr int most_tries = 6;
constexpr auto first_pause = 5ms;
/// What one statement carries at most, so that none is too large for its server.
constexpr std::size_t most_rows = 500;
constexpr std::size_t most_bytes = 4U << 20U;
/// A refused native statement is tried again after this: a database may have been upgraded or repaired meanwhile.
constexpr auto refusal_lasts = 60s;

/// The end of a microsecond: others keep nanoseconds, and all of them in that microsecond are the same version to us.
timestamp just_after(timestamp when) { return when == timestamp::max() ? when : when + 1us; }

/// Entries in the columns of a database. Written once; what differs between databases is in store_statements.
class sql_store final : public store, public rewritable_store {
 public:
  sql_store(std::shared_ptr<database::state> on, store_options options)
      : on_(std::move(on)),
        options_(std::move(options)),
        dialect_(on_->ask_dialect()),
        say_(dialect_, options_, [this](const sql::statement& s, std::span<const sql::parameter> parameters) {
          return repeat([&] { return on_->pool->reader()->execute(s, parameters); });
        }) {
    check_skew(options_.max_skew);
    check_peer(on_->ask_dialect(), options_);
    if (options_.create_schema) create_schema();
    probing::at_start(*on_, options_);
  }

  void put(std::span<const entry> given) override {
    const auto now = on_->options.clock->now();
    const timestamp horizon = skew_horizon(now, options_.max_skew);
    const auto entries = to_be_written(given, now, horizon);
    for (const entry* each : entries) {
      (void)say_.in(each->realm);
      if (options_.peer == holdfast::peer::java) check_for_java(*each);
      if (options_.payload == payload_column::text && each->payload) refuse_binary(each->name, each->key, *each->payload);
      refuse_mistaken(*each);
    }
    if (entries.empty()) return;
    // Safe to repeat, even when it is not known whether it happened: a row is only replaced by one that is not older.
    try {
      repeat([&] {
        const auto lease = on_->pool->writer();
        if (native()) {
          try {
            return put_native(*lease, entries, horizon);
          } catch (const error& e) {
            if (e.code() != errc::grammar) throw;
            refuse_native(e);
          }
        }
        // Not one transaction: where an insert meets a row that is there, PostgreSQL and its like end the transaction.
        for (const entry* each : entries) put_plainly(*lease, *each, horizon);
      });
    } catch (const error& e) {
      const auto unfilled = std::ranges::find_if(entries, [this](const entry* each) { return leaves_null(*each); });
      if (unfilled == entries.end() || !wants_a_payload(e)) throw;
      throw error(errc::invalid_argument,
                  (*unfilled)->tombstone() ? "the table takes no tombstones; let PAYLOAD and PAYLOAD_CLASS be NULL"
                                           : "an empty payload or class is NULL to Oracle; let PAYLOAD and PAYLOAD_CLASS be NULL",
                  {.path = (*unfilled)->name + "/" + (*unfilled)->key, .backend_code = e.backend_code()});
    }
  }

  std::optional<entry> find(place where, std::string_view key) override {
    check_name(where.name);
    check_key(key);
    const auto& say = say_.in(where.realm);
    if (is_mistaken(where.name) || is_mistaken(key)) return std::nullopt;
    const sql::parameter parameters[]{where.name, key};
    auto found = repeat([&] { return on_->pool->reader()->execute(say.find, parameters); });
    if (found.rows.empty()) return std::nullopt;
    auto result = read(found.rows, 0, 0, where, key);
    if (!result) {
      ++unreadable_;
      throw error(errc::malformed,
                  "the stored entry cannot be read: a time or a payload is not what its column should hold; erase or repair the row",
                  {.path = std::string(where.name) + "/" + std::string(key)});
    }
    return result;
  }

  entry_page find_all(place where, std::size_t limit, std::string_view after) override {
    check_name(where.name);
    const auto& say = say_.in(where.realm);
    if (limit == 0) return {};
    limit = std::min<std::size_t>(limit, 10'000);
    const auto rows_wanted = static_cast<std::int64_t>(limit) + 1;  // one more tells whether there is more
    auto found = repeat([&] {
      const auto lease = on_->pool->reader();
      const auto& which = after.empty() ? say.find_first : say.find_after;
      std::vector<sql::parameter> parameters{where.name};
      if (!after.empty()) parameters.emplace_back(after);
      if (parameters.size() < which.parameters.size()) {
        parameters.emplace_back(rows_wanted);
        return lease->execute(which, parameters);
      }
      auto limited = which;
      limited.most_rows = limit + 1;
      return lease->execute(limited, parameters);
    });
    entry_page page;
    const auto count = std::min(found.rows.size(), limit);
    page.entries.reserve(count);
    for (std::size_t i = 0; i < count; ++i) {
      const auto* key = std::get_if<std::string>(&found.rows.at(i, 0));
      auto each = key != nullptr ? read(found.rows, i, 1, where, *key) : std::nullopt;
      if (each) page.entries.push_back(*std::move(each));
      else ++page.unreadable;
      if (i + 1 == count && found.rows.size() > limit && key != nullptr) page.next = *key;
    }
    unreadable_ += page.unreadable;
    return page;
  }

  bool erase(place where, std::string_view key, timestamp as_of) override {
    check_name(where.name);
    check_key(key);
    const auto& say = say_.in(where.realm);
    if (is_mistaken(where.name) || is_mistaken(key)) return false;
    const sql::parameter parameters[]{where.name, key, as_of, just_after(as_of)};
    return repeat([&] { return on_->pool->writer()->execute(say.erase, parameters).affected; }, when_in_doubt::give_up) > 0;
  }

  std::size_t expire(timestamp before, std::size_t limit) override {
    std::size_t removed = 0;
    std::optional<error> first;
    if (limit > 0) repeat([&] { (void)on_->pool->writer(); });  // a login that is refused is refused once, not once for every tenant
    for (const auto& realm : say_.realms()) {
      if (removed == limit) break;
      try {
        removed += expire_in(say_.in(realm), before, limit - removed);
      } catch (const error& e) {
        // What passes is the database's trouble, and would be met in every table. One table's own must not keep the others from being cleaned.
        if (e.transient() || e.in_doubt()) throw;
        if (!first) first = about(realm, e);
      }
    }
    // What was removed is told first: whoever comes again for the rest meets the failure again.
    if (first && removed == 0) throw error(*first);
    return removed;
  }

  std::uint64_t count(place where) override {
    check_name(where.name);
    const auto& say = say_.in(where.realm);
    const sql::parameter parameters[]{where.name};
    const auto found = repeat([&] { return on_->pool->reader()->execute(say.count, parameters); });
    return static_cast<std::uint64_t>(std::get<std::int64_t>(found.rows.at(0, 0)));
  }

  [[nodiscard]] holdfast::peer peer() const noexcept override { return options_.peer; }

  std::size_t rewrite(std::span<const rewriting> entries) override {
    if (entries.empty()) return 0;
    for (const auto& each : entries) {
      if (options_.payload == payload_column::text) refuse_binary(each.was.name, each.was.key, each.payload);
    }
    // Safe to repeat: what was replaced is not there any more to be replaced again. It is counted as not there, then, and looked at again.
    return repeat([&] {
      const auto lease = on_->pool->writer();
      std::size_t replaced = 0;
      lease->begin();
      try {
        for (const auto& each : entries) {
          const sql::parameter parameters[]{payload_of(each.payload), std::string_view(each.was.name), std::string_view(each.was.key),
                                            each.was.as_of,           just_after(each.was.as_of),      payload_of(each.was)};
          replaced += lease->execute(say_.in(each.was.realm).rewrite, parameters).affected;
        }
        lease->commit();
      } catch (...) {
        lease->rollback();
        throw;
      }
      return replaced;
    });
  }

  std::optional<std::string> name_after(std::string_view name, std::string_view realm) override {
    const auto& say = say_.in(realm);
    const sql::parameter parameters[]{name};
    auto found = repeat([&] { return on_->pool->reader()->execute(say.name_after, parameters); });
    if (found.rows.empty()) return std::nullopt;
    auto* next = std::get_if<std::string>(&found.rows.at(0, 0));
    return next != nullptr ? std::optional(std::move(*next)) : std::nullopt;
  }

  store_health health() noexcept override {
    store_health result;
    try {
      result.native_upsert = native();
      result.abandoned = abandoned_.load();
      result.unreadable = unreadable_.load();
      result.retried = retried_.load();
      ask_for_health(result);
    } catch (const std::exception& e) {
      try {
        result.problem = e.what();
      } catch (...) {  // NOLINT(bugprone-empty-catch)
        // Not even room for the reason; `available` says enough.
      }
    }
    return result;
  }

 private:
  /// A failure in the table of one tenant says whose it is.
  static error about(const std::string& realm, const error& e) {
    if (realm.empty()) return e;
    return {e.code(),
            "tenant " + realm + ": " + e.message(),
            {.path = e.path(), .backend_code = e.backend_code(), .transient = e.transient(), .in_doubt = e.in_doubt()}};
  }

  /// One tenant's table each time, since there may be hundreds; one that is broken is asked again until it is mended. The others are
  /// available meanwhile, if the next of them is.
  void ask_for_health(store_health& result) {
    const auto ask = [this](const std::string& realm) {
      const sql::parameter parameters[]{std::string_view("holdfast"), std::string_view("health")};
      (void)on_->pool->reader()->execute(say_.in(realm).find, parameters);
    };
    const auto realms = say_.realms();
    const auto turn = health_turn_.load();
    try {
      ask(realms[turn % realms.size()]);
      ++health_turn_;
    } catch (const error& e) {
      result.problem = about(realms[turn % realms.size()], e).what();
      if (realms.size() == 1 || e.transient()) return;
      ask(realms[(turn + 1) % realms.size()]);
    }
    result.available = true;
  }

  std::size_t expire_in(const store_statements& say, timestamp before, std::size_t limit) {
    std::size_t removed = 0;
    while (removed < limit) {
      const std::size_t wanted = std::min(limit - removed, expire_step_.load());
      const sql::parameter parameters[]{before, static_cast<std::int64_t>(wanted)};
      // Not repeated in doubt: a second try would find nothing and say that there was nothing.
      const auto now = repeat(
          [&] {
            const auto lease = on_->pool->writer();
            const auto start = std::chrono::steady_clock::now();
            const auto count =
                say.expired.text.empty() ? lease->execute(say.expire, parameters).affected : expire_one_by_one(*lease, say, before, wanted);
            size_expire_step(wanted, std::chrono::steady_clock::now() - start);
            return count;
          },
          when_in_doubt::give_up);
      removed += now;
      if (now < wanted) break;
    }
    return removed;
  }

  /// Where the dialect has no words for a limit: looked for first, then deleted if it is still expired.
  static std::uint64_t expire_one_by_one(sql::connection& at, const store_statements& say, timestamp before, std::size_t wanted) {
    auto limited = say.expired;
    limited.most_rows = wanted;
    const auto found = at.execute(limited, std::initializer_list<sql::parameter>{before}).rows;
    std::uint64_t removed = 0;
    for (std::size_t i = 0; i < std::min(found.size(), wanted); ++i) {
      const auto* name = std::get_if<std::string>(&found.at(i, 0));
      const auto* key = std::get_if<std::string>(&found.at(i, 1));
      if (name == nullptr || key == nullptr) continue;
      const sql::parameter row[]{std::string_view(*name), std::string_view(*key), before};
      removed += at.execute(say.expire, row).affected;
    }
    return removed;
  }

  /// A writer waits for the step before it, so a step is as large as its database removes in a few milliseconds.
  void size_expire_step(std::size_t step, std::chrono::steady_clock::duration took) {
    if (took > 10ms) expire_step_ = std::max<std::size_t>(step / 2, 20);
    else if (took < 3ms && step == expire_step_) expire_step_ = std::min<std::size_t>(step * 2, 1000);
  }

  void create_schema() {
    repeat([&] {
      const auto lease = on_->pool->writer();
      for (const auto& text : store_schema(on_->ask_dialect(), options_)) lease->run(text);
    });
  }

  enum class when_in_doubt : std::uint8_t { repeat, give_up };

  /// Runs something again when it failed for a reason that passes, a little later each time, for as long as one statement may take.
  template <class F>
  auto repeat(F work, when_in_doubt in_doubt = when_in_doubt::repeat) -> decltype(work()) {
    const auto start = std::chrono::steady_clock::now();
    for (int tried = 1;; ++tried) {
      try {
        return work();
      } catch (const error& e) {
        // Waiting for the pool took its time already; a duplicate can only come from a concurrent merge.
        const bool passes = (e.transient() && !(e.code() == errc::timeout && !e.in_doubt())) || e.code() == errc::duplicate;
        const bool in_time = std::chrono::steady_clock::now() - start < on_->options.statement_timeout;
        if (!passes || tried == most_tries || !in_time || (e.in_doubt() && in_doubt == when_in_doubt::give_up)) throw;
      }
      ++retried_;
      thread_local std::minstd_rand random(std::random_device{}());
      const auto longest = first_pause * (1 << tried);
      std::this_thread::sleep_for(
          std::chrono::microseconds(std::uniform_int_distribution<long>(1000, std::chrono::microseconds(longest).count())(random)));
    }
  }

  /// SQL Server takes a text for the same with spaces behind it and without: it never has one that ends with a space.
  [[nodiscard]] bool is_mistaken(std::string_view text) const { return dialect_ == sql::dialect_id::sqlserver && text.ends_with(' '); }
  void refuse_mistaken(const entry& e) const {
    if (is_mistaken(e.name) || is_mistaken(e.key))
      throw error(errc::invalid_argument, "a name or key that ends with a space is the same as without it to SQL Server; choose another",
                  {.path = e.name + "/" + e.key});
    if (dialect_ == sql::dialect_id::oracle && e.payload && e.payload->empty() && e.payload_class.empty())
      throw error(errc::invalid_argument,
                  "an empty text is NULL to Oracle, so that an empty payload needs a class to be told from a tombstone",
                  {.path = e.name + "/" + e.key});
  }

  [[nodiscard]] bool leaves_null(const entry& e) const {
    return !e.payload || (dialect_ == sql::dialect_id::oracle && (e.payload->empty() || e.payload_class.empty()));
  }

  /// A column must not be NULL, and it is one of the two that a tombstone leaves so: a fault of tombstones, not of all entries. Drivers that
  /// keep the server's words to themselves do not tell which column.
  static bool wants_a_payload(const error& e) {
    const auto& said = e.message();
    if (!sql::is_unfilled_column(e)) return false;
    return said == sql::unfilled_column || said.find("PAYLOAD") != std::string::npos || said.find("payload") != std::string::npos;
  }

  static void refuse_binary(const std::string& name, const std::string& key, std::string_view payload) {
    if (payload.find('\0') != std::string_view::npos) {
      throw error(errc::invalid_argument, "the payload contains a NUL byte, which a text column cannot hold; choose payload_column::bytes",
                  {.path = name + "/" + key});
    }
  }

  [[nodiscard]] sql::parameter payload_of(const std::string& payload) const {
    if (options_.payload == payload_column::bytes) return std::as_bytes(std::span(payload));
    return std::string_view(payload);
  }
  [[nodiscard]] sql::parameter payload_of(const entry& e) const { return e.payload ? payload_of(*e.payload) : sql::parameter(); }
  static sql::parameter class_of(const entry& e) {
    if (!e.payload) return {};
    return std::string_view(e.payload_class);
  }

  void put_native(sql::connection& to, std::span<const entry* const> entries, timestamp horizon) {
    const auto& shape = say_.shape().upsert;  // the same in every realm, but for the table's name
    const std::vector<sql::parameter> common(shape.common.size(), horizon);
    std::vector<std::vector<sql::parameter>> columns(shape.columns.size());
    // More than one statement's worth is one transaction: all of it is there, or nothing.
    bool in_transaction = false;
    try {
      while (!entries.empty()) {
        const auto part = entries.first(fitting(entries));
        entries = entries.subspan(part.size());
        if (!entries.empty() && !in_transaction) {
          to.begin();
          in_transaction = true;
        }
        for (auto& column : columns) {
          column.clear();
          column.reserve(part.size());
        }
        for (const entry* each : part) {
          columns[0].emplace_back(std::string_view(each->name));
          columns[1].emplace_back(std::string_view(each->key));
          columns[2].emplace_back(each->as_of);
          columns[3].emplace_back(each->expire_on);
          columns[4].push_back(payload_of(*each));
          columns[5].push_back(class_of(*each));
        }
        to.batch(say_.in(part.front()->realm).upsert, columns, common);
      }
      if (in_transaction) to.commit();
    } catch (...) {
      if (in_transaction) to.rollback();
      throw;
    }
  }

  static std::size_t fitting(std::span<const entry* const> entries) {
    std::size_t bytes = 0;
    std::size_t count = 0;
    while (count < entries.size() && count < most_rows) {
      const entry& next = *entries[count];
      if (next.realm != entries.front()->realm) break;
      const std::size_t more = next.name.size() + next.key.size() + (next.payload ? next.payload->size() : 0);
      if (count > 0 && bytes + more > most_bytes) break;
      bytes += more;
      ++count;
    }
    return count;
  }

  /// Where there is no native statement: insert; if the row is there, update it unless it is newer; if that touched nothing, look again.
  void put_plainly(sql::connection& to, const entry& e, timestamp horizon) {
    const auto& say = say_.in(e.realm);
    const std::string_view name = e.name;
    const std::string_view key = e.key;
    const sql::parameter inserted[]{name, key, e.as_of, e.expire_on, payload_of(e), class_of(e)};
    const sql::parameter updated[]{e.as_of, e.expire_on, payload_of(e), class_of(e), name, key, just_after(e.as_of), horizon};
    const sql::parameter looked_for[]{name, key};
    for (int round = 0; round < 2; ++round) {
      try {
        to.execute(say.insert, inserted);
        return;
      } catch (const error& failure) {
        if (failure.code() != errc::duplicate) throw;
      }
      if (to.execute(say.update, updated).affected > 0) return;
      // Touched nothing: there is a newer or equal row, and we are done; or the row was taken meanwhile, perhaps to come back older, and
      // we try once more.
      const auto there = to.execute(say.find, looked_for).rows;
      const auto* version = there.empty() ? nullptr : std::get_if<timestamp>(&there.at(0, 0));
      if (version != nullptr && *version >= e.as_of && *version <= horizon) return;
    }
    ++abandoned_;
    on_->say("gave up writing an entry of '" + e.name +
             "': others kept deleting its row; it is written again after the next successful call");
  }

  [[nodiscard]] bool native() const {
    return say_.shape().native && on_->options.clock->steady().time_since_epoch().count() >= native_again_.load();
  }
  void refuse_native(const error& why) {
    native_again_ = (on_->options.clock->steady() + refusal_lasts).time_since_epoch().count();
    on_->say("the database refused the native upsert (" + why.message() + "); falling back to insert and update for a minute");
  }

  /// Nothing when the row is not what its columns should hold.
  std::optional<entry> read(sql::rows& from, std::size_t row, std::size_t first, place where, std::string_view key) const {
    const auto* as_of = std::get_if<timestamp>(&from.at(row, first));
    const auto* expire_on = std::get_if<timestamp>(&from.at(row, first + 1));
    if (as_of == nullptr || expire_on == nullptr) return std::nullopt;
    entry result{.name = std::string(where.name), .key = std::string(key), .as_of = *as_of, .expire_on = *expire_on};
    result.realm = where.realm;
    if (auto* payload = std::get_if<std::string>(&from.at(row, first + 2))) result.payload = std::move(*payload);
    if (auto* payload_class = std::get_if<std::string>(&from.at(row, first + 3))) result.payload_class = std::move(*payload_class);
    // Oracle keeps an empty text as NULL; a tombstone has no class.
    if (dialect_ == sql::dialect_id::oracle && !result.payload && !result.payload_class.empty()) result.payload.emplace();
    return result;
  }

  std::shared_ptr<database::state> on_;
  store_options options_;
  sql::dialect_id dialect_;
  realm_statements say_;
  std::atomic<std::int64_t> native_again_{std::numeric_limits<std::int64_t>::min()};  // steady time
  std::atomic<std::size_t> expire_step_{100};                                         // rows
  std::atomic<std::size_t> health_turn_{0};                                           // whose table is asked next
  std::atomic<std::uint64_t> abandoned_{0};
  std::atomic<std::uint64_t> unreadable_{0};
  std::atomic<std::uint64_t> retried_{0};
};

}  // namespace

std::shared_ptr<store> database::store(store_options options) const {
  state_->refuse_redis("the store of entries");
  (void)prefixes_of_realms(options);
  if (!state_->pool && options.peer != peer::none)
    throw error(errc::invalid_argument, "what is in memory cannot be shared with Java; open a database on a server", {.path = "peer"});
  if (state_->pool) return std::make_shared<sql_store>(state_, std::move(options));
  const std::scoped_lock lock(state_->mutex);
  auto& kept = state_->memory_stores[options.prefix];
  if (!kept) kept = make_memory_store({.max_skew = options.max_skew, .clock = state_->options.clock});
  return kept;
}

}  // namespace HOLDFAST_NAMESPACE
