#include <holdfast/database.hpp>
#include <holdfast/store/sealed.hpp>

#include "support/child_process.hpp"
#include "support/failure_of.hpp"
#include "support/mariadb_server.hpp"
#include "support/model_store.hpp"
#include "support/postgres_server.hpp"
#include "support/shared_server.hpp"
#include "support/temporary_directory.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <fstream>
#include <functional>
#include <sstream>

namespace holdfast::test {
namespace {

using namespace std::chrono_literals;

const std::string a_key = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
const std::string b_key = "ICEiIyQlJicoKSorLC0uLzAxMjM0NTY3ODk6Ozw9Pj8=";

sealing_ring ring(const std::string& text) { return sealing_ring::from_text(text); }

entry make(std::string name, std::string key, std::string payload = "{}") {
  const auto now = system_clock()->now();
  return {.name = std::move(name),
          .key = std::move(key),
          .as_of = now,
          .expire_on = now + 1h,
          .payload = std::move(payload),
          .payload_class = "c"};
}

/// A store on a database, and what happens between its reading and its rewriting.
class disturbed_store final : public store, public rewritable_store {
 public:
  explicit disturbed_store(std::shared_ptr<store> below)
      : below_(std::move(below)), rewrites_(dynamic_cast<rewritable_store&>(*below_)) {}
  using store::put;
  void put(std::span<const entry> entries) override { below_->put(entries); }
  std::optional<entry> find(place where, std::string_view key) override {
    return below_->find(where, key);
  }
  entry_page find_all(place where, std::size_t limit, std::string_view after) override {
    return below_->find_all(where, limit, after);
  }
  bool erase(place where, std::string_view key, timestamp as_of) override {
    return below_->erase(where, key, as_of);
  }
  std::size_t expire(timestamp before, std::size_t limit) override {
    return below_->expire(before, limit);
  }
  std::uint64_t count(place where) override { return below_->count(where); }
  store_health health() noexcept override { return below_->health(); }
  std::size_t rewrite(std::span<const rewriting> entries) override {
    if (const auto happens = std::exchange(before_rewrite, nullptr)) happens();
    return rewrites_.rewrite(entries);
  }
  std::optional<std::string> name_after(std::string_view name, std::string_view realm) override {
    return rewrites_.name_after(name, realm);
  }

  std::function<void()> before_rewrite{};

 private:
  std::shared_ptr<store> below_;
  rewritable_store& rewrites_;
};

/// A store on each database.
struct sqlite_place {
  [[nodiscard]] std::shared_ptr<store> make_raw(
      payload_column payload = payload_column::text) const {
    return open("sqlite://" + (directory.path() / "store.db").string())
        .store({.create_schema = true, .payload = payload});
  }
  temporary_directory directory;
};
template <class Server>
struct server_place {
  [[nodiscard]] std::shared_ptr<store> make_raw(
      payload_column payload = payload_column::text) const {
    static const auto& server = shared_server<Server>();
    static const std::string url = server.url(server.create_database("sealed"));
    static std::atomic<int> tables{0};
    return open(url).store({.prefix = "T" + std::to_string(++tables) + "_",
                            .create_schema = true,
                            .payload = payload});
  }
};

template <class Place>
class Rekey : public ::testing::Test {
 protected:
  [[nodiscard]] std::string raw(const std::string& key) const {
    return raw_->find("n", key).value().payload.value();
  }

