// Every field of every table of an outbox is damaged, one at a time. After a repair all other
// events are delivered in order, and the damaged one is delivered in order or parked with a reason.
//
// A normal run tries every sixth damage, HOLDFAST_DAMAGE=all tries all of them.

#include <holdfast/database.hpp>
#include <holdfast/outbox.hpp>

#include "fault/outbox_sql_places.hpp"
#include "support/eventually.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace holdfast::test {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t lanes = 2;

struct damage {
  std::string table;
  std::string row;         ///< a condition
  std::string assignment;  ///< empty: the row is deleted
  std::string payload;     ///< of the event that is damaged, or empty

  [[nodiscard]] std::string text() const {
    const std::string name = "fault_OUTBOX" + table;
    if (assignment.empty()) return "DELETE FROM " + name + " WHERE " + row;
    return "UPDATE " + name + " SET " + assignment + " WHERE " + row;
  }
};

std::vector<std::string> number_values(bool sqlite) {
  std::vector<std::string> values{"-1", "0", "7", "9223372036854775807", "-9223372036854775808"};
  if (sqlite) values.insert(values.end(), {"'text'", "x'00ff'", "1.5"});
  return values;
}

/// An outbox with an event in each state.
class damaged_outbox {
 public:
  explicit damaged_outbox(std::string url) : url_(std::move(url)) {}

  [[nodiscard]] outbox open_box() const {
    return open(url_).outbox({.prefix = prefix, .lanes = lanes, .create_schema = true});
  }

  /// Fills the outbox, and returns the ids by payload.
  std::map<std::string, std::string> fill() const {
    const auto box = open_box();
    std::map<std::string, std::string> ids;
    const auto publish = [&](const std::string& key, const std::string& payload) {
      ids[payload] = box.publish({.type = "t", .key = key, .payload = payload}).id;
    };
    // Delivered, parked, blocking with a follower.
    publish("", "done");
    publish("p", "parked");
    publish("b", "blocking");
    publish("b", "behind");
    for (std::size_t lane = 0; lane < lanes; ++lane) {
      const auto claim = box.claim({.lane = lane});
      for (const auto& each : claim.events) {
        if (each.event.payload == "done") (void)box.ack(claim.fence, each);
        else
          (void)box.park(claim.fence, each,
                         each.event.payload == "parked" ? park_policy::skip : park_policy::block,
                         "bad");
      }
    }
    for (const auto* payload : {"a1", "a2", "a3"}) publish("a", payload);
    // Claimed by a worker that died.
    for (std::size_t lane = 0; lane < lanes; ++lane)
      (void)box.claim({.lane = lane, .run = 2, .lease = 1ms});
    for (const auto* payload : {"c1", "c2"}) publish("c", payload);
    for (const auto* payload : {"n1", "n2"}) publish("", payload);
    (void)box.schedule("keyed", 1ms, {.type = "t", .key = "k", .payload = "t1"});
    (void)box.schedule("keyless", 1ms, {.type = "t", .payload = "t2"});
    return ids;
  }

  void clear(auto& client) const {
    for (const auto* table : {"", "_ENTRY", "_TICKET", "_LANE", "_TALLY"})
      client.run(std::string("DELETE FROM fault_OUTBOX") + table);
  }

  /// Everything that can be delivered, in its order.
  [[nodiscard]] std::vector<std::string> deliver_all(const outbox& box) const {
    std::vector<std::string> delivered;
    for (int idle = 0; idle < 3;) {
      bool got_some = false;
      for (std::size_t lane = 0; lane < lanes; ++lane) {
        got_some = box.drain(lane).tickets > 0 || got_some;
        const auto claim = box.claim({.lane = lane, .run = 3});
        for (const auto& each : claim.events) {
          EXPECT_TRUE(box.ack(claim.fence, each)) << each.event.payload;
          delivered.push_back(each.event.payload);
        }
        got_some = got_some || !claim.events.empty() || !claim.parked.empty();
      }
      idle = got_some ? 0 : idle + 1;
      if (idle > 0) std::this_thread::sleep_for(2ms);  // the lease of the dead worker is 1 ms
      if (delivered.size() > 100) break;               // something is delivered again and again
    }
    return delivered;
  }

