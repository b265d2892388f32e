// holdfast key failover, cachekit, interop, slot and outbox.

#include <holdfast/error.hpp>
#include <holdfast/key/cachekit.hpp>
#include <holdfast/key/failover.hpp>
#include <holdfast/key/interop.hpp>
#include <holdfast/key/redis.hpp>

#include "base/utf8.hpp"
#include "commands/groups.hpp"
#include "commands/key/dialect.hpp"
#include "terminal/arguments.hpp"
#include "terminal/input.hpp"
#include "terminal/text.hpp"

#include <algorithm>
#include <string>
#include <vector>

namespace holdfast::cli {

namespace {

/// The options of every command with ARGs.
struct argument_options {
  option json;
  option json_args;
  option args;

  explicit argument_options(command& cmd)
      : json(cmd.flag("--json", "Print one JSON object")),
        json_args(cmd.flag("--json-args", "Read each ARG as plain JSON")),
        args(cmd.rest("ARG", "Arguments of the call, in order")) {}

  [[nodiscard]] call_arguments read(key::scheme scheme) const {
    return read_arguments(args.all(), scheme, json_args.is_set());
  }
};

std::string read_secret(const option& file) {
  if (!file.is_set()) return {};
  std::string secret = read_small_file(file.text(), 4096);
  // Editors add a line end, which is not part of the secret.
  if (secret.ends_with('\n')) secret.pop_back();
  if (secret.ends_with('\r')) secret.pop_back();
  if (secret.empty())
    throw error(errc::invalid_argument,
                "the secret file '" + file.text() + "' is empty; write 16 to 64 bytes into it");
  return secret;
}

void add_failover(command group) {
  command cmd =
      group.add("failover", "Key of a protected call, in the format of Société Générale Failover");
  cmd.about(
      "Prints the raw text of the arguments, the UUID computed from it, and the row (effective "
      "name, UUID).\n" +
      std::string(argument_rule));
  cmd.examples(
      "holdfast key failover --name country-by-code FR\n"
      "holdfast key failover --name country-by-code --domain country --json FR\n"
      "holdfast key failover --name orders --json-args 42 true '[\"a\",\"b\"]'\n"
      "holdfast key failover --name orders --style exact "
      "'{\"t\":\"double\",\"bits\":\"0x416312d000000000\"}'");
  const option name = cmd.value("--name", "N", "Name of the point").required();
  const option domain =
      cmd.value("--domain", "D", "Namespace that several points share; the name if blank");
  const option style =
      cmd.value("--style", "",
                "escaped (default): different arguments never collide; exact: as in the Java "
                "library, with its collisions")
          .one_of({"escaped", "exact"});
  const option hash =
      cmd.value("--hash", "",
                "md5 (default): a UUID of version 3, as in the Java library; blake2b: of version 8")
          .one_of({"md5", "blake2b"});
  const option secret_file =
      cmd.value("--secret-file", "", "Key BLAKE2b with the 16 to 64 bytes in this file").file();
  const option generator =
      cmd.value("--generator", "G",
                "Name of a key generator to use instead of the default rules: sorted_csv");
  const argument_options call(cmd);

  cmd.run([=](console& io) {
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
      throw error(errc::invalid_argument, "--secret-file requires BLAKE2b; add --hash blake2b");
    }
    const std::string point_name = name.text();
    const std::string point_domain = domain.text();
    const key::failover_keys keys({.name = point_name, .domain = point_domain}, options);
    const std::string raw = keys.raw_of(call.read(key::scheme::failover));
    const std::string uuid = keys.of_raw(raw);
    const std::string row_name(keys.effective_name());

    if (call.json.is_set()) {
      io.out << "{\"effective_name\":" << json_string(row_name)
             << ",\"raw_key\":" << json_string(raw) << ",\"uuid\":" << json_string(uuid)
             << ",\"row\":{\"failover_name\":" << json_string(row_name)
             << ",\"failover_key\":" << json_string(uuid) << "}}\n";
    } else {
      io.out << "raw   " << printable(raw) << "\nuuid  " << uuid << "\nrow   ("
             << printable(row_name) << ", " << uuid << ")\n";
    }
    return exit_ok;
  });
}

void print_hashed(console& io, const key::hashed_key& result, bool json,
                  std::string_view bytes_field) {
  if (json) {
    io.out << "{\"key\":" << json_string(result.key)
           << ",\"args_hash\":" << json_string(result.args_hash) << ",\"" << bytes_field
           << "\":" << json_string(hex(result.message_pack)) << "}\n";
  } else {
    io.out << printable(result.key) << "\n";
  }
}

void add_cachekit(command group) {
  command cmd =
      group.add("cachekit", "Key of a function call, in the format of CacheKit for Python");
  cmd.about(
      "Prints the key. --json adds the hash of the arguments and the MessagePack that is "
      "hashed.\n" +
      std::string(argument_rule));
  cmd.examples(
      "holdfast key cachekit --module app.users --qualname get_user alice\n"
      "holdfast key cachekit --namespace prod --module app.users --qualname get_user --json-args "
      "42 --kwarg active=true\n"
      "holdfast key cachekit --module app --qualname f --dialect v1_0 --serializer arrow "
      "--no-integrity --json x");
  const option ns = cmd.value("--namespace", "NS", "Namespace of the cache; empty for none");
  const option module = cmd.value("--module", "M", "Module of the function: app.users").required();
  const option qualname =
      cmd.value("--qualname", "Q", "Qualified name of the function: get_user, Users.get")
          .required();
  const option keywords = cmd.values("--kwarg", "NAME=ARG", "A keyword argument; repeat for more");
  const option no_integrity =
      cmd.flag("--no-integrity", "Values are raw MessagePack, without the ByteStorage envelope");
  const option serializer =
      cmd.value("--serializer", "S", "Serializer of the values: std (default), arrow, orjson, ...");
  const option dialect =
      cmd.value("--dialect", "",
                "Version of the format: current (default), cachekit-py 0.17, or protocol 1.0")
          .one_of({"current", "py_0_17", "v1_0"}, {"seed"});
  const argument_options call(cmd);

  cmd.run([=](console& io) {
    const std::string ns_text = ns.text();
    const std::string module_text = module.text();
    const std::string qualname_text = qualname.text();
    const std::string serializer_text = serializer.text("std");
    const key::cachekit_keys keys({.ns = ns_text,
                                   .module = module_text,
                                   .qualname = qualname_text,
                                   .integrity = !no_integrity.is_set(),
                                   .serializer = serializer_text,
                                   .dialect = key_dialect(dialect.text())});
    const call_arguments args = call.read(key::scheme::cachekit_auto);
    const keyword_arguments named =
        read_keywords(keywords.all(), key::scheme::cachekit_auto, call.json_args.is_set());
    print_hashed(io, keys.explain(args, named), call.json.is_set(), "msgpack_hex");
    return exit_ok;
  });
}

void add_interop(command group) {
  command cmd =
      group.add("interop", "Key that CacheKit shares between Python, Rust and TypeScript");
  cmd.about(
      "Prints namespace:operation:hash. --json adds the canonical MessagePack that is hashed.\n" +
      std::string(argument_rule));
  cmd.examples(
      "holdfast key interop users get_user alice\n"
      "holdfast key interop users get_user --json-args 42 true\n"
      "holdfast key interop users by_id --json "
      "'{\"t\":\"uuid\",\"v\":\"550e8400-e29b-41d4-a716-446655440000\"}'\n"
      "holdfast key interop notes find -- --a-text-with-dashes");
  const option ns =
      cmd.positional("NS", "Namespace: a-z, 0-9, and . _ - after the first character; at most 64")
          .required();
  const option operation = cmd.positional("OP", "Operation, with the same characters").required();
  const argument_options call(cmd);

  cmd.run([=](console& io) {
    const std::string ns_text = ns.text();
    const std::string operation_text = operation.text();
    const key::interop_keys keys(ns_text, operation_text);
    print_hashed(io, keys.explain(call.read(key::scheme::interop)), call.json.is_set(),
                 "canonical_hex");
    return exit_ok;
  });
}

/// A Redis key may have any bytes; a JSON string must be UTF-8.
std::string json_key(std::string_view text) {
  return detail::is_utf8(text) ? "\"key\":" + json_string(text)
                               : "\"key_hex\":" + json_string(hex(text));
}

void add_slot(command group) {
  command cmd = group.add("slot", "Redis Cluster slot of each key");
  cmd.about(
      "A slot is the CRC16 of the key, or of its hash tag: the text between the first { and the "
      "first } after it.");
  cmd.examples(
      "holdfast key slot user:1 user:2\n"
      "holdfast key slot '{user:1}:name' '{user:1}:mail'\n"
      "holdfast key slot --json foo");
  const option json = cmd.flag("--json", "Print one JSON object");
  const option keys = cmd.rest("KEY", "Redis keys").required();

  cmd.run([=](console& io) {
    const std::vector<std::string> names = keys.all();
    if (json.is_set()) {
      io.out << "{\"slots\":[";
      for (std::size_t i = 0; i < names.size(); ++i) {
        io.out << (i == 0 ? "{" : ",{") << json_key(names[i])
               << ",\"slot\":" << std::to_string(key::redis_slot(names[i])) << "}";
      }
      io.out << "]}\n";
      return exit_ok;
    }
    for (const std::string& name : names) {
      const std::string slot = std::to_string(key::redis_slot(name));
      io.out << std::string(5 - std::min<std::size_t>(slot.size(), 5), ' ') << slot << "  "
             << printable(name) << "\n";
    }
    return exit_ok;
  });
}

void add_outbox(command group) {
  command cmd = group.add("outbox", "Four Redis keys of an outbox, and their slot");
  cmd.about(
      "The prefix has exactly one hash tag, so that all four keys are in one slot, and one script "
      "can use them.");
  cmd.examples(
      "holdfast key outbox\n"
      "holdfast key outbox '{billing:outbox}'\n"
      "holdfast key outbox --json '{billing:outbox}:7'");
  const option json = cmd.flag("--json", "Print one JSON object");
  const option prefix =
      cmd.positional("PREFIX", "Prefix with its braces (default {identity:outbox})");

  cmd.run([=](console& io) {
    const key::redis_prefix checked =
        prefix.is_set() ? key::redis_prefix(prefix.text()) : key::redis_prefix();
    const key::outbox_keys keys(checked);
    const std::string slot = std::to_string(keys.slot());
    if (json.is_set()) {
      io.out << "{\"prefix\":" << json_string(checked.text())
             << ",\"entries\":" << json_string(keys.entries())
             << ",\"pending\":" << json_string(keys.pending())
             << ",\"expiry_due\":" << json_string(keys.expiry_due())
             << ",\"lock\":" << json_string(keys.lock()) << ",\"slot\":" << slot << "}\n";
    } else {
      io.out << "entries     " << keys.entries() << "\npending     " << keys.pending()
             << "\nexpiry due  " << keys.expiry_due() << "\nlock        " << keys.lock()
             << "\nslot        " << slot << "\n";
    }
    return exit_ok;
  });
}

}  // namespace

void add_key_commands(command root) {
  command group =
      root.add("key", "Compute keys: the same call has the same key in every process and language");
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