  Place place_;
  std::shared_ptr<disturbed_store> raw_ = std::make_shared<disturbed_store>(place_.make_raw());
  std::shared_ptr<sealed_store> sealed_ = make_sealed(raw_, {.keys = ring("k1:" + a_key)});
  static constexpr auto rotated = [] { return ring("k2:" + b_key + "\nk1:" + a_key); };
};

using places =
    ::testing::Types<sqlite_place, server_place<postgres_server>, server_place<mariadb_server>>;
TYPED_TEST_SUITE(Rekey, places);

TYPED_TEST(Rekey, SealsEverythingAnewAndNothingTwice) {
  std::vector<entry> entries;
  for (int i = 0; i < 250; ++i)
    entries.push_back(
        make("n", "k" + std::to_string(i), std::string(static_cast<std::size_t>(i) * 10, 'x')));
  entries.push_back(make("Other ü", "k"));
  entry gone = make("n", "gone");
  gone.payload.reset();
  gone.payload_class.clear();
  entries.push_back(gone);
  this->sealed_->put(entries);

  this->sealed_->use(this->rotated());
  const auto todo = this->sealed_->rekey({.only_count = true});
  EXPECT_EQ(todo.changed, 251U);
  EXPECT_TRUE(this->raw("k7").starts_with("ENC(k1:")) << "only counted";

  std::uint64_t last = 0;
  const auto report = this->sealed_->rekey({.progress = [&](const rekey_report& so_far) {
    EXPECT_GE(so_far.seen, last);
    last = so_far.seen;
  }});
  EXPECT_EQ(report.total, 252U);
  EXPECT_EQ(report.seen, 252U);
  EXPECT_EQ(report.changed, 251U) << "every name, found by itself";
  EXPECT_EQ(report.tombstones, 1U);
  EXPECT_EQ(report.unreadable, 0U) << report.problem;
  EXPECT_EQ(last, 252U);

  this->sealed_->use(ring("k2:" + b_key));
  for (const auto& each : entries)
    EXPECT_EQ(this->sealed_->find(each.name, each.key), each)
        << each.key << ": nothing else has changed";
  const auto again = this->sealed_->rekey();
  EXPECT_EQ(again.changed, 0U);
  EXPECT_EQ(again.current, 251U);
}

TYPED_TEST(Rekey, GoesOnWhereItWasStopped) {
  std::vector<entry> entries;
  for (int i = 0; i < 250; ++i) entries.push_back(make("n", "k" + std::to_string(i)));
  this->sealed_->put(entries);
  this->sealed_->use(this->rotated());
  std::stop_source stop;
  const auto first = this->sealed_->rekey({.progress =
                                               [&](const rekey_report& so_far) {
                                                 if (so_far.changed > 0) stop.request_stop();
                                               },
                                           .stop = stop.get_token()});
  EXPECT_TRUE(first.stopped);
  EXPECT_GT(first.changed, 0U);
  EXPECT_LT(first.changed, 250U);
  const auto second = this->sealed_->rekey();
  EXPECT_FALSE(second.stopped);
  EXPECT_EQ(second.current, first.changed);
  EXPECT_EQ(first.changed + second.changed, 250U);
}

TYPED_TEST(Rekey, NothingErasedReturnsAndNothingNewerIsLost) {
  const std::vector<entry> entries{make("n", "erased"), make("n", "kept"), make("n", "newer"),
                                   make("n", "same moment")};
  this->sealed_->put(entries);
  this->sealed_->use(this->rotated());
  this->raw_->before_rewrite = [&] {
    // Between its reading and its rewriting; a service that has the new key already.
    EXPECT_TRUE(this->raw_->erase("n", "erased", entries[0].as_of));
    auto newer = entries[2];
    newer.as_of += 1s;
    newer.payload = "newer";
    this->sealed_->put(newer);
    auto same = entries[3];
    same.payload = "later arrival";
    this->sealed_->put(same);
  };
  const auto report = this->sealed_->rekey();
  EXPECT_EQ(this->sealed_->find("n", "erased"), std::nullopt) << "an erased entry has returned";
  EXPECT_EQ(this->sealed_->find("n", "newer").value().payload, "newer");
  EXPECT_EQ(this->sealed_->find("n", "same moment").value().payload, "later arrival")
      << "of two with the same as_of the later arrival stays";
  EXPECT_TRUE(this->raw("kept").starts_with("ENC(k2:"));
  EXPECT_EQ(report.changed, 1U);
  EXPECT_EQ(report.moved, 1U);
  EXPECT_EQ(report.current, 2U);
}

TYPED_TEST(Rekey, AnOldWriterMeanwhileIsRekeyedToo) {
  this->sealed_->put(make("n", "k", "first"));
  const auto old_service = make_sealed(this->raw_, {.keys = ring("k1:" + a_key)});
  this->sealed_->use(this->rotated());
  this->raw_->before_rewrite = [&] { old_service->put(make("n", "k", "second")); };
  EXPECT_EQ(this->sealed_->rekey().changed, 1U);
  EXPECT_TRUE(this->raw("k").starts_with("ENC(k2:"));
  EXPECT_EQ(this->sealed_->find("n", "k").value().payload, "second");
}

TYPED_TEST(Rekey, WhatCannotBeOpenedStaysAndIsCounted) {
  this->sealed_->put(make("n", "a"));
  this->raw_->put(make("n", "plain", R"({"Plain":"text"})"));
  this->raw_->put(make("n", "moved", this->raw("a")));
  this->sealed_->use(this->rotated());
  const auto report = this->sealed_->rekey();
  EXPECT_EQ(report.changed, 1U);
  EXPECT_EQ(report.unreadable, 2U);
  EXPECT_NE(report.problem, "");
  EXPECT_EQ(this->raw("plain"), R"({"Plain":"text"})");

  const auto migrating =
      make_sealed(this->raw_, {.keys = ring("k2:" + b_key), .read_plaintext = true});
  EXPECT_EQ(migrating->rekey({.names = {"n"}}).changed, 1U);
  EXPECT_TRUE(this->raw("plain").starts_with("ENC(k2:"));
  EXPECT_EQ(migrating->find("n", "plain").value().payload, R"({"Plain":"text"})");
}

TYPED_TEST(Rekey, PayloadsThatDifferInCaseOnlyAreDifferent) {
  this->raw_->put(make("n", "k", R"({"a":"X"})"));
  const auto migrating =
      make_sealed(this->raw_, {.keys = ring("k2:" + b_key), .read_plaintext = true});
  const auto as_of = this->raw_->find("n", "k").value().as_of;
  this->raw_->before_rewrite = [&] {
    auto other = make("n", "k", R"({"a":"x"})");
    other.as_of = as_of;
    this->raw_->put(other);
  };
  EXPECT_EQ(migrating->rekey().changed, 1U);
  EXPECT_EQ(migrating->find("n", "k").value().payload, R"({"a":"x"})")
      << "the later arrival was lost";
}

TYPED_TEST(Rekey, WorksInAColumnOfBytes) {
  const auto raw = this->place_.make_raw(payload_column::bytes);
  const auto sealed = make_sealed(raw, {.keys = ring("k1:" + a_key)});
  const auto e = make("b", "k", std::string("\0\xff\x01", 3));
  sealed->put(e);
  sealed->use(this->rotated());
  EXPECT_EQ(sealed->rekey({.names = {"b"}}).changed, 1U);
  EXPECT_EQ(sealed->find("b", "k"), e);
}

// ---- Java itself: the JDK's own AES/GCM/NoPadding

std::vector<std::string> ask_java(const std::vector<std::string>& lines) {
  const temporary_directory directory;
  const auto input = directory.path() / "commands";
  {
    std::ofstream to(input);
    for (const auto& each : lines) to << each << '\n';
  }
  const auto done =
      run_program({.argv = {"java", HOLDFAST_TEST_JAVA_SOURCE}, .input = input}, 120s);
  EXPECT_TRUE(done.status.success()) << done.status.describe() << done.error;
  std::vector<std::string> answers;
  std::istringstream from(done.output);
  for (std::string line; std::getline(from, line);) answers.push_back(line);
  return answers;
}

/// The model, said to be shared with Java.
class java_table final : public store {
 public:
  using store::put;
  void put(std::span<const entry> entries) override { model_.put(entries); }
  std::optional<entry> find(place where, std::string_view key) override {
    return model_.find(where, key);
  }
  entry_page find_all(place where, std::size_t limit, std::string_view after) override {
    return model_.find_all(where, limit, after);
  }
  bool erase(place where, std::string_view key, timestamp as_of) override {
    return model_.erase(where, key, as_of);
  }
  std::size_t expire(timestamp before, std::size_t limit) override {
    return model_.expire(before, limit);
  }
  std::uint64_t count(place where) override { return model_.count(where); }
  [[nodiscard]] holdfast::peer peer() const noexcept override { return holdfast::peer::java; }
  store_health health() noexcept override { return model_.health(); }