 private:
  std::string url_;
};

std::vector<damage> all_damages(const std::map<std::string, std::string>& ids, bool sqlite) {
  std::vector<damage> damages;
  const auto add = [&](const std::string& table, const std::string& row, const std::string& column,
                       const std::vector<std::string>& values, const std::string& payload = {}) {
    for (const auto& value : values)
      damages.push_back({table, row, std::string(column).append(" = ").append(value), payload});
  };
  const auto numbers_list = number_values(sqlite);
  const std::vector<std::string> texts{"''", "'x'", "'c'", "NULL"};
  for (const auto* payload :
       {"a1", "a2", "c1", "c2", "n1", "parked", "blocking", "behind", "done"}) {
    const auto row = "ID = '" + ids.at(payload) + "'";
    for (const auto* column : {"LANE", "DUE", "PLACE", "AT", "TOKEN", "RUN", "DELIVERIES",
                               "ATTEMPTS", "REPLAYS", "BYTES", "CREATED", "NUMBER"})
      add("", row, column, numbers_list, payload);
    add("", row, "PLACE", {"2", "3", "4"}, payload);
    add("", row, "LANE", {"1"}, payload);
    add("", row, "DUE", {"NULL"}, payload);
    for (const auto* column : {"ID", "EVENT_KEY", "QUEUE", "LAST_ERROR"})
      add("", row, column, texts, payload);
    damages.push_back({"", row, "", payload});
    if (std::string_view(payload) == "done") continue;
    add("_ENTRY", row, "ID", texts, payload);
    add("_ENTRY", row, "ENTRY", {"''", "'{'", "SUBSTR(ENTRY, 1, 20)"}, payload);
    damages.push_back({"_ENTRY", row, "", payload});
  }
  for (const auto* ticket : {"keyed", "keyless"}) {
    const std::string row = std::string("TICKET = '") + ticket + "'";
    const std::string payload = std::string_view(ticket) == "keyed" ? "t1" : "t2";
    for (const auto* column : {"LANE", "EXPIRES"})
      add("_TICKET", row, column, numbers_list, payload);
    for (const auto* column : {"TICKET", "EVENT_KEY", "BODY"})
      add("_TICKET", row, column, texts, payload);
    damages.push_back({"_TICKET", row, "", payload});
  }
  for (const auto* row : {"LANE = 0", "LANE = 1", "LANE = -1"}) {
    for (const auto* column : {"LANE", "UNTIL", "FENCE", "TOKEN"})
      add("_LANE", row, column, numbers_list);
    add("_LANE", row, "PAUSED", {"-1", "7", "9223372036854775807"});
    add("_LANE", row, "OWNER", texts);
    damages.push_back({"_LANE", row, "", ""});
  }
  const std::string tally = "N = (SELECT MIN(N) FROM fault_OUTBOX_TALLY)";
  for (const auto* column : {"LANE", "EVENTS", "BYTES", "TICKETS", "PUBLISHED", "DUPLICATES",
                             "CLAIMS", "ACKED", "RETRIED", "PARKINGS", "STALE", "FIRED", "ORPHANS"})
    add("_TALLY", tally, column, numbers_list);
  damages.push_back({"_TALLY", tally, "", ""});
  return damages;
}

/// What is wrong after the repair, or an empty text.
std::string problem_after(const outbox& box, const damage& one,
                          const std::vector<std::string>& delivered) {
  std::map<std::string, outbox_record> kept;
  std::string after;
  do {
    const auto page = box.admin().scan(scan_what::all, after, 500);
    for (const auto& each : page.records) kept[each.details.event.payload] = each;
    after = page.after;
  } while (!after.empty());
  for (const std::string payload : {"a1", "a2", "a3", "c1", "c2", "n1", "n2", "t1", "t2"}) {
    const auto count = std::ranges::count(delivered, payload);
    if (count == 1) continue;
    if (payload != one.payload)
      return payload + " was delivered " + std::to_string(count) + " times";
    if (count > 1) return "the damaged event was delivered " + std::to_string(count) + " times";
  }
  for (const auto& [first, second] : {std::pair("a1", "a2"), {"a2", "a3"}, {"c1", "c2"}}) {
    const auto of_first = std::ranges::find(delivered, first);
    const auto of_second = std::ranges::find(delivered, second);
    if (of_first != delivered.end() && of_second < of_first)
      return std::string(second) + " was delivered before " + first;
  }
  for (const auto& [payload, record] : kept) {
    const bool is_parked =
        record.state == event_state::parked || record.state == event_state::blocking;
    if (is_parked && record.details.last_error.empty() && !one.assignment.starts_with("LAST_ERROR"))
      return payload + " is parked without reason";
    const bool waits = record.state == event_state::following &&
                       (record.details.event.key == "b" || one.payload == "behind");
    if (!is_parked && !waits) return payload + " is " + std::string(to_string(record.state));
  }
  const auto report = box.admin().check();
  return report.well() ? "" : "the check says not well after the delivery";
}

