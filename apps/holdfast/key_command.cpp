#include <holdfast/error.hpp>
#include <holdfast/key/cachekit.hpp>
#include <holdfast/key/failover.hpp>
#include <holdfast/key/interop.hpp>
#include <holdfast/key/redis.hpp>

#include "arguments.hpp"
#include "base/utf8.hpp"
#include "groups.hpp"
#include "input.hpp"
#include "text.hpp"

#include <algorithm>
#include <string>
#include <vector>

namespace holdfast::cli {

namespace {

/// The switches that every command with ARGs has.
struct call_options {
  option json;
  option json_args;
  option args;

  explicit call_options(command& at)
      : json(at.flag("--json", "Print one JSON object")),
        json_args(at.flag("--json-args", "Read each ARG as plain JSON")),
        args(at.rest("ARG", "The call's arguments, in order")) {}

  [[nodiscard]] call_arguments read(key::scheme meant_for) const { return read_arguments(args.all(), meant_for, json_args.given()); }
};

std::string read_secret(const option& file) {
  if (!file.given()) return {};
  std::string secret = read_small_file(file.text(), 4096);
  // An editor ends the last line; the line end is not part of the secret.
  if (secret.ends_with('\n')) secret.pop_back();
  if (secret.ends_with('\r')) secret.pop_back();
  if (secret.empty()) throw error(errc::invalid_argument, "the file '" + file.text() + "' holds no secret; write 16 to 64 bytes into it");
  return secret;
}

void add_failover(command group) {
  command at = group.add("failover", "The key of a protected call, as Société Générale Failover makes it");
  at.about("Prints the raw text of the arguments, the UUID made from it, and the row (effective name, UUID).\n" +
           std::string(argument_rule));
  at.examples(
      "holdfast key failover --name country-by-code FR\n"
      "holdfast key failover --name country-by-code --domain country --json FR\n"
      "holdfast key failover --name orders --json-args 42 true '[\"a\",\"b\"]'\n"
      "holdfast key failover --name orders --style exact '{\"t\":\"double\",\"bits\":\"0x416312d000000000\"}'");
  const option name = at.value("--name", "N", "The point's name").required();
  const option domain = at.value("--domain", "D", "A namespace that points share; blank means the name");
  const option style = at.value("--style", "",
                                "escaped (default): different arguments, different text; exact: as the Java library, collisions "
                                "included")
                           .one_of({"escaped", "exact"});
  const option hash =
      at.value("--hash", "", "md5 (default): a UUID of version 3, as the Java library; blake2b: of version 8").one_of({"md5", "blake2b"});
  const option secret_file = at.value("--secret-file", "", "Key BLAKE2b with the 16 to 64 bytes in this file").file();
  const option generator = at.value("--generator", "G", "A key generator by name instead of the usual rules: sorted_csv");
  const call_options call(at);

  at.run([=](console& io) {
    key::failover_options options;
    options.style = style.text() == "exact" ? key::style::exact : key::style::escaped;
    options.hash = hash.text() == "blake2b" ? key::row_hash::blake2b : key::row_hash::md5;
    options.secret = read_secret(secret_file);
    options.generator = generator.text();
    options.on_unstable = [&io](std::string_view point, std::string_view type) {
      io.warn(std::string(point) + ": " + std::string(type) +
              " prints as its hash code, which changes from run to run; give it a toString()");
    };
    if (!options.secret.empty() && options.hash == key::row_hash::md5) {
      throw error(errc::invalid_argument, "--secret-file is of no use with MD5; add --hash blake2b");
    }
    const std::string point_name = name.text();
    const std::string point_domain = domain.text();
    const key::failover_keys keys({.name = point_name, .domain = point_domain}, options);
    const std::string raw = keys.raw_of(call.read(key::scheme::failover));
    const std::string uuid = keys.of_raw(raw);
    const std::string row_name(keys.effective_name());

    if (call.json.given()) {
      io.out << "{\"effective_name\":" << json_string(row_name) << ",\"raw_key\":" << json_string(raw) << ",\"uuid\":" << json_string(uuid)
             << ",\"row\":{\"failover_name\":" << json_string(row_name) << ",\"failover_key\":" << json_string(uuid) << "}}\n";
    } else {
      io.out << "raw   " << printable(raw) << "\nuuid  " << uuid << "\nrow   (" << printable(row_name) << ", " << uuid << ")\n";
    }
    return exit_fine;
  });
}

void print_hashed(console& io, const key::hashed_key& made, bool json, std::string_view bytes_field) {
  if (json) {
    io.out << "{\"key\":" << json_string(made.key) << ",\"args_hash\":" << json_string(made.args_hash) << ",\"" << bytes_field
           << "\":" << json_string(hex(made.message_pack)) << "}\n";
  } else {
    io.out << printable(made.key) << "\n";
  }
}

key::dialect dialect_of(const option& chosen) {
  const std::string word = chosen.text("current");
  if (word == "py_0_17") return key::dialect::py_0_17;
  return word == "seed" ? key::dialect::seed : key::dialect::current;
}

void add_cachekit(command group) {
  command at = group.add("cachekit", "The key of a function's call, as CacheKit for Python makes it");
  at.about("Prints the key; --json adds the hash of the arguments and the MessagePack that was hashed.\n" + std::string(argument_rule));
  at.examples(
      "holdfast key cachekit --module app.users --qualname get_user alice\n"
      "holdfast key cachekit --namespace prod --module app.users --qualname get_user --json-args 42 --kwarg active=true\n"
      "holdfast key cachekit --module app --qualname f --dialect seed --serializer arrow --no-integrity --json x");
  const option ns = at.value("--namespace", "NS", "The cache's namespace; empty means none");
  const option module = at.value("--module", "M", "The module of the function: app.users").required();
  const option qualname = at.value("--qualname", "Q", "The function: get_user, Users.get").required();
  const option keywords = at.values("--kwarg", "NAME=ARG", "A keyword argument; repeat for more");
  const option no_integrity = at.flag("--no-integrity", "Values are raw MessagePack, without the ByteStorage envelope");
  const option serializer = at.value("--serializer", "S", "What values are encoded with: std (default), arrow, orjson, ...");
  const option dialect = at.value("--dialect", "",
                                  "The edition of the format: the protocol of today (default), cachekit-py 0.17, or the "
                                  "published document")
                             .one_of({"current", "py_0_17", "seed"});
  const call_options call(at);

  at.run([=](console& io) {
    const std::string ns_text = ns.text();
    const std::string module_text = module.text();
    const std::string qualname_text = qualname.text();
    const std::string serializer_text = serializer.text("std");
    const key::cachekit_keys keys({.ns = ns_text,
                                   .module = module_text,
                                   .qualname = qualname_text,
                                   .integrity = !no_integrity.given(),
                                   .serializer = serializer_text,
                                   .dialect = dialect_of(dialect)});
    const call_arguments args = call.read(key::scheme::cachekit_auto);
    const keyword_arguments named = read_keywords(keywords.all(), key::scheme::cachekit_auto, call.json_args.given());
    print_hashed(io, keys.explain(args, named), call.json.given(), "msgpack_hex");
    return exit_fine;
  });
}

void add_interop(command group) {
  command at = group.add("interop", "The key that CacheKit for Python, Rust and TypeScript makes alike");
  at.about("Prints namespace:operation:hash; --json adds the canonical MessagePack that was hashed.\n" + std::string(argument_rule));
  at.examples(
      "holdfast key interop users get_user alice\n"
      "holdfast key interop users get_user --json-args 42 true\n"
      "holdfast key interop users by_id --json '{\"t\":\"uuid\",\"v\":\"550e8400-e29b-41d4-a716-446655440000\"}'\n"
      "holdfast key interop notes find -- --a-text-with-dashes");
  const option ns = at.positional("NS", "The namespace: a-z, 0-9, and . _ - after the first; at most 64").required();
  const option operation = at.positional("OP", "The operation, spelt alike").required();
  const call_options call(at);

  at.run([=](console& io) {
    const std::string ns_text = ns.text();
    const std::string operation_text = operation.text();
    const key::interop_keys keys(ns_text, operation_text);
    print_hashed(io, keys.explain(call.read(key::scheme::interop)), call.json.given(), "canonical_hex");
    return exit_fine;
  });
}

/// A Redis key may be any bytes; JSON may not.
std::string json_key(std::string_view text) {
  return is_utf8(text) ? "\"key\":" + json_string(text) : "\"key_hex\":" + json_string(hex(text));
}

void add_slot(command group) {
  command at = group.add("slot", "The Redis Cluster slot of each key");
  at.about("A slot is CRC16 of the key, or of its hash tag: what stands between the first { and the first } after it.");
  at.examples(
      "holdfast key slot user:1 user:2\n"
      "holdfast key slot '{user:1}:name' '{user:1}:mail'\n"
      "holdfast key slot --json foo");
  const option json = at.flag("--json", "Print one JSON object");
  const option keys = at.rest("KEY", "Redis keys").required();

  at.run([=](console& io) {
    const std::vector<std::string> all = keys.all();
    if (json.given()) {
      io.out << "{\"slots\":[";
      for (std::size_t i = 0; i < all.size(); ++i) {
        io.out << (i == 0 ? "{" : ",{") << json_key(all[i]) << ",\"slot\":" << std::to_string(key::redis_slot(all[i])) << "}";
      }
      io.out << "]}\n";
      return exit_fine;
    }
    for (const std::string& each : all) {
      const std::string slot = std::to_string(key::redis_slot(each));
      io.out << std::string(5 - std::min<std::size_t>(slot.size(), 5), ' ') << slot << "  " << printable(each) << "\n";
    }
    return exit_fine;
  });
}

void add_outbox(command group) {
  command at = group.add("outbox", "The four Redis keys of an outbox, and their slot");
  at.about("The prefix has exactly one hash tag, so that all four keys land in one slot and one script may touch them.");
  at.examples(
      "holdfast key outbox\n"
      "holdfast key outbox '{billing:outbox}'\n"
      "holdfast key outbox --json '{billing:outbox}:7'");
  const option json = at.flag("--json", "Print one JSON object");
  const option prefix = at.positional("PREFIX", "The prefix with its braces; {identity:outbox} if there is none");

  at.run([=](console& io) {
    const key::redis_prefix checked = prefix.given() ? key::redis_prefix(prefix.text()) : key::redis_prefix();
    const key::outbox_keys keys(checked);
    const std::string slot = std::to_string(keys.slot());
    if (json.given()) {
      io.out << "{\"prefix\":" << json_string(checked.text()) << ",\"entries\":" << json_string(keys.entries())
             << ",\"pending\":" << json_string(keys.pending()) << ",\"expiry_due\":" << json_string(keys.expiry_due())
             << ",\"lock\":" << json_string(keys.lock()) << ",\"slot\":" << slot << "}\n";
    } else {
      io.out << "entries     " << keys.entries() << "\npending     " << keys.pending() << "\nexpiry due  " << keys.expiry_due()
             << "\nlock        " << keys.lock() << "\nslot        " << slot << "\n";
    }
    return exit_fine;
  });
}

}  // namespace

void add_key_commands(command root) {
  command group = root.add("key", "Make keys: the same call gives the same key, in every process and language");
  group.examples(
      "holdfast key failover --name country-by-code FR\n"
      "holdfast key interop users get_user --json-args 42\n"
      "holdfast key slot '{user:1}:name'\n"
      "holdfast key batch --scheme interop < cases.jsonl");
  add_failover(group);
  add_cachekit(group);
  add_interop(group);
  add_slot(group);
  add_outbox(group);
  add_batch_command(group);
}

}  // namespace holdfast::cli
