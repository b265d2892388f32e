// The demonstration of keys. All results are computed while it runs.

#include <holdfast/cachekit/envelope.hpp>
#include <holdfast/cachekit/messagepack.hpp>
#include <holdfast/error.hpp>
#include <holdfast/key/failover.hpp>
#include <holdfast/key/interop.hpp>
#include <holdfast/key/redis.hpp>

#include "demo/child_process.hpp"
#include "demo/stage.hpp"
#include "terminal/text.hpp"

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::cli {

namespace {

void same_call_same_key(stage& show) {
  show.paragraph(
      "A key identifies a call. This process computes one in C++, then starts two other processes "
      "that compute the key of the same call.");
  show.gap();
  show.typed("holdfast::key::interop(\"users\", \"get_user\", 42, true)");
  const std::string own_key = key::interop("users", "get_user", 42, true);
  show.show("this process", own_key);
  bool same = true;
  show.typed("holdfast key interop users get_user --json-args 42 true");
  for (const std::string_view label : {"second process", "third process"}) {
    std::string other_key =
        run_self({"key", "interop", "users", "get_user", "--json-args", "42", "true"});
    if (other_key.ends_with('\n')) other_key.pop_back();
    show.show(label, other_key);
    same = same && other_key == own_key;
  }
  if (!same) throw error(errc::internal, "the processes computed different keys for one call");
  show.good("three processes, one key; services in Python, Rust or TypeScript compute the same");
}

void different_calls_different_keys(stage& show) {
  show.paragraph(
      "If arguments are joined with a colon, two different calls can have one key. The style "
      "`exact` does that, to share tables with the Java library; the style `escaped`, the default, "
      "does not.");
  show.gap();
  const key::point_info point{.name = "country"};
  for (const bool exact : {true, false}) {
    const key::failover_keys keys(point,
                                  {.style = exact ? key::style::exact : key::style::escaped});
    const std::string command =
        "holdfast key failover --name country" + std::string(exact ? " --style exact" : "");
    show.typed(command + " a:b c");
    show.show(keys.raw("a:b", "c"), keys("a:b", "c"));
    show.typed(command + " a b:c");
    show.show(keys.raw("a", "b:c"), keys("a", "b:c"));
    if (keys("a:b", "c") == keys("a", "b:c")) {
      show.bad("one row for two calls: one call would get the answer of the other");
    } else {
      show.good("two calls, two rows");
    }
  }
}

/// Explains the first element of MessagePack and removes it. Returns false if the demonstration
/// does not know its form.
bool explain_element(stage& show, std::string_view& bytes) {
  const auto head = static_cast<unsigned char>(bytes.front());
  std::size_t size = 1;
  std::string meaning;
  if (head < 0x80) {
    meaning = "the integer " + std::to_string(head);
  } else if ((head & 0xf0U) == 0x90U) {
    meaning = "a list of " + std::to_string(head & 0xfU) + ":";
  } else if ((head & 0xe0U) == 0xa0U && bytes.size() > (head & 0x1fU)) {
    size += head & 0x1fU;
    meaning =
        "text of " + std::to_string(size - 1) + " bytes: " + std::string(bytes.substr(1, size - 1));
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
  show.paragraph(
      "A key is the same in every language because all encode the arguments in the same way: "
      "MessagePack in its shortest form, maps sorted, floats without a fraction as integers. The "
      "key ends with the BLAKE2b hash of these bytes.");
  show.gap();
  show.typed("holdfast key interop users get_user --json --json-args 42.0 '\"alice\"' true");
  const std::vector<key::value> args{key::value(42.0), key::value("alice"), key::value(true)};
  const key::hashed_key result = key::interop_keys("users", "get_user").explain(args);
  std::string_view bytes = result.message_pack;
  while (!bytes.empty() && explain_element(show, bytes)) {
  }
  if (!bytes.empty()) show.show(hex(bytes), "and so on");
  show.show("BLAKE2b-256", result.args_hash);
  show.show("key", result.key);
  if (result.key != key::interop("users", "get_user", 42, "alice", true))
    throw error(errc::internal, "42.0 and 42 have different keys");
  show.good("42.0 and 42 have one key, because JavaScript cannot distinguish them");
}

void four_keys_one_slot(stage& show) {
  show.paragraph(
      "Redis Cluster distributes keys over 16,384 slots, and a script may use keys of one slot "
      "only. A hash tag, the part in braces, keeps the four keys of an outbox together.");
  show.gap();
  show.typed("holdfast key outbox '{billing:outbox}'");
  const key::outbox_keys keys(key::redis_prefix("{billing:outbox}"));
  for (const std::string* name :
       {&keys.entries(), &keys.pending(), &keys.expiry_due(), &keys.lock()}) {
    show.show("slot " + std::to_string(key::redis_slot(*name)), *name);
  }
  show.good("four keys, one slot");
  show.typed("holdfast key slot billing:outbox:entries billing:outbox:pending");
  for (const std::string_view name : {"billing:outbox:entries", "billing:outbox:pending"}) {
    show.show("slot " + std::to_string(key::redis_slot(name)), name);
  }
  show.bad("without braces the slots differ; `holdfast key outbox` refuses such a prefix");
}

void errors_say_where(stage& show) {
  show.paragraph(
      "A value that a format does not support is refused, never changed. The error has the path of "
      "the value, at any depth.");
  show.gap();
  show.typed(
      R"(holdfast key interop orders find 1 x '{"t":"map","v":[[{"t":"str","v":"a"},{"t":"list","v":[{"t":"int",)"
      R"("v":"18446744073709551616"}]}]]}')");
  key::list inner;
  inner.items.emplace_back(key::big_integer{"18446744073709551616"});
  key::map outer;
  outer.items.emplace_back(key::value("a"), key::value(std::move(inner)));
  const std::vector<key::value> args{key::value("1"), key::value("x"),
                                     key::value(std::move(outer))};
  try {
    show.show("key", key::interop_keys("orders", "find").of(args));
  } catch (const error& refused) {
    show.show("code", to_string(refused.code()));
    show.show("path", refused.path());
    show.show("message", refused.message());
    show.good("2 to the power of 64 does not fit, and the path shows which value it is");
  }
}

void a_value_in_its_envelope(stage& show) {
  show.paragraph(
      "The value of a key is MessagePack in CacheKit's ByteStorage envelope, compressed, with a "
      "checksum.");
  show.gap();
  std::map<std::string, std::string> user{
      {"name", "Alice"}, {"city", "Paris"}, {"note", std::string(300, 'x')}};
  const key::byte_string encoded = key::encode_value(user);
  key::byte_string sealed = key::wrap(encoded);
  show.show("the value", "name, city, and a note of 300 characters");
  show.show("MessagePack", std::to_string(encoded.size()) + " bytes");
  show.show("ByteStorage", std::to_string(sealed.size()) + " bytes");
  const key::value decoded = key::decode_value(key::unwrap(sealed).data);
  if (decoded != key::to_value(user)) throw error(errc::internal, "the decoded value differs");
  show.good("unwrapped and decoded: the same value");
  sealed[sealed.size() / 4] ^= std::byte{0x01};
  try {
    static_cast<void>(key::unwrap(sealed));
    throw error(errc::internal, "a damaged envelope was accepted");
  } catch (const error& refused) {
    if (refused.code() == errc::internal) throw;
    show.show("one bit flipped", refused.what());
    show.good("damage is detected before the value is used");
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
