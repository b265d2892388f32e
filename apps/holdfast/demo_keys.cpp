/// \file
/// The demonstration of keys. Everything shown is computed while it is shown.

#include <holdfast/error.hpp>
#include <holdfast/key/envelope.hpp>
#include <holdfast/key/failover.hpp>
#include <holdfast/key/interop.hpp>
#include <holdfast/key/messagepack.hpp>
#include <holdfast/key/redis.hpp>

#include "stage.hpp"
#include "text.hpp"

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::cli {

namespace {

void same_call_same_key(stage& show) {
  show.say("A key names a call. This process makes one in C++, then starts two others and asks them for the same call.");
  show.gap();
  show.typed("holdfast::key::interop(\"users\", \"get_user\", 42, true)");
  const std::string ours = key::interop("users", "get_user", 42, true);
  show.show("this process", ours);
  bool same = true;
  show.typed("holdfast key interop users get_user --json-args 42 true");
  for (const std::string_view label : {"second process", "third process"}) {
    std::string theirs = run_again({"key", "interop", "users", "get_user", "--json-args", "42", "true"});
    if (theirs.ends_with('\n')) theirs.pop_back();
    show.show(label, theirs);
    same = same && theirs == ours;
  }
  if (!same) throw error(errc::internal, "the processes made different keys for one call");
  show.good("three processes, one key; a Python, Rust or TypeScript service makes it too");
}

void different_calls_different_keys(stage& show) {
  show.say(
      "Joining arguments with a colon is how two different calls become one. The style `exact` does what the Java library "
      "does, to share its tables; the style `escaped`, the default, tells them apart.");
  show.gap();
  const key::point_info point{.name = "country"};
  for (const bool exact : {true, false}) {
    const key::failover_keys keys(point, {.style = exact ? key::style::exact : key::style::escaped});
    const std::string command = "holdfast key failover --name country" + std::string(exact ? " --style exact" : "");
    show.typed(command + " a:b c");
    show.show(keys.raw("a:b", "c"), keys("a:b", "c"));
    show.typed(command + " a b:c");
    show.show(keys.raw("a", "b:c"), keys("a", "b:c"));
    if (keys("a:b", "c") == keys("a", "b:c")) {
      show.bad("one row for two calls: one would be served the other's answer");
    } else {
      show.good("two calls, two rows");
    }
  }
}

/// Explains the few forms of MessagePack that the demonstration meets; false at anything else.
bool explain_one(stage& show, std::string_view& bytes) {
  const auto head = static_cast<unsigned char>(bytes.front());
  std::size_t size = 1;
  std::string meaning;
  if (head < 0x80) {
    meaning = "the integer " + std::to_string(head);
  } else if ((head & 0xf0U) == 0x90U) {
    meaning = "a list of " + std::to_string(head & 0xfU) + ":";
  } else if ((head & 0xe0U) == 0xa0U && bytes.size() > (head & 0x1fU)) {
    size += head & 0x1fU;
    meaning = "text of " + std::to_string(size - 1) + " bytes: " + std::string(bytes.substr(1, size - 1));
  } else if (head == 0xc2 || head == 0xc3) {
    meaning = head == 0xc3 ? "true" : "false";
  } else {
    return false;
  }
  show.show(hex(bytes.substr(0, size)), meaning);
  bytes.remove_prefix(size);
  return true;
}

void inside_an_interop_key(stage& show) {
  show.say(
      "What makes a key the same in every language is one agreed way to write the arguments down: MessagePack in its shortest form, maps "
      "sorted, "
      "floats without a fraction as integers. The key ends with the BLAKE2b hash of these bytes.");
  show.gap();
  show.typed("holdfast key interop users get_user --json --json-args 42.0 '\"alice\"' true");
  const std::vector<key::value> args{key::value(42.0), key::value("alice"), key::value(true)};
  const key::hashed_key made = key::interop_keys("users", "get_user").explain(args);
  std::string_view bytes = made.message_pack;
  while (!bytes.empty() && explain_one(show, bytes)) {
  }
  if (!bytes.empty()) show.show(hex(bytes), "and so on");
  show.show("BLAKE2b-256", made.args_hash);
  show.show("key", made.key);
  if (made.key != key::interop("users", "get_user", 42, "alice", true)) throw error(errc::internal, "42.0 and 42 made different keys");
  show.good("42.0 and 42 are one key, as JavaScript cannot tell them apart");
}

void four_keys_one_slot(stage& show) {
  show.say(
      "Redis Cluster spreads keys over 16,384 slots, and a script may touch keys of one slot only. A hash tag, the part in "
      "braces, keeps the four keys of an outbox together.");
  show.gap();
  show.typed("holdfast key outbox '{billing:outbox}'");
  const key::outbox_keys keys(key::redis_prefix("{billing:outbox}"));
  for (const std::string* each : {&keys.entries(), &keys.pending(), &keys.expiry_due(), &keys.lock()}) {
    show.show("slot " + std::to_string(key::redis_slot(*each)), *each);
  }
  show.good("four keys, one slot");
  show.typed("holdfast key slot billing:outbox:entries billing:outbox:pending");
  for (const std::string_view each : {"billing:outbox:entries", "billing:outbox:pending"}) {
    show.show("slot " + std::to_string(key::redis_slot(each)), each);
  }
  show.bad("without the braces they part; `holdfast key outbox` refuses such a prefix");
}

void errors_say_where(stage& show) {
  show.say("A value that a format cannot carry is refused, never bent. The error names the path to it, however deep it is.");
  show.gap();
  show.typed(R"(holdfast key interop orders find 1 x '{"t":"map","v":[[{"t":"str","v":"a"},{"t":"list","v":[{"t":"int",)"
             R"("v":"18446744073709551616"}]}]]}')");
  key::list inner;
  inner.items.emplace_back(key::big_integer{"18446744073709551616"});
  key::map outer;
  outer.items.emplace_back(key::value("a"), key::value(std::move(inner)));
  const std::vector<key::value> args{key::value("1"), key::value("x"), key::value(std::move(outer))};
  try {
    show.show("key", key::interop_keys("orders", "find").of(args));
  } catch (const error& refused) {
    show.show("code", to_string(refused.code()));
    show.show("path", refused.path());
    show.show("message", refused.message());
    show.good("2 to the power of 64 does not fit, and one knows which one it was");
  }
}

void a_value_in_its_envelope(stage& show) {
  show.say("Under a key lies a value: MessagePack in CacheKit's ByteStorage envelope, compressed, with a checksum.");
  show.gap();
  std::map<std::string, std::string> user{{"name", "Alice"}, {"city", "Paris"}, {"note", std::string(300, 'x')}};
  const key::byte_string encoded = key::encode_value(user);
  key::byte_string sealed = key::wrap(encoded);
  show.show("the value", "name, city, and a note of 300 characters");
  show.show("MessagePack", std::to_string(encoded.size()) + " bytes");
  show.show("ByteStorage", std::to_string(sealed.size()) + " bytes");
  const key::value back = key::decode_value(key::unwrap(sealed).data);
  if (back != key::to_value(user)) throw error(errc::internal, "the value did not come back as it went");
  show.good("unwrapped and decoded: the same value");
  sealed[sealed.size() / 4] ^= std::byte{0x01};
  try {
    static_cast<void>(key::unwrap(sealed));
    throw error(errc::internal, "a damaged envelope was accepted");
  } catch (const error& refused) {
    if (refused.code() == errc::internal) throw;
    show.show("one bit flipped", refused.what());
    show.good("damage is found before the value is used");
  }
}

}  // namespace

std::vector<chapter> key_chapters() {
  return {{"The same call, the same key, in every process", same_call_same_key},
          {"Different calls, different keys", different_calls_different_keys},
          {"Inside a key that four languages share", inside_an_interop_key},
          {"Four keys, one slot", four_keys_one_slot},
          {"An error that says where", errors_say_where},
          {"A value in its envelope", a_value_in_its_envelope}};
}

}  // namespace holdfast::cli
