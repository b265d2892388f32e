#include <holdfast/error.hpp>
#include <holdfast/outbox.hpp>
#include <holdfast/outbox/sql.hpp>

#include "entry_text.hpp"
#include "groups.hpp"
#include "input.hpp"
#include "outbox_place.hpp"
#include "outbox_text.hpp"
#include "progress.hpp"
#include "text.hpp"

#include <algorithm>
#include <chrono>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace holdfast::cli {

namespace {

using std::chrono::milliseconds;

/// The switches that describe an event.
struct event_choice {
  option type;
  option key;
  option payload;
  option file;
  option raw;
  option headers;
  option content_type;

  explicit event_choice(command& at)
      : type(at.value("--type", "T", "What happened: ticket.created").required()),
        key(at.value("--key", "K", "Events of one key are delivered in their order; without one, in any")),
        payload(at.value("--payload", "JSON", "What is delivered")),
        file(at.value("--payload-file", "FILE", "The payload is in this file; - is standard input").file()),
        raw(at.flag("--raw", "The payload is any text, not checked to be JSON")),
        headers(at.values("--header", "NAME=VALUE", "For the receiver: traceparent=00-...; repeat for more")),
        content_type(at.value("--content-type", "C", "Of the payload; application/json if not given")) {}

  [[nodiscard]] event chosen() const {
    constexpr std::size_t largest = std::size_t{64} << 20U;
    if (payload.given() == file.given()) throw error(errc::invalid_argument, "give the event a --payload, or a --payload-file");
    event made{.type = type.text(), .key = key.text(), .payload = file.given() ? read_small_file(file.text(), largest) : payload.text()};
    if (content_type.given()) made.content_type = content_type.text();
    if (!raw.given() && made.content_type == "application/json") check_json(made.payload);
    for (const auto& each : headers.all()) {
      const auto equals = each.find('=');
      if (equals == std::string::npos || equals == 0) throw error(errc::invalid_argument, "--header is '" + each + "'; give NAME=VALUE");
      made.headers[each.substr(0, equals)] = each.substr(equals + 1);
    }
    return made;
  }
};

/// `memory`, `aof`, `replicated:2`, `fsynced`.
durability read_durability(const std::string& text) {
  const auto colon = text.find(':');
  const std::string word = text.substr(0, colon);
  std::size_t replicas = word == "replicated" ? 1 : 0;
  if (colon != std::string::npos) {
    const std::string count = text.substr(colon + 1);
    if (count.size() != 1 || count[0] < '0' || count[0] > '9')
      throw error(errc::invalid_argument, "--safe is '" + text + "'; say how many replicas with one digit: replicated:1");
    replicas = static_cast<std::size_t>(count[0] - '0');
  }
  if (colon != std::string::npos && (word == "memory" || word == "aof"))
    throw error(errc::invalid_argument, "--safe " + word + " has no replicas; say " + word + ", replicated:1 or fsynced:1");
  if (word == "memory") return durability::memory();
  if (word == "aof") return durability::aof();
  if (word == "replicated" && replicas > 0) return durability::replicated(replicas);
  if (word == "fsynced") return durability::fsynced(replicas);
  throw error(errc::invalid_argument, "--safe is '" + text + "'; say memory, aof, replicated:1 or fsynced");
}

void add_publish(command group) {
  command at = group.add("publish", "Promise an event: print its id when it is safe");
  at.about(
      "An id that was published before is not published again: whoever got no answer may repeat the command with --id.\n"
      "Exit code 3 when it is in doubt whether the event is kept; the message begins with its id.");
  at.examples(
      "holdfast outbox publish --outbox redis://127.0.0.1 --type ticket.created --key ticket-7 --payload '{\"seat\":12}'\n"
      "holdfast outbox publish --outbox sqlite:app.db --create-schema --type mail --payload-file body.json --delay 10m\n"
      "holdfast outbox publish --outbox redis://127.0.0.1 --type mail --payload '{}' --safe replicated:1");
  const outbox_place place(at);
  const event_choice what(at);
  const option id = at.value("--id", "UUID", "Its id; a new one if not given");
  const option delay = at.value("--delay", "TIME", "Not before so much later: 90s, 15m, 1h, 7d");
  const option ttl = at.value("--ttl", "TIME", "Later than this it is parked, not delivered");
  const option safe = at.value("--safe", "LEVEL", "When it is safe: memory (default), aof, replicated:1, fsynced; see docs/outbox.md");
  const option json = at.flag("--json", "Print one JSON object");
  at.run([=](console& io) {
    event made = what.chosen();
    made.id = id.text();
    if (delay.given()) made.delay = time_of(delay, "0s");
    if (ttl.given()) made.time_to_live = time_of(ttl, "0s");
    // In the library it means: never too late.
    if (ttl.given() && made.time_to_live.count() == 0)
      throw error(errc::invalid_argument,
                  "an event that is too late at once would never be delivered; give --ttl more time, or leave it out");
    const durability how = read_durability(safe.text("memory"));
    const auto receipt = place.open(io).publish(std::move(made), how);
    if (json.given()) io.out << "{\"id\":" << json_string(receipt.id) << ",\"status\":" << json_string(to_string(receipt.status)) << "}\n";
    else io.out << receipt.id << "\n";
    return exit_fine;
  });
}

/// Pages through what is there; ends when `each` says false.
template <class Each>
void walk(const outbox& on, scan_what what, const Each& each) {
  std::string after;
  do {
    auto page = on.scan(what, after, 500);
    for (const auto& record : page.records) {
      if (!each(record)) return;
    }
    after = std::move(page.after);
  } while (!after.empty());
}

void add_outbox_list(command group) {
  command at = group.add("list", "List events and where they are");
  at.about("In the order in which the backend keeps them, not that of delivery. tries: failures / times handed out.");
  at.examples(
      "holdfast outbox list --outbox sqlite:app.db\n"
      "holdfast outbox list --outbox redis://127.0.0.1 --state waiting --type mail --json\n"
      "holdfast outbox list --outbox redis://127.0.0.1 --tickets");
  const outbox_place place(at);
  const option state = at.value("--state", "", "Only those").one_of({"due", "waiting", "claimed", "following", "parked", "blocking"});
  const option type = at.value("--type", "T", "Only those of this type");
  const option key = at.value("--key", "K", "Only those of this key");
  const option tickets = at.flag("--tickets", "Instead: tickets that have not expired");
  const option limit = at.value("--limit", "COUNT", "At most so many (default 100)").number(1, 1'000'000'000);
  const option json = at.flag("--json", "One JSON object a line");
  at.run([=](console& io) {
    const auto open = place.open(io);
    const timestamp now = system_clock()->now();
    std::uint64_t left = limit.count(100);
    std::uint64_t looked = 0;
    bool headed = json.given();
    progress shown(io, "looked at", true);
    walk(open, tickets.given() ? scan_what::tickets : scan_what::all, [&](const outbox_record& each) {
      shown.at(++looked);
      if (state.given() && state.text() != to_string(each.state)) return true;
      if (type.given() && type.text() != each.what.event.type) return true;
      if (key.given() && key.text() != each.what.event.key) return true;
      shown.end();
      if (!std::exchange(headed, true)) io.out << records_head() << "\n";
      io.out << (json.given() ? record_json(each, tickets.given() ? "ticket" : "event") : record_line(each, now)) << "\n";
      return --left > 0;
    });
    shown.end();
    if (looked == 0) place.doubt(io, open.stats());
    return exit_fine;
  });
}

void add_show(command group) {
  command at = group.add("show", "Print everything about an event");
  at.about("Exit code 1 when it is not there: it was delivered, discarded, or never published.");
  at.examples("holdfast outbox show --outbox sqlite:app.db 018f2b6e-5c1e-7000-8000-000000000001");
  const outbox_place place(at);
  const option id = at.positional("ID", "The event's id").required();
  (void)at.flag("--json", "As it is printed anyway: one JSON object");
  at.run([=](console& io) {
    const auto found = place.open(io).find(id.text());
    if (!found) return exit_no;
    io.out << record_json(*found) << "\n";
    return exit_fine;
  });
}

void add_explain(command group) {
  command at = group.add("explain", "Say why an event is not delivered, or that it will be");
  at.about("Exit code 1 when it is not there.");
  at.examples("holdfast outbox explain --outbox sqlite:app.db 018f2b6e-5c1e-7000-8000-000000000001");
  const outbox_place place(at);
  const option id = at.positional("ID", "The event's id").required();
  const option json = at.flag("--json", "Print one JSON object");
  at.run([=](console& io) {
    const auto open = place.open(io);
    const auto found = open.find(id.text());
    const std::string why = open.explain(id.text());
    const bool waits = found && found->state == event_state::waiting && found->until;
    if (json.given()) {
      io.out << "{\"id\":" << json_string(id.text())
             << ",\"state\":" << (found ? json_string(to_string(found->state)) : std::string("null")) << ",\"why\":" << json_string(why)
             << (waits ? ",\"until\":" + json_string(iso(*found->until)) : "") << "}\n";
    } else {
      io.out << printable(why) << (waits ? "; due at " + iso(*found->until) : "") << "\n";
    }
    return found ? exit_fine : exit_no;
  });
}

void add_outbox_stats(command group) {
  command at = group.add("stats", "Say how much waits, and what was done since the outbox was made");
  at.about("Asks for counts that the backend keeps: quick however much there is. Exit code 1 with --max-overdue when it is exceeded.");
  at.examples("holdfast outbox stats --outbox redis://127.0.0.1 --json\nholdfast outbox stats --outbox sqlite:app.db --max-overdue 5m");
  const outbox_place place(at);
  const option overdue = at.value("--max-overdue", "TIME", "Exit code 1 when an event or a ticket has been due for longer");
  const option json = at.flag("--json", "Print one JSON object");
  at.run([=](console& io) {
    const auto limit = overdue.given() ? time_of(overdue, "0s") : milliseconds::max();
    const auto stats = place.open(io).stats();
    io.out << (json.given() ? stats_json(stats) : stats_text(stats));
    place.doubt(io, stats);
    return stats.overdue > limit ? exit_no : exit_fine;
  });
}

/// Which parked events are meant.
struct parked_choice {
  option ids;
  option all;
  option type;
  option reason;

  explicit parked_choice(command& at)
      : ids(at.rest("ID", "Their ids")),
        all(at.flag("--all", "All that are parked")),
        type(at.value("--type", "T", "All of this type")),
        reason(at.value("--error", "TEXT", "All whose error has this text in it")) {}

  /// Parked ones that were chosen by what they are.
  [[nodiscard]] bool fits(const outbox_record& each) const {
    return (!type.given() || each.what.event.type == type.text()) &&
           (!reason.given() || each.what.last_error.find(reason.text()) != std::string::npos);
  }

  [[nodiscard]] std::vector<std::string> chosen(const outbox& on) const {
    const bool by_kind = all.given() || type.given() || reason.given();
    if (ids.given() == by_kind) throw error(errc::invalid_argument, "say which: their IDs, or --all, --type T, --error TEXT");
    if (ids.given()) return ids.all();
    struct place {
      std::size_t lane = 0;
      std::int64_t sequence = 0;
      std::string id{};
      auto operator<=>(const place&) const = default;
    };
    std::vector<place> found;
    walk(on, scan_what::parked, [&](const outbox_record& each) {
      if (fits(each)) found.push_back({.lane = each.what.lane, .sequence = each.what.sequence, .id = each.what.event.id});
      return true;
    });
    // In the order in which they were published: those of a key are replayed in it.
    std::sort(found.begin(), found.end());
    std::vector<std::string> chosen;
    chosen.reserve(found.size());
    for (auto& each : found) chosen.push_back(std::move(each.id));
    return chosen;
  }
};

void add_parked(command group) {
  command at = group.add("parked", "List what could not be delivered");
  at.examples(
      "holdfast outbox parked --outbox sqlite:app.db\n"
      "holdfast outbox parked --outbox redis://127.0.0.1 --groups");
  const outbox_place place(at);
  const option groups = at.flag("--groups", "Count them by type and error instead");
  const option limit = at.value("--limit", "COUNT", "At most so many (default 100)").number(1, 1'000'000'000);
  const option json = at.flag("--json", "One JSON object a line");
  at.run([=](console& io) {
    const auto open = place.open(io);
    const timestamp now = system_clock()->now();
    if (groups.given()) {
      std::map<std::pair<std::string, std::string>, std::uint64_t> counts;
      walk(open, scan_what::parked, [&](const outbox_record& each) {
        ++counts[{each.what.event.type, each.what.last_error}];
        return true;
      });
      for (const auto& [which, count] : counts) {
        if (json.given())
          io.out << "{\"type\":" << json_string(which.first) << ",\"error\":" << json_string(which.second)
                 << ",\"events\":" << std::to_string(count) << "}\n";
        else io.out << grouped(count) << "  " << printable(which.first) << "  " << printable(which.second) << "\n";
      }
      return exit_fine;
    }
    std::uint64_t left = limit.count(100);
    bool headed = json.given();
    walk(open, scan_what::parked, [&](const outbox_record& each) {
      if (!std::exchange(headed, true)) io.out << records_head() << "\n";
      io.out << (json.given() ? record_json(each) : record_line(each, now)) << "\n";
      return --left > 0;
    });
    return exit_fine;
  });
}

/// replay and discard: the same choice, another verb.
void add_parked_verb(command group, const std::string& name, std::string_view summary, std::string_view about, std::string_view past,
                     std::size_t (outbox::*verb)(std::span<const std::string>) const) {
  command at = group.add(name, summary);
  at.about(about);
  at.examples("holdfast outbox " + name + " --outbox sqlite:app.db 018f2b6e-5c1e-7000-8000-000000000001\nholdfast outbox " + name +
              " --outbox redis://127.0.0.1 --type mail --error 'status 410'");
  const outbox_place place(at);
  const parked_choice which(at);
  const option json = at.flag("--json", "Print one JSON object");
  at.run([=, past = std::string(past)](console& io) {
    const auto open = place.open(io);
    const auto ids = which.chosen(open);
    std::uint64_t count = 0;
    progress shown(io, past, false);
    constexpr std::size_t step = 500;
    for (std::size_t from = 0; from < ids.size(); from += step) {
      count += (open.*verb)(std::span(ids).subspan(from, std::min(step, ids.size() - from)));
      shown.at(count, ids.size());
    }
    shown.end();
    if (json.given()) io.out << "{" << json_string(past) << ":" << std::to_string(count) << "}\n";
    else io.out << past << " " << grouped(count) << "\n";
    return count > 0 || ids.empty() ? exit_fine : exit_no;
  });
}

void add_pause(command group, const std::string& name, std::string_view summary, void (outbox::*verb)() const) {
  command at = group.add(name, summary);
  at.examples("holdfast outbox " + name + " --outbox redis://127.0.0.1");
  const outbox_place place(at);
  at.run([=](console& io) {
    (place.open(io).*verb)();
    return exit_fine;
  });
}

void add_fsck(command group) {
  command at = group.add("fsck", "Compare the structures of an outbox with each other");
  at.about(
      "For the time after a restore, or after somebody deleted keys by hand. Exit code 1 when something is not well and was not repaired.");
  at.examples("holdfast outbox fsck --outbox redis://127.0.0.1\nholdfast outbox fsck --outbox redis://127.0.0.1 --repair");
  const outbox_place place(at);
  const option repair = at.flag("--repair", "Put right what is not well");
  const option json = at.flag("--json", "Print one JSON object");
  at.run([=](console& io) {
    const auto report = place.open(io).check(repair.given());
    io.out << (json.given() ? check_json(report, repair.given()) : check_text(report, repair.given()));
    return report.well() || repair.given() ? exit_fine : exit_no;
  });
}

void add_schedule(command group) {
  command at = group.add("schedule", "Let a ticket become an event when it expires");
  at.about("A ticket that is scheduled already gets the new time and event. Prints when it expires.");
  at.examples(
      "holdfast outbox schedule --outbox sqlite:app.db hold-7 --after 15m --type hold.expired --payload '{\"seat\":12}'\n"
      "holdfast outbox cancel --outbox sqlite:app.db hold-7");
  const outbox_place place(at);
  const event_choice what(at);
  const option ticket = at.positional("TICKET", "Its name").required();
  const option after = at.value("--after", "TIME", "When it expires: 90s, 15m, 1h, 7d from now").required();
  const option json = at.flag("--json", "Print one JSON object");
  at.run([=](console& io) {
    const auto made = place.open(io).schedule(ticket.text(), time_of(after, "0s"), what.chosen());
    if (json.given()) {
      io.out << "{\"ticket\":" << json_string(ticket.text()) << ",\"expires_at\":" << json_string(iso(made.expires_at))
             << ",\"before\":" << (made.before ? json_string(iso(*made.before)) : std::string("null")) << "}\n";
    } else {
      io.out << iso(made.expires_at) << "\n";
    }
    return exit_fine;
  });
}

void add_cancel(command group) {
  command at = group.add("cancel", "Take a ticket back before it expires");
  at.about("Prints cancelled, fired (too late: it has become its event) or unknown. Exit code 1 unless it was cancelled.");
  at.examples("holdfast outbox cancel --outbox sqlite:app.db hold-7");
  const outbox_place place(at);
  const option ticket = at.positional("TICKET", "Its name").required();
  const option key = at.value("--key", "K", "The key of its event, if it has one: it says in which lane the ticket is");
  const option json = at.flag("--json", "Print one JSON object");
  at.run([=](console& io) {
    const auto status = place.open(io).cancel(ticket.text(), key.text());
    if (json.given()) io.out << "{\"ticket\":" << json_string(ticket.text()) << ",\"status\":" << json_string(to_string(status)) << "}\n";
    else io.out << to_string(status) << "\n";
    return status == cancel_status::cancelled ? exit_fine : exit_no;
  });
}

void add_outbox_schema(command group) {
  command at = group.add("schema", "Print what creates the tables of an outbox on SQL");
  at.about("For those who create tables themselves; --create-schema does it for you.");
  at.examples("holdfast outbox schema --dialect postgresql\nholdfast outbox schema --dialect mariadb --prefix '{shop}'");
  const option dialect = at.value("--dialect", "", "Whose words").one_of({"sqlite", "postgresql", "mysql", "mariadb"}).required();
  const option prefix = at.value("--prefix", "P", "Its name, with the braces of a hash tag; {identity:outbox} if not given");
  at.run([=](console& io) {
    for (const auto id : {sql::dialect_id::sqlite, sql::dialect_id::postgresql, sql::dialect_id::mysql, sql::dialect_id::mariadb}) {
      if (dialect.text() != to_string(id)) continue;
      for (const auto& statement : outbox_schema(id, prefix.text(outbox_options{}.prefix))) io.out << statement << ";\n";
    }
    return exit_fine;
  });
}

}  // namespace

void add_outbox_commands(command root) {
  command group = root.add("outbox", "Promises that are kept: publish events, deliver them, see what waits");
  group.examples(
      "holdfast outbox publish --outbox sqlite:app.db --create-schema --type ticket.created --key ticket-7 --payload '{\"seat\":12}'\n"
      "holdfast outbox work --outbox sqlite:app.db --exec ./deliver --until-empty\n"
      "holdfast outbox explain --outbox sqlite:app.db ID");
  add_publish(group);
  add_work_command(group);
  add_tail_command(group);
  add_outbox_list(group);
  add_show(group);
  add_explain(group);
  add_outbox_stats(group);
  add_parked(group);
  add_parked_verb(group, "replay", "Deliver parked events again", "Their attempts are counted from 0 again.", "replayed", &outbox::replay);
  add_parked_verb(group, "discard", "Forget parked events", "They are gone, and a key that waited for one goes on.", "discarded",
                  &outbox::discard);
  add_pause(group, "pause", "Stop giving out events, to all workers; publishing goes on", &outbox::pause);
  add_pause(group, "resume", "Give out events again", &outbox::resume);
  add_fsck(group);
  add_schedule(group);
  add_cancel(group);
  add_outbox_schema(group);
}

}  // namespace holdfast::cli