template <class Place>
class OutboxSqlDamage : public OnSqlDatabase<Place> {};
using damage_places = testing::Types<in_sqlite, in_postgres>;
TYPED_TEST_SUITE(OutboxSqlDamage, damage_places);

TYPED_TEST(OutboxSqlDamage, IsRepairedOrParked) {
  const bool sqlite = std::string_view(TypeParam::name) == "sqlite";
  const char* const setting = std::getenv("HOLDFAST_DAMAGE");
  const std::size_t step = setting != nullptr && std::string_view(setting) == "all" ? 1 : 6;
  const damaged_outbox target(this->url);
  typename TestFixture::handle client(this->url);
  const auto count = all_damages(target.fill(), sqlite).size();
  std::size_t tried = 0;
  for (std::size_t number = 0; number < count; number += step) {
    target.clear(client);
    const auto one = all_damages(target.fill(), sqlite).at(number);
    try {
      client.run(one.text());
    } catch (const std::runtime_error&) {
      continue;  // the database does not allow it
    }
    ++tried;
    try {
      const auto box = target.open_box();
      (void)box.admin().check(true);
      EXPECT_TRUE(box.admin().check().well()) << number << ": " << one.text();
      const auto delivered = target.deliver_all(box);
      const auto problem = problem_after(box, one, delivered);
      EXPECT_EQ(problem, "") << number << " " << one.payload << ": " << one.text();
    } catch (const error& failure) {
      ADD_FAILURE() << number << " " << one.payload << ": " << one.text() << ": " << failure.what();
    }
  }
  EXPECT_GT(tried, count / step / 2);
}

/// Without a repair, too, a damaged row stops at most its own key.
TYPED_TEST(OutboxSqlDamage, StopsNoOtherKey) {
  const bool sqlite = std::string_view(TypeParam::name) == "sqlite";
  const char* const setting = std::getenv("HOLDFAST_DAMAGE");
  const std::size_t step = setting != nullptr && std::string_view(setting) == "all" ? 1 : 17;
  const damaged_outbox target(this->url);
  typename TestFixture::handle client(this->url);
  const auto count = all_damages(target.fill(), sqlite).size();
  for (std::size_t number = 3; number < count; number += step) {
    target.clear(client);
    const auto one = all_damages(target.fill(), sqlite).at(number);
    if (one.table == "_LANE") continue;  // repaired when it is opened, or by the operator
    try {
      client.run(one.text());
    } catch (const std::runtime_error&) {
      continue;
    }
    try {
      const auto box = target.open_box();
      const auto delivered = target.deliver_all(box);
      const char damaged_key = one.payload.empty() ? ' ' : one.payload.front();
      for (const std::string payload : {"a1", "a2", "a3", "c1", "c2", "n1", "n2", "t1", "t2"}) {
        if (payload == one.payload || (payload.front() == damaged_key && damaged_key != 'n'))
          continue;
        // The row may have moved into the queue of c.
        if (payload.front() == 'c' && one.assignment.find("'c'") != std::string::npos) continue;
        EXPECT_EQ(std::ranges::count(delivered, payload), 1)
            << payload << " after " << number << " " << one.payload << ": " << one.text();
      }
    } catch (const error& failure) {
      ADD_FAILURE() << number << ": " << one.text() << ": " << failure.what();
    }
  }
}

}  // namespace
}  // namespace holdfast::test
