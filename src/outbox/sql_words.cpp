#include "outbox/sql_words.hpp"

#include <holdfast/error.hpp>

#include <initializer_list>
#include <utility>

namespace HOLDFAST_NAMESPACE::outboxes {

namespace {

using sql::dialect_id;
using sql::type;

/// FNV-1a: the same in every process and every version, since publishers must agree.
std::uint64_t fingerprint(std::string_view text) noexcept {
  std::uint64_t sum = 0xcbf29ce484222325U;
  for (const char c : text) sum = (sum ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  return sum ^ (sum >> 32U);
}

struct column {
  const char* name;
  type holds = type::integer;
};

/// The words of one dialect.
class speaker {
 public:
  explicit speaker(dialect_id spoken) : spoken_(spoken) {}

  [[nodiscard]] bool postgres() const { return spoken_ == dialect_id::postgresql; }
  [[nodiscard]] bool sqlite() const { return spoken_ == dialect_id::sqlite; }
  [[nodiscard]] bool mysql() const { return !postgres() && !sqlite(); }

  /// Rows of a JSON parameter, as the table `g`. `n` is their order.
  [[nodiscard]] std::string rows(std::initializer_list<column> columns) const {
    std::string text = postgres() ? "(SELECT t.n" : sqlite() ? "(SELECT key AS n" : "JSON_TABLE(?, '$[*]' COLUMNS (n FOR ORDINALITY";
    int at = 0;
    for (const auto& [name, holds] : columns) {
      const std::string index = std::to_string(at++);
      const bool number = holds == type::integer;
      if (postgres()) {
        text.append(", ").append(number ? "(t.e->>" : "t.e->>").append(index).append(number ? ")::bigint" : "").append(" AS ").append(name);
      } else if (sqlite()) {
        text.append(", json_extract(value, '$[").append(index).append("]') AS ").append(name);
      } else {
        text.append(", ").append(name).append(number ? " BIGINT" : holds == type::text ? name_type() : " LONGTEXT CHARACTER SET utf8mb4");
        text.append(" PATH '$[").append(index).append("]'");
      }
    }
    if (postgres()) return text + " FROM json_array_elements(?::json) WITH ORDINALITY AS t(e, n)) g";
    if (sqlite()) return text + " FROM json_each(?)) g";
    return text + ")) g";
  }

  /// `UPDATE events o SET sets FROM rows WHERE on`, as each says it. What is set comes with the rows. `@` stands before each column that is
  /// set: MySQL wants to know whose it is, the others do not want to hear it.
  [[nodiscard]] std::string update(const std::string& table, const std::string& rows, const std::string& on, std::string sets) const {
    for (auto at = sets.find('@'); at != std::string::npos; at = sets.find('@')) sets.replace(at, 1, mysql() ? "o." : "");
    if (mysql()) return "UPDATE " + rows + " STRAIGHT_JOIN " + table + " o" + by_index(on) + " ON " + on + " SET " + sets;
    return "UPDATE " + table + (postgres() ? " o" : " AS o") + " SET " + sets + " FROM " + rows + " WHERE " + on;
  }
  [[nodiscard]] std::string erase(const std::string& table, const std::string& rows, const std::string& own,
                                  const std::string& given) const {
    if (mysql()) {
      const std::string on = "o." + own + " = g." + given;
      return "DELETE o FROM " + rows + " STRAIGHT_JOIN " + table + " o" + (table.ends_with("_OUTBOX") ? by_index(on) : by_index({})) +
             " ON " + on;
    }
    return "DELETE FROM " + table + " WHERE " + own + " IN (SELECT g." + given + " FROM " + rows + ")";
  }
  /// ` FROM table o JOIN rows ON on`.
  [[nodiscard]] std::string joined(const std::string& table, const std::string& rows, const std::string& on) const {
    if (mysql())
      return " FROM " + rows + " STRAIGHT_JOIN " + table + " o" + (table.ends_with("_OUTBOX") ? by_index(on) : by_index({})) + " ON " + on;
    return " FROM " + table + " o JOIN " + rows + " ON " + on;
  }
  /// Microseconds since 1970, by the clock of the database, whatever zone the session is in. SQLite lives in this process: its time comes
  /// as a parameter.
  [[nodiscard]] std::string now() const {
    if (postgres()) return "(extract(epoch FROM statement_timestamp()) * 1000000)::bigint";
    return mysql() ? "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))" : "CAST(0 AS INTEGER)";
  }
  [[nodiscard]] std::string now_ms() const {
    if (postgres()) return "floor(extract(epoch FROM statement_timestamp()) * 1000)::bigint";
    return mysql() ? "(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) DIV 1000)" : "CAST(0 AS INTEGER)";
  }
  [[nodiscard]] std::string locked(bool skip = false) const {
    if (sqlite()) return "";
    return std::string(postgres() ? " FOR UPDATE OF o" : " FOR UPDATE") + (skip ? " SKIP LOCKED" : "");
  }
  [[nodiscard]] std::string shared() const { return sqlite() ? "" : postgres() ? " FOR SHARE OF o" : " LOCK IN SHARE MODE"; }
  /// A duplicate is left as it is.
  [[nodiscard]] std::string unless_known(const std::string& column) const {
    return mysql() ? " ON DUPLICATE KEY UPDATE " + column + " = VALUES(" + column + ")" : " ON CONFLICT DO NOTHING";
  }
  /// SQLite reads ON CONFLICT behind a SELECT as a join, unless there is a WHERE.
  [[nodiscard]] std::string where_all() const { return sqlite() ? " WHERE true" : ""; }
  [[nodiscard]] std::string sum(std::string_view column) const {
    const std::string all = "COALESCE(SUM(" + std::string(column) + "), 0)";
    return postgres() ? all + "::bigint" : mysql() ? "CAST(" + all + " AS SIGNED)" : all;
  }
  [[nodiscard]] std::string force(const std::string& index) const { return mysql() ? " FORCE INDEX (" + index + ")" : ""; }

  [[nodiscard]] sql::statement say(const std::string& text, std::vector<type> parameters, std::vector<type> results = {}) const {
    if (!postgres()) return {text, std::move(parameters), std::move(results)};
    std::string numbered;
    unsigned next = 0;
    for (const char c : text) {
      if (c == '?') numbered.append("$").append(std::to_string(++next));
      else numbered += c;
    }
    return {std::move(numbered), std::move(parameters), std::move(results)};
  }

 private:
  /// MySQL and MariaDB would look through a small table from end to end, and wait for each row that somebody is adding to it.
  [[nodiscard]] static std::string by_index(std::string_view on) {
    return on.starts_with("o.ID ") ? " FORCE INDEX (ID)" : " FORCE INDEX (PRIMARY)";
  }
  [[nodiscard]] const char* name_type() const {
    return spoken_ == dialect_id::mariadb ? " VARCHAR(300) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin"
                                          : " VARCHAR(300) CHARACTER SET utf8mb4 COLLATE utf8mb4_0900_bin";
  }

  dialect_id spoken_;
};

constexpr auto i = type::integer;
constexpr auto t = type::text;

/// What is read of an event; see sql_row.
constexpr std::string_view event_columns =
    "o.SEQ, o.ID, o.EVENT_KEY, o.QUEUE, o.DUE, o.PLACE, o.AT, o.TOKEN, o.RUN, o.DELIVERIES, o.ATTEMPTS, o.REPLAYS, o.BYTES, o.CREATED, "
    "o.NUMBER, o.LAST_ERROR";
std::vector<type> types_of_event() { return {i, t, t, t, i, i, i, i, i, i, i, i, i, i, i, t, i, i}; }

}  // namespace

std::int64_t stripe_of(std::string_view key) noexcept { return static_cast<std::int64_t>(fingerprint(key) % std::uint64_t{stripes}); }

sql_words::sql_words(sql::dialect_id spoken, const sql_tables& of) : dialect(spoken), tables(of) {
  const bool known_one =
      spoken == dialect_id::sqlite || spoken == dialect_id::postgresql || spoken == dialect_id::mysql || spoken == dialect_id::mariadb;
  if (!known_one) {
    throw error(errc::unsupported_type, "there is no outbox on this database; use SQLite, PostgreSQL, MariaDB or MySQL");
  }
  const speaker s(spoken);
  const auto event_types = types_of_event();
  const auto& e = of.events;
  lock_class = static_cast<std::int64_t>(fingerprint(e) & 0x7FFFFFFFU);
  // The first of its key, and the next behind it: each one look into an index.
  const std::string head = "(SELECT MIN(h.SEQ) FROM " + e + " h WHERE h.LANE = o.LANE AND h.QUEUE = o.QUEUE)";
  const std::string next = "(SELECT MIN(h.SEQ) FROM " + e + " h WHERE h.LANE = o.LANE AND h.QUEUE = o.QUEUE AND h.SEQ > o.SEQ)";
  const std::string event = std::string(event_columns) + ", " + head + ", " + next;
  const std::string from = " FROM " + e + " o";
  const auto due_index = s.force("IDX_" + e + "_DUE");

  const std::string lane_columns = s.now() + ", o.PAUSED, o.OWNER, o.UNTIL, o.FENCE, o.TOKEN FROM " + of.lanes + " o WHERE o.LANE = ?";
  const std::vector<type> lane_types{i, i, t, i, i, i};
  lane = s.say("SELECT " + lane_columns + s.shared(), {i}, lane_types);
  lane_alone = s.say("SELECT " + lane_columns + s.locked(), {i}, lane_types);
  clock = s.say("SELECT " + s.now_ms(), {}, {i});
  set_lane = s.say("UPDATE " + of.lanes + " SET PAUSED = ?, OWNER = ?, UNTIL = ?, FENCE = ?, TOKEN = ? WHERE LANE = ?", {i, t, i, i, i, i});
  count_lanes = s.say("SELECT COUNT(*) FROM " + of.lanes + " WHERE LANE >= 0", {}, {i});
  add_lane = s.say("INSERT INTO " + of.lanes + " (LANE, OWNER) VALUES (?, '')" + s.unless_known("LANE"), {i});
  const std::string prefix_row = std::to_string(lane_of_prefix);
  read_prefix = s.say("SELECT o.OWNER FROM " + of.lanes + " o WHERE o.LANE = " + prefix_row, {}, {t});
  add_prefix = s.say("INSERT INTO " + of.lanes + " (LANE, OWNER) VALUES (" + prefix_row + ", ?)" + s.unless_known("LANE"), {t});

  if (s.mysql()) {
    lock_stripes = s.say("SELECT o.N" + s.joined(of.stripes, s.rows({{"a"}}), "o.N = g.a") + " ORDER BY o.N FOR UPDATE", {t}, {i});
    try_stripes = s.say("SELECT o.N" + s.joined(of.stripes, s.rows({{"a"}}), "o.N = g.a") + s.locked(true), {t}, {i});
  } else if (s.postgres()) {
    lock_stripes = s.say("SELECT COUNT(*) FROM (SELECT pg_advisory_xact_lock(?::int, k.a::int) FROM (SELECT DISTINCT g.a FROM " +
                             s.rows({{"a"}}) + " ORDER BY 1) k OFFSET 0) l",
                         {i, t}, {i});
    try_stripes = s.say(
        "SELECT k.a FROM (SELECT DISTINCT g.a FROM " + s.rows({{"a"}}) + " OFFSET 0) k WHERE pg_try_advisory_xact_lock(?::int, k.a::int)",
        {t, i}, {i});
    // The locks are taken before the first row is made: a row's number is its place in its key.
    publish = s.say(
        "WITH l AS MATERIALIZED (SELECT pg_advisory_xact_lock(?::int, k.a::int) FROM (SELECT DISTINCT g.a FROM " + s.rows({{"a"}}) +
            " ORDER BY 1) k), given AS MATERIALIZED (SELECT g.* FROM (SELECT COUNT(*) FROM l) taken, " +
            s.rows({{"id", t}, {"k", t}, {"entry", t}, {"bytes"}, {"delay"}}) + "), added AS (INSERT INTO " + e +
            " (LANE, ID, EVENT_KEY, QUEUE, DUE, AT, BYTES, CREATED) SELECT ?, id, k, NULLIF(k, ''), " + s.now_ms() + " + delay, " +
            s.now_ms() + " + delay, bytes, " + s.now_ms() +
            " FROM given ORDER BY n ON CONFLICT DO NOTHING RETURNING ID, BYTES), kept AS (INSERT INTO " + of.entries +
            " (ID, ENTRY) SELECT given.id, given.entry FROM given JOIN added ON added.ID = given.id), counted AS (INSERT INTO " +
            of.tallies +
            " (LANE, EVENTS, BYTES, TICKETS, PUBLISHED, DUPLICATES, CLAIMS, ACKED, RETRIED, PARKINGS, STALE, FIRED, ORPHANS) SELECT ?, "
            "COUNT(*), COALESCE(SUM(added.BYTES), 0), 0, COUNT(*), (SELECT COUNT(*) FROM given) - COUNT(*), 0, 0, 0, 0, 0, 0, 0 FROM "
            "added) "
            "SELECT added.ID, pg_notify(?, ?)::text FROM added",
        {i, t, t, i, i, t, t}, {t, t});
    notify = s.say("SELECT pg_notify(?, ?)::text", {t, t}, {t});
  }
  known = s.say("SELECT o.ID, o.PLACE, o.AT, " + s.now_ms() + s.joined(e, s.rows({{"a", t}}), "o.ID = g.a"), {t}, {t, i, i, i});
  // Somebody may have published it again meanwhile: then it stays.
  forget_ids = s.say(s.erase(e, s.rows({{"a", t}}), "ID", "a") + " AND PLACE = 4 AND AT <= ?", {t, i});
  // How many rows an ON DUPLICATE KEY UPDATE changed depends on the caller's CLIENT_FOUND_ROWS; of INSERT IGNORE it does not.
  // 0 as `created`: now, by the clock of the database.
  const std::string created = s.sqlite() ? "g.created" : "CASE WHEN g.created = 0 THEN " + s.now_ms() + " ELSE g.created END";
  add_events = s.say((s.mysql() ? "INSERT IGNORE INTO " : "INSERT INTO ") + e +
                         " (LANE, ID, EVENT_KEY, QUEUE, DUE, AT, BYTES, CREATED) SELECT g.lane, g.id, g.k, NULLIF(g.k, ''), " + created +
                         " + g.delay, " + created + " + g.delay, g.bytes, " + created + " FROM " +
                         s.rows({{"lane"}, {"id", t}, {"k", t}, {"delay"}, {"created"}, {"bytes"}}) + s.where_all() + " ORDER BY g.n" +
                         (s.mysql() ? "" : " ON CONFLICT DO NOTHING"),
                     {t});
  add_entries = s.say("INSERT INTO " + of.entries + " (ID, ENTRY) SELECT g.id, g.entry FROM " +
                          s.rows({{"id", t}, {"entry", type::bytes}}) + s.where_all() + s.unless_known("ID"),
                      {t});
  remember = s.say("INSERT INTO " + e + " (LANE, ID, EVENT_KEY, PLACE, AT) SELECT g.lane, g.id, '', 4, g.at FROM " +
                       s.rows({{"lane"}, {"id", t}, {"at"}}) + s.where_all() +
                       (s.mysql() ? " ON DUPLICATE KEY UPDATE AT = VALUES(AT)" : " ON CONFLICT (ID) DO UPDATE SET AT = excluded.AT"),
                   {t});
  remember_new = s.say((s.mysql() ? "INSERT IGNORE INTO " : "INSERT INTO ") + e +
                           " (LANE, ID, EVENT_KEY, PLACE, AT) VALUES (?, ?, '', 4, ?)" + (s.mysql() ? "" : " ON CONFLICT DO NOTHING"),
                       {i, t, i});
  remembered = s.say("SELECT o.AT" + from + " WHERE o.ID = ? AND o.PLACE = 4", {t}, {i});
  first_due = s.say("SELECT MIN(o.DUE)" + from + " WHERE o.LANE = ? AND o.DUE IS NOT NULL", {i}, {i});

  candidates =
      s.say("SELECT " + event + from + due_index + " WHERE o.LANE = ? AND o.DUE <= ? ORDER BY o.DUE, o.ID LIMIT ?" + s.locked(true),
            {i, i, i}, event_types);
  lock_heads =
      s.say("SELECT o.SEQ" + s.joined(e, s.rows({{"a"}}), "o.SEQ = g.a") + " WHERE o.QUEUE IS NOT NULL" + s.locked(true), {t}, {i});
  demote = s.say(s.update(e, s.rows({{"a"}}), "o.SEQ = g.a", "@DUE = NULL"), {t});
  followers =
      s.say("SELECT " + event + from + " WHERE o.LANE = ? AND o.QUEUE = ? AND o.SEQ > ? ORDER BY o.SEQ LIMIT ?", {i, t, i, i}, event_types);
  followers_free = s.say("SELECT " + event + from + s.force("IDX_" + e + "_KEY") +
                             " WHERE o.LANE = ? AND o.QUEUE = ? AND o.SEQ > ? ORDER BY o.SEQ LIMIT ?" + s.locked(true),
                         {i, t, i, i}, event_types);
  take = s.say(s.update(e, s.rows({{"a"}, {"token"}, {"run"}, {"due"}}), "o.SEQ = g.a",
                        "@TOKEN = g.token, @RUN = g.run, @DUE = g.due, @DELIVERIES = o.DELIVERIES + 1"),
               {t});
  entries_of = s.say("SELECT o.ID, o.ENTRY" + s.joined(of.entries, s.rows({{"a", t}}), "o.ID = g.a"), {t}, {t, t});

  const std::string with_id =
      "SELECT " + event + s.joined(e, s.rows({{"a", t}}), "o.ID = g.a") + " WHERE o.LANE = ? AND o.PLACE <> 4 ORDER BY o.SEQ";
  by_id = s.say(with_id + s.locked(), {t, i}, event_types);
  by_id_free = s.say(with_id + s.locked(true), {t, i}, event_types);
  by_id_seen = s.say(with_id, {t, i}, event_types);
  heads = s.say("SELECT g.a, (SELECT MIN(h.SEQ) FROM " + e + " h WHERE h.LANE = g.lane AND h.QUEUE = g.a) FROM " +
                    s.rows({{"a", t}, {"lane"}}) + s.where_all(),
                {t}, {t, i});
  const std::string with_seq = "SELECT " + event + s.joined(e, s.rows({{"a"}}), "o.SEQ = g.a") + " ORDER BY o.SEQ";
  by_seq = s.say(with_seq + s.locked(), {t}, event_types);
  by_seq_free = s.say(with_seq + s.locked(true), {t}, event_types);
  by_seq_seen = s.say(with_seq, {t}, event_types);
  place_events = s.say(
      s.update(
          e,
          s.rows({{"a"},
                  {"place"},
                  {"queue", t},
                  {"due"},
                  {"moment"},
                  {"token"},
                  {"run"},
                  {"deliveries"},
                  {"attempts"},
                  {"replays"},
                  {"problem", type::bytes}}),
          "o.SEQ = g.a",
          "@PLACE = g.place, @QUEUE = g.queue, @DUE = g.due, @AT = g.moment, @TOKEN = g.token, @RUN = g.run, @DELIVERIES = g.deliveries, "
          "@ATTEMPTS = g.attempts, @REPLAYS = g.replays, @LAST_ERROR = g.problem"),
      {t});
  promote = s.say(s.update(e, s.rows({{"a"}, {"token"}, {"run"}, {"more"}, {"due"}}), "o.SEQ = g.a AND o.PLACE = 0",
                           "@TOKEN = g.token, @RUN = g.run, @DELIVERIES = o.DELIVERIES + g.more, @DUE = COALESCE(g.due, o.AT)"),
                  {t});
  finish = s.say(s.update(e, s.rows({{"a"}, {"moment"}}), "o.SEQ = g.a",
                          "@PLACE = 4, @QUEUE = NULL, @DUE = NULL, @AT = g.moment, @EVENT_KEY = '', @LAST_ERROR = NULL"),
                 {t});
  erase_events = s.say(s.erase(e, s.rows({{"a"}}), "SEQ", "a"), {t});
  erase_entries = s.say(s.erase(of.entries, s.rows({{"a", t}}), "ID", "a"), {t});
  add_again = s.say(
      "INSERT INTO " + e + " (LANE, ID, EVENT_KEY, QUEUE, DUE, AT, CREATED, BYTES, REPLAYS, NUMBER) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
      {i, t, t, t, i, i, i, i, i, i});
  // The index of what is not queued is a partial one. SQLite uses it only where its condition is said, too.
  const std::string oldest = e + " WHERE LANE = ? AND PLACE = 4 AND PLACE <> 0 AND AT <= ? ORDER BY AT LIMIT ?";
  if (s.mysql()) {
    // A DELETE would wait for the first one behind its range, which may be a mark of a handler whose transaction takes long.
    pick_oldest = s.say("SELECT o.SEQ" + from + s.force("IDX_" + e + "_AT") +
                            " WHERE o.LANE = ? AND o.PLACE = 4 AND o.AT <= ? ORDER BY o.AT LIMIT ?" + s.locked(true),
                        {i, i, i}, {i});
  } else {
    trim = s.say("DELETE FROM " + e + " WHERE SEQ IN (SELECT SEQ FROM " + oldest + (s.postgres() ? " FOR UPDATE SKIP LOCKED" : "") + ")",
                 {i, i, i});
  }
  surplus =
      s.say("SELECT o.AT" + from + " WHERE o.LANE = ? AND o.PLACE = 4 AND o.PLACE <> 0 ORDER BY o.AT DESC LIMIT 1 OFFSET ?", {i, i}, {i});
  renew_lease = s.say(s.update(e, s.rows({{"a"}, {"due"}}), "o.SEQ = g.a", "@DUE = g.due"), {t});

  const std::string in_lane = " FROM " + of.tickets + " o WHERE o.LANE = ?";
  ticket = s.say("SELECT o.EXPIRES" + in_lane + " AND o.TICKET = ?" + s.locked(), {i, t}, {i});
  add_ticket = s.say("INSERT INTO " + of.tickets + " (LANE, TICKET, EXPIRES, EVENT_KEY, BODY) VALUES (?, ?, ?, ?, ?)", {i, t, i, t, t});
  set_ticket = s.say("UPDATE " + of.tickets + " SET EXPIRES = ?, EVENT_KEY = ?, BODY = ? WHERE LANE = ? AND TICKET = ?", {i, t, t, i, t});
  erase_ticket = s.say("DELETE FROM " + of.tickets + " WHERE LANE = ? AND TICKET = ?", {i, t});
  due_tickets = s.say("SELECT o.TICKET, o.EXPIRES, o.EVENT_KEY, o.BODY" + in_lane +
                          " AND o.EXPIRES <= ? ORDER BY o.EXPIRES, o.TICKET LIMIT ?" + s.locked(true),
                      {i, i, i}, {t, i, t, t});
  const std::string fired = s.rows({{"a", t}, {"lane"}});
  erase_tickets = s.say(s.mysql() ? "DELETE o FROM " + fired + " STRAIGHT_JOIN " + of.tickets +
                                        " o FORCE INDEX (PRIMARY) ON o.LANE = g.lane AND o.TICKET = g.a"
                                  : "DELETE FROM " + of.tickets + " WHERE (LANE, TICKET) IN (SELECT g.lane, g.a FROM " + fired + ")",
                        {t});
  first_ticket = s.say("SELECT MIN(o.EXPIRES)" + in_lane, {i}, {i});
  scan_tickets = s.say("SELECT o.TICKET, o.EXPIRES, o.EVENT_KEY, o.BODY" + in_lane + " AND o.TICKET > ? ORDER BY o.TICKET LIMIT ?",
                       {i, t, i}, {t, i, t, t});

  std::string names;
  std::string marks;
  std::string sums;
  for (const auto counter : counters) {
    names.append(", ").append(counter);
    marks.append(", ?");
    sums.append(", ").append(s.sum(std::string("o.").append(counter)));
  }
  const std::vector<type> sum_types(counter_count + 1, i);
  tally = s.say("INSERT INTO " + of.tallies + " (LANE" + names + ") VALUES (?" + marks + ")", sum_types);
  tallies = s.say("SELECT COUNT(*)" + sums + " FROM " + of.tallies + " o WHERE o.LANE = ?", {i}, sum_types);
  fold_pick = s.say("SELECT o.N FROM " + of.tallies + " o WHERE o.LANE = ? ORDER BY o.N LIMIT ?" + s.locked(true), {i, i}, {i});
  fold_sum = s.say("SELECT COUNT(*)" + sums + s.joined(of.tallies, s.rows({{"a"}}), "o.N = g.a"), {t}, sum_types);
  fold_erase = s.say(s.erase(of.tallies, s.rows({{"a"}}), "N", "a"), {t});

  for (const auto& [table, columns] :
       {std::pair{&of.events, std::string(event_columns) + ", o.LANE"}, std::pair{&of.entries, std::string("o.ID, o.ENTRY")},
        std::pair{&of.tickets, std::string("o.LANE, o.TICKET, o.EXPIRES, o.EVENT_KEY, o.BODY")},
        std::pair{&of.lanes, std::string("o.LANE, o.PAUSED, o.OWNER, o.UNTIL, o.FENCE, o.TOKEN")},
        std::pair{&of.tallies, "o.N, o.LANE" + names}})
    all_columns.push_back(s.say("SELECT COUNT(*) FROM (SELECT " + columns + " FROM " + *table + " o WHERE 1 = 0) a", {}, {i}));
  if (s.mysql()) all_columns.push_back(s.say("SELECT COUNT(*) FROM (SELECT o.N FROM " + of.stripes + " o WHERE 1 = 0) a", {}, {i}));

  const auto those = [](const std::string& which) { return "COUNT(CASE WHEN " + which + " THEN 1 END)"; };
  count = s.say("SELECT c.events, c.bytes, (SELECT COUNT(*) FROM " + of.tickets +
                    " k WHERE k.LANE = ?), d.events, d.bytes, d.tickets FROM (SELECT " + those("o.PLACE <> 4") + " AS events, " +
                    s.sum("CASE WHEN o.PLACE <> 4 THEN o.BYTES END") + " AS bytes" + from + " WHERE o.LANE = ?) c, (SELECT " +
                    s.sum("o.EVENTS") + " AS events, " + s.sum("o.BYTES") + " AS bytes, " + s.sum("o.TICKETS") + " AS tickets FROM " +
                    of.tallies + " o WHERE o.LANE = ?) d",
                {i, i, i}, {i, i, i, i, i, i});
  const std::string bound = " LIMIT " + std::to_string(most_counted + 1);
  const auto placed = [&](const char* where, const std::string& most) {
    return "(SELECT COUNT(*) FROM (SELECT o.SEQ" + from + s.force("IDX_" + e + "_AT") +
           " WHERE o.LANE = ? AND o.PLACE <> 0 AND o.PLACE = " + where + most + ") a), ";
  };
  waiting = s.say("SELECT " + placed("2", bound) + placed("3", bound) + placed("4", " LIMIT " + std::to_string(10 * most_counted)) +
                      "COUNT(*), COUNT(DISTINCT b.QUEUE) FROM (SELECT o.QUEUE" + from + s.force("IDX_" + e + "_KEY") +
                      " WHERE o.LANE = ? AND o.QUEUE IS NOT NULL" + bound + ") b",
                  {i, i, i, i}, {i, i, i, i, i});
  overdue =
      s.say("SELECT o.DUE" + from + " WHERE o.LANE = ? AND o.DUE < ? AND (o.QUEUE IS NULL OR o.SEQ = " + head + ") ORDER BY o.DUE LIMIT 1",
            {i, i}, {i});
  const std::string of_head = ", (SELECT f.ID FROM " + e + " f WHERE f.SEQ = " + head + "), " + s.now_ms();
  auto look_types = event_types;
  look_types.insert(look_types.end(), {t, i});
  const std::string look = "SELECT " + event + of_head + from + " WHERE o.LANE = ? AND ";
  find = s.say(look + "o.ID = ? AND o.PLACE <> 4", {i, t}, look_types);
  scan = s.say(look + "o.ID > ? AND o.PLACE <> 4 ORDER BY o.ID LIMIT ?", {i, t, i}, look_types);
  scan_parked = s.say(look + "o.ID > ? AND o.PLACE IN (2, 3) AND o.PLACE <> 0 ORDER BY o.ID LIMIT ?", {i, t, i}, look_types);
  without_entry = s.say("SELECT o.SEQ, o.ID, o.QUEUE" + from + " WHERE o.LANE = ? AND o.PLACE <> 4 AND NOT EXISTS (SELECT 1 FROM " +
                            of.entries + " x WHERE x.ID = o.ID)",
                        {i}, {i, t, t});
  without_place =
      s.say("SELECT x.ID FROM " + of.entries + " x WHERE NOT EXISTS (SELECT 1" + from + " WHERE o.ID = x.ID AND o.PLACE <> 4)", {}, {t});
  without_head =
      s.say("SELECT o.SEQ" + from + " WHERE o.LANE = ? AND o.PLACE = 0 AND o.DUE IS NULL AND (o.QUEUE IS NULL OR o.SEQ = " + head + ")",
            {i}, {i});
}

}  // namespace HOLDFAST_NAMESPACE::outboxes
