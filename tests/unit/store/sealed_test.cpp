#include <holdfast/store/sealed.hpp>
#include <holdfast/store/write_behind.hpp>

#include "support/failure_of.hpp"
#include "support/model_store.hpp"

#include <gtest/gtest.h>

#include <barrier>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace holdfast::test {
namespace {

using namespace std::chrono_literals;

const std::string sealed_key_a = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
const std::string sealed_key_b = "ICEiIyQlJicoKSorLC0uLzAxMjM0NTY3ODk6Ozw9Pj8=";

/// The model, with a configurable peer.
class raw_store final : public store {
 public:
  explicit raw_store(holdfast::peer table_peer = holdfast::peer::none) : peer_(table_peer) {}
  using store::put;
  void put(std::span<const entry> entries) override {
    if (at_the_gate != nullptr) {
      at_the_gate->arrive_and_wait();
      at_the_gate->arrive_and_wait();
    }
    model_.put(entries);
  }
  std::optional<entry> find(place location, std::string_view key) override {
    return model_.find(location, key);
  }
  entry_page find_all(place location, std::size_t limit, std::string_view after) override {
    return model_.find_all(location, limit, after);
  }
  bool erase(place location, std::string_view key, timestamp as_of) override {
    return model_.erase(location, key, as_of);
  }
  std::size_t expire(timestamp before, std::size_t limit) override {
    return model_.expire(before, limit);
  }
  std::uint64_t count(place location) override { return model_.count(location); }
  [[nodiscard]] holdfast::peer peer() const noexcept override { return peer_; }
  store_health health() noexcept override { return model_.health(); }

  std::barrier<>* at_the_gate = nullptr;  ///< if set, put waits there

 private:
  model_store model_{};
  holdfast::peer peer_;
};

sealing_ring ring(const std::string& text) { return sealing_ring::from_text(text); }

class Sealed : public ::testing::Test {
 protected:
  static entry make(std::string key, std::string payload = R"({"name":"France"})") {
    const auto now = system_clock()->now();
    return {.name = "country",
            .key = std::move(key),
            .as_of = now,
            .expire_on = now + 1h,
            .payload = std::move(payload),
            .payload_class = "app.Country"};
  }
  [[nodiscard]] std::string raw(const std::string& key) const {
    return raw_->find("country", key).value().payload.value();
  }
  void put_raw(const std::string& key, std::string payload) const {
    raw_->put(make(key, std::move(payload)));
  }
  [[nodiscard]] error failure(const std::string& key) const {
    return failure_of([&] { (void)sealed_->find("country", key); });
  }

