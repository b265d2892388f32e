// holdfast outbox publish, schedule and cancel.

#include <holdfast/error.hpp>
#include <holdfast/outbox.hpp>

#include "commands/groups.hpp"
#include "commands/outbox/event_options.hpp"
#include "commands/outbox/location.hpp"
#include "commands/outbox/outbox_transfer.hpp"
#include "terminal/text.hpp"
#include "terminal/time_text.hpp"

#include <cstddef>
#include <string>
#include <utility>

namespace holdfast::cli {

namespace {

/// Parses `memory`, `aof`, `replicated:2`, `fsynced`, `fsynced:1`.
durability parse_durability(const std::string& text) {
  const auto colon = text.find(':');
  const std::string word = text.substr(0, colon);
  std::size_t replicas = word == "replicated" ? 1 : 0;
  if (colon != std::string::npos) {
    const std::string count = text.substr(colon + 1);
    if (count.size() != 1 || count[0] < '0' || count[0] > '9')
      throw error(
          errc::invalid_argument,
          "--safe is '" + text + "'; give the number of replicas as one digit: replicated:1");
    replicas = static_cast<std::size_t>(count[0] - '0');
  }
  if (colon != std::string::npos && (word == "memory" || word == "aof" || word == "always"))
    throw error(errc::invalid_argument,
                "--safe " + word + " has no replicas; use " + word + ", replicated:1 or fsynced:1");
  if (word == "memory") return durability::memory();
  if (word == "aof") return durability::aof();
  if (word == "always") return durability::always();
  if (word == "replicated" && replicas > 0) return durability::replicated(replicas);
  if (word == "fsynced") return durability::fsynced(replicas);
  throw error(errc::invalid_argument,
              "--safe is '" + text + "'; use memory, aof, always, replicated:1 or fsynced");
}

void add_publish(command group) {
  command cmd = group.add("publish", "Publish an event, and print its id when it is safe");
  cmd.about(
      "With --jsonl it publishes an event for each line, and prints their number: "
      "{\"type\":\"t\",\"key\":\"k\",\"payload\":\"{}\",\"id\":\"...\",\"headers\":{...},\"delay_"
      "ms\":1000,"
      "\"ttl_ms\":60000}. Only the type is required. Exit code 1 if one was refused.\n"
      "The same id is published only once: after a failure, repeat the command with --id.\n"
      "Exit code 3 if it is unknown whether the event was stored; the message begins with its id.");
  cmd.examples(
      "holdfast outbox publish --outbox redis://127.0.0.1 --type ticket.created --key ticket-7 "
      "--payload '{\"seat\":12}'\n"
      "holdfast outbox publish --outbox sqlite:app.db --create-schema --type mail --payload-file "
      "body.json --delay 10m\n"
      "holdfast outbox publish --outbox redis://127.0.0.1 --type mail --payload '{}' --safe "
      "replicated:1");
  const outbox_location location(cmd);
  const event_options content(cmd, false);
  const option jsonl =
      cmd.value("--jsonl", "FILE", "Instead: a file with an event in each line; -: standard input")
          .file();
  const option id = cmd.value("--id", "UUID", "Id of the event (default a new one)");
  const option delay =
      cmd.value("--delay", "TIME", "Delay before the first delivery: 90s, 15m, 1h, 7d");
  const option ttl =
      cmd.value("--ttl", "TIME", "Park the event if it is not delivered within this time");
  const option safe = cmd.value("--safe", "LEVEL",
                                "Required durability: memory (default), aof, always, replicated:1, "
                                "fsynced; see docs/outbox.md");
  const option json = cmd.flag("--json", "Print one JSON object");
  cmd.run([=](console& io) {
    const durability required = parse_durability(safe.text("memory"));
    if (jsonl.is_set()) {
      for (const auto& [other, name] :
           {alternative{content.type, "--type"}, alternative{content.key, "--key"},
            alternative{content.payload, "--payload"}, alternative{content.file, "--payload-file"},
            alternative{content.headers, "--header"}, alternative{id, "--id"},
            alternative{delay, "--delay"}, alternative{ttl, "--ttl"}}) {
        if (other.is_set()) require_one("source", {{jsonl, "--jsonl"}, {other, name}});
      }
      outbox_importer importer(location.open(io),
                               {.parked = parked_import::deliver, .durability = required});
      return import_events(io, importer, jsonl.text(), json.is_set());
    }
    event published = content.read();
    published.id = id.text();
    if (delay.is_set()) published.delay = duration_of(delay, "0s");
    if (ttl.is_set()) published.time_to_live = duration_of(ttl, "0s");
    // In the library 0 means: no limit.
    if (ttl.is_set() && published.time_to_live.count() == 0)
      throw error(
          errc::invalid_argument,
          "--ttl is 0, so the event would never be delivered; give a longer time, or remove --ttl");
    const auto receipt = location.open(io).publish(std::move(published), required);
    if (json.is_set())
      io.out << "{\"id\":" << json_string(receipt.id)
             << ",\"status\":" << json_string(to_string(receipt.status)) << "}\n";
    else io.out << receipt.id << "\n";
    return exit_ok;
  });
}

void add_schedule(command group) {
  command cmd = group.add("schedule", "Schedule a ticket that becomes an event when it expires");
  cmd.about(
      "Replaces the time and the event of a ticket that is already scheduled. Prints the time of "
      "expiry.");
  cmd.examples(
      "holdfast outbox schedule --outbox sqlite:app.db hold-7 --after 15m --type hold.expired "
      "--payload '{\"seat\":12}'\n"
      "holdfast outbox cancel --outbox sqlite:app.db hold-7");
  const outbox_location location(cmd);
  const event_options content(cmd);
  const option ticket = cmd.positional("TICKET", "Name of the ticket").required();
  const option after =
      cmd.value("--after", "TIME", "Time until it expires: 90s, 15m, 1h, 7d").required();
  const option json = cmd.flag("--json", "Print one JSON object");
  cmd.run([=](console& io) {
    const auto scheduled =
        location.open(io).schedule(ticket.text(), duration_of(after, "0s"), content.read());
    if (json.is_set()) {
      io.out << "{\"ticket\":" << json_string(ticket.text())
             << ",\"expires_at\":" << json_string(iso_time(scheduled.expires_at)) << ",\"before\":"
             << (scheduled.before ? json_string(iso_time(*scheduled.before)) : std::string("null"))
             << "}\n";
    } else {
      io.out << iso_time(scheduled.expires_at) << "\n";
    }
    return exit_ok;
  });
}

void add_cancel(command group) {
  command cmd = group.add("cancel", "Cancel a ticket before it expires");
  cmd.about(
      "Prints cancelled, fired (too late: it has become its event) or unknown. Exit code 1 unless "
      "it was cancelled.");
  cmd.examples("holdfast outbox cancel --outbox sqlite:app.db hold-7");
  const outbox_location location(cmd);
  const option ticket = cmd.positional("TICKET", "Name of the ticket").required();
  const option key = cmd.value(
      "--key", "K", "Key of its event, if it has one; it determines the lane of the ticket");
  const option json = cmd.flag("--json", "Print one JSON object");
  cmd.run([=](console& io) {
    const auto status = location.open(io).cancel(ticket.text(), key.text());
    if (json.is_set())
      io.out << "{\"ticket\":" << json_string(ticket.text())
             << ",\"status\":" << json_string(to_string(status)) << "}\n";
    else io.out << to_string(status) << "\n";
    return status == cancel_status::cancelled ? exit_ok : exit_negative;
  });
}

}  // namespace

void add_publish_commands(command group) {
  add_publish(group);
  add_schedule(group);
  add_cancel(group);
}

}  // namespace holdfast::cli