 private:
  model_store model_{};
};

TEST(SealedWithJava, EachOpensWhatTheOtherSealed) {
  const std::string short_key = "AAECAwQFBgcICQoLDA0ODw==";
  const std::string middle_key = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYX";
  const std::string payload = R"({"name":"France"})";
  const std::string payload_text = "eyJuYW1lIjoiRnJhbmNlIn0=";
  std::vector<std::string> commands;
  std::vector<std::shared_ptr<sealed_store>> stores;
  for (const auto& key : {a_key, short_key, middle_key}) {
    const auto table = std::make_shared<java_table>();
    stores.push_back(make_sealed(table, {.keys = ring("aesgcm:" + key)}));
    stores.back()->put(make("n", "ours", payload));
    commands.push_back("open " + key + " " + table->find("n", "ours").value().payload.value());
    commands.push_back("seal " + key + " - " + payload_text);
  }
  // The wrong key
  commands.push_back("open " + b_key + commands[0].substr(commands[0].rfind(' ')));
  const auto answers = ask_java(commands);
  ASSERT_EQ(answers.size(), 7U);
  for (std::size_t i = 0; i < stores.size(); ++i) {
    EXPECT_EQ(answers[2 * i], payload_text) << "Java opens ours";
    const auto table = std::make_shared<java_table>();
    table->put(make("n", "theirs", answers[2 * i + 1]));
    const auto& key = i == 0 ? a_key : i == 1 ? short_key : middle_key;
    EXPECT_EQ(
        make_sealed(table, {.keys = ring("aesgcm:" + key)})->find("n", "theirs").value().payload,
        payload)
        << "we open Java's";
  }
  EXPECT_EQ(answers[6], "refused");
}

}  // namespace
}  // namespace holdfast::test