  std::shared_ptr<raw_store> raw_ = std::make_shared<raw_store>();
  std::shared_ptr<sealed_store> sealed_ = make_sealed(raw_, {.keys = ring("k1:" + sealed_key_a)});
};

TEST_F(Sealed, NothingOfThePayloadIsBelow) {
  const auto e = make("FR");
  sealed_->put(e);
  EXPECT_EQ(sealed_->find("country", "FR"), e);
  EXPECT_TRUE(raw("FR").starts_with("ENC(k1:SEYB")) << raw("FR");
  EXPECT_TRUE(raw("FR").ends_with(")"));
  EXPECT_EQ(raw("FR").find("France"), std::string::npos);
  auto below = raw_->find("country", "FR").value();
  below.payload = e.payload;
  EXPECT_EQ(below, e) << "everything else is as it was";
}

TEST_F(Sealed, PayloadsOfEverySizeComeBack) {
  for (const std::size_t size :
       {0U,     1U,     2U,     3U,     15U,    16U,    17U,    47U,    48U,      1000U,
        12256U, 12287U, 12288U, 12289U, 12304U, 24575U, 24576U, 24577U, 100'000U, 1'000'003U}) {
    std::string payload(size, '\0');
    for (std::size_t i = 0; i < size; ++i) payload[i] = static_cast<char>(i * 7 + i / 251);
    sealed_->put(make("k", payload));
    ASSERT_EQ(sealed_->find("country", "k").value().payload.value(), payload) << size;
    EXPECT_EQ(raw("k").size(), 8 + (3 + 12 + size + 16 + 2) / 3 * 4);
  }
}

TEST_F(Sealed, TheSamePayloadIsNeverTheSameBelow) {
  std::set<std::string> seen;
  for (int i = 0; i < 1000; ++i) {
    sealed_->put(make("FR"));
    seen.insert(raw("FR"));
  }
  EXPECT_EQ(seen.size(), 1000U);
  EXPECT_EQ(sealed_->numbers().sealed, 1000U);
}

TEST_F(Sealed, MemoryThatIsUsedAgainShowsNothingOfTheEntryBefore) {
  const auto before =
      make("a long key, so long that it has memory of its own", std::string(5000, 'x'));
  const auto after = make("k", "short");
  auto gone = make("gone", "");
  gone.payload.reset();
  gone.payload_class.clear();
  const auto large = make("large", std::string(300'000, 'y'));
  for (const entry& each : {before, after, large, gone, before}) {
    sealed_->put(each);
    EXPECT_EQ(sealed_->find("country", each.key), each);
  }
}

TEST_F(Sealed, TombstonesStayTombstones) {
  entry gone = make("XX");
  gone.payload.reset();
  gone.payload_class.clear();
  sealed_->put(gone);
  EXPECT_TRUE(raw_->find("country", "XX").value().tombstone());
  EXPECT_EQ(sealed_->find("country", "XX"), gone);
  EXPECT_EQ(sealed_->numbers().sealed, 0U);
}

TEST_F(Sealed, EveryChangedByteIsSeen) {
  sealed_->put(make("FR"));
  const auto good = raw("FR");
  const auto colon = good.find(':');
  for (std::size_t position = 0; position < good.size(); ++position) {
    auto bad = good;
    bad[position] = bad[position] == 'A' ? 'B' : 'A';
    if (bad == good) continue;
    put_raw("FR", bad);
    const auto code = failure("FR").code();
    if (position < 4) EXPECT_EQ(code, errc::permission) << position << ": it is plaintext now";
    else if (position < colon) EXPECT_EQ(code, errc::not_found) << position;
    else if (position == colon || position < colon + 5 || position + 1 == good.size())
      EXPECT_EQ(code, errc::malformed) << position;
    else if (position + 3 > good.size() - 1)
      EXPECT_TRUE(code == errc::malformed || code == errc::tampered) << position;
    else EXPECT_EQ(code, errc::tampered) << position;
  }
  EXPECT_GT(sealed_->numbers().refused, 0U);
  const auto health = sealed_->health();
  EXPECT_GT(health.unreadable, 0U);
  EXPECT_TRUE(health.available);
  EXPECT_FALSE(health.healthy());
  EXPECT_NE(health.problem.find("could not be read"), std::string::npos) << health.problem;
  const auto above = make_write_behind(sealed_)->health();
  EXPECT_EQ(above.problem, health.problem) << "told once";
}

TEST_F(Sealed, EveryCutIsSeen) {
  sealed_->put(make("FR"));
  const auto good = raw("FR");
  for (std::size_t size = 0; size < good.size(); ++size) {
    put_raw("FR", good.substr(0, size));
    EXPECT_EQ(failure("FR").code(), size < 4 ? errc::permission : errc::malformed) << size;
  }
  for (const std::string bad : {"ENC()", "ENC(:)", "ENC(k1)", "ENC(k1:)", "ENC(k1:SEYB)",
                                "ENC(k1:====)", "ENC(:AAAA)", "ENC(a\nb:AAAA)"}) {
    put_raw("FR", bad);
    EXPECT_EQ(failure("FR").code(), errc::malformed) << bad;
  }
  const auto text = failure("FR");
  EXPECT_EQ(text.path(), "country/FR");
}

TEST_F(Sealed, ARowCannotBePutInThePlaceOfAnother) {
  sealed_->put(make("FR"));
  const auto stolen = raw("FR");
  put_raw("DE", stolen);
  EXPECT_EQ(failure("DE").code(), errc::tampered) << "another key";

  auto other = make("FR", stolen);
  other.name = "capital";
  raw_->put(other);
  EXPECT_EQ(failure_of([&] { (void)sealed_->find("capital", "FR"); }).code(), errc::tampered)
      << "another name";

  other = make("FR", stolen);
  other.realm = "acme";
  raw_->put(other);
  EXPECT_EQ(failure_of([&] { (void)sealed_->find({"country", "acme"}, "FR"); }).code(),
            errc::tampered)
      << "another realm";

  other = make("FR", stolen);
  other.payload_class = "app.Admin";
  raw_->put(other);
  EXPECT_EQ(failure("FR").code(), errc::tampered) << "another class";
}

TEST_F(Sealed, TheBorderBetweenNameAndKeyCounts) {
  auto e = make("b/c");
  e.name = "a";
  sealed_->put(e);
  auto moved = raw_->find("a", "b/c").value();
  moved.name = "a/b";
  moved.key = "c";
  raw_->put(moved);
  EXPECT_EQ(failure_of([&] { (void)sealed_->find("a/b", "c"); }).code(), errc::tampered);
}

TEST_F(Sealed, AnotherKeyOfTheSameIdOpensNothing) {
  sealed_->put(make("FR"));
  const auto wrong = make_sealed(raw_, {.keys = ring("k1:" + sealed_key_b)});
  const auto refused = failure_of([&] { (void)wrong->find("country", "FR"); });
  EXPECT_EQ(refused.code(), errc::tampered);
  const auto unknown = make_sealed(raw_, {.keys = ring("k2:" + sealed_key_b)});
  const auto missing = failure_of([&] { (void)unknown->find("country", "FR"); });
  EXPECT_EQ(missing.code(), errc::not_found);
  EXPECT_NE(std::string(missing.what()).find("'k1'"), std::string::npos) << missing.what();
}

TEST_F(Sealed, AnOldKeyOpensAndTheCurrentOneSeals) {
  sealed_->put(make("old"));
  sealed_->use(ring("k2:" + sealed_key_b + "\nk1:" + sealed_key_a));
  sealed_->put(make("new"));
  EXPECT_TRUE(raw("new").starts_with("ENC(k2:"));
  EXPECT_TRUE(sealed_->find("country", "old").has_value());
  EXPECT_TRUE(sealed_->find("country", "new").has_value());
  EXPECT_EQ(sealed_->numbers().opened, 2U);
  EXPECT_EQ(sealed_->numbers().opened_old, 1U);
  EXPECT_EQ(failure_of([&] { sealed_->use({}); }).code(), errc::invalid_argument);
  EXPECT_TRUE(sealed_->find("country", "old").has_value())
      << "a ring that is refused changes nothing";
}

TEST_F(Sealed, PlaintextIsReadOnlyWhereItIsAllowed) {
  put_raw("FR", "{}");
  const auto refused = failure("FR");
  EXPECT_EQ(refused.code(), errc::permission);
  EXPECT_NE(std::string(refused.what()).find("read_plaintext"), std::string::npos);
  const auto migrating =
      make_sealed(raw_, {.keys = ring("k1:" + sealed_key_a), .read_plaintext = true});
  EXPECT_EQ(migrating->find("country", "FR").value().payload, "{}");
  put_raw("cut", "ENC(k1:SEYB");
  EXPECT_EQ(failure_of([&] { (void)migrating->find("country", "cut"); }).code(), errc::malformed)
      << "half of an envelope is not plaintext";
}

TEST_F(Sealed, Base64IsReadOnlyWhereItIsAllowedAndNeverWritten) {
  put_raw("FR", "ENC(b64:eyJhIjoxfQ==)");
  EXPECT_EQ(failure("FR").code(), errc::permission);
  const auto migrating =
      make_sealed(raw_, {.keys = ring("k1:" + sealed_key_a), .read_base64 = true});
  EXPECT_EQ(migrating->find("country", "FR").value().payload, R"({"a":1})");
  put_raw("FR", "ENC(b64:eyJhIjoxfQ=)");
  EXPECT_EQ(failure_of([&] { (void)migrating->find("country", "FR"); }).code(), errc::malformed);
}

TEST_F(Sealed, AListLeavesOutWhatCannotBeOpened) {
  for (const char* key : {"a", "b", "c", "d"}) sealed_->put(make(key));
  put_raw("b", "plain");
  put_raw("c", raw("a"));
  const auto page = sealed_->find_all("country", 10);
  ASSERT_EQ(page.entries.size(), 2U);
  EXPECT_EQ(page.entries[0].key, "a");
  EXPECT_EQ(page.entries[1].key, "d");
  EXPECT_EQ(page.entries[1].payload, make("d").payload);
  EXPECT_EQ(page.unreadable, 2U);
}

TEST_F(Sealed, SaysWhatCannotBeSealed) {
  EXPECT_EQ(failure_of([&] { (void)make_sealed(raw_, {}); }).code(), errc::invalid_argument)
      << "no key";
  EXPECT_EQ(
      failure_of([&] { (void)make_sealed(nullptr, {.keys = ring("k1:" + sealed_key_a)}); }).code(),
      errc::invalid_argument);
  EXPECT_EQ(
      failure_of([&] { (void)make_sealed(raw_, {.keys = ring("aesgcm:" + sealed_key_a)}); }).code(),
      errc::invalid_argument)
      << "not Java's table";
  EXPECT_EQ(failure_of([&] {
              (void)make_sealed(raw_,
                                {.keys = ring("k1:" + sealed_key_a + ",aesgcm:" + sealed_key_b)});
            }).code(),
            errc::invalid_argument)
      << "a Java key that would never be used";
  EXPECT_EQ(failure_of([&] { (void)sealed_->rekey(); }).code(), errc::invalid_argument)
      << "the model cannot rewrite";
}

TEST_F(Sealed, ThreadsSealAndOpenWhileKeysChange) {
  std::vector<std::jthread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([this, t] {
      for (int i = 0; i < 200; ++i) {
        const auto key = std::to_string(t) + "." + std::to_string(i % 10);
        const auto payload =
            std::string(static_cast<std::size_t>(i) * 20, static_cast<char>('a' + t));
        sealed_->put(make(key, payload));
        EXPECT_EQ(sealed_->find("country", key).value().payload, payload);
      }
    });
  }
  for (int i = 0; i < 50; ++i)
    sealed_->use(i % 2 == 0 ? ring("k2:" + sealed_key_b + ",k1:" + sealed_key_a)
                            : ring("k1:" + sealed_key_a + ",k2:" + sealed_key_b));
  threads.clear();
  EXPECT_EQ(sealed_->numbers().refused, 0U);
}

TEST_F(Sealed, NobodyKeepsTheKeysBeforeHoweverManyAreBusyWithThem) {
  constexpr int many = 20;  // more than are kept ready
  std::barrier gate(many + 1);
  const auto all_put = [&](const std::string& prefix) {
    std::vector<std::jthread> threads;
    threads.reserve(many);
    for (int i = 0; i < many; ++i)
      threads.emplace_back([this, key = prefix + std::to_string(i)] { sealed_->put(make(key)); });
    gate.arrive_and_wait();  // all have sealed, and none has put
    if (prefix == "before") sealed_->use(ring("k2:" + sealed_key_b + ",k1:" + sealed_key_a));
    gate.arrive_and_wait();
  };
  raw_->at_the_gate = &gate;
  all_put("before");
  all_put("after");
  raw_->at_the_gate = nullptr;
  for (int i = 0; i < many; ++i) {
    EXPECT_TRUE(raw("before" + std::to_string(i)).starts_with("ENC(k1:"));
    EXPECT_TRUE(raw("after" + std::to_string(i)).starts_with("ENC(k2:"));
  }
  sealed_->use(ring("k2:" + sealed_key_b));
  EXPECT_EQ(failure("before0").code(), errc::not_found);
  EXPECT_EQ(sealed_->find("country", "after0").value().payload, make("after0").payload);
  EXPECT_EQ(sealed_->numbers().sealed, 2U * many);
  EXPECT_EQ(sealed_->numbers().opened, 1U);
  EXPECT_EQ(sealed_->numbers().refused, 1U);
}

// ---- the Java library's forms; tests/integration/store_sealed_test.cpp asks Java itself

TEST_F(Sealed, WritesForAJavaPeerAsItReads) {
  const auto shared = std::make_shared<raw_store>(holdfast::peer::java);
  const auto sealed = make_sealed(shared, {.keys = ring("aesgcm:" + sealed_key_a)});
  EXPECT_EQ(sealed->peer(), holdfast::peer::java);
  sealed->put(make("FR", "{}"));
  const auto text = shared->find("country", "FR").value().payload.value();
  EXPECT_TRUE(text.starts_with("ENC(aesgcm:")) << text;
  EXPECT_EQ(text.size(), 60U)
      << "2 bytes: a nonce of 16, a tag of 16, in Base64, with ENC(aesgcm:)";
  EXPECT_EQ(sealed->find("country", "FR").value().payload, "{}");
  EXPECT_EQ(
      failure_of([&] { (void)make_sealed(shared, {.keys = ring("k1:" + sealed_key_a)}); }).code(),
      errc::invalid_argument)
      << "Java has no k1";
}

TEST_F(Sealed, OpensWhatJavaSealedOnlyWhereItIsAllowed) {
  // Made by tests/integration/java/Sealed.java with the key 00 01 ... 1f: AES/GCM/NoPadding, a
  // nonce of 16 bytes a0 ... af, no associated data.
  put_raw("FR", "ENC(aesgcm:oKGio6SlpqeoqaqrrK2ur1GBTd11qO9M4dht0IN36LL/VbmCtl9ydaeXBy0YvyZXRQ==)");
  EXPECT_EQ(failure("FR").code(), errc::permission);
  const auto reading = make_sealed(
      raw_, {.keys = ring("k1:" + sealed_key_b + ",aesgcm:" + sealed_key_a), .read_java = true});
  EXPECT_EQ(reading->find("country", "FR").value().payload, R"({"name":"France"})");
  const auto without = make_sealed(raw_, {.keys = ring("k1:" + sealed_key_b), .read_java = true});
  EXPECT_EQ(failure_of([&] { (void)without->find("country", "FR"); }).code(), errc::not_found);
}

/// The format is stable: payloads sealed by earlier versions can be opened.
TEST_F(Sealed, OpensWhatTheFirstVersionSealed) {
  put_raw("FR", "ENC(k1:SEYBx2xkOxKvzZCeQkPpnyc8ytKu25o8bVCK+HUyzd9GEvfywHfKTDEJ2Nc5iypA)");
  EXPECT_EQ(sealed_->find("country", "FR").value().payload, R"({"name":"France"})");
}

}  // namespace
}  // namespace holdfast::test
