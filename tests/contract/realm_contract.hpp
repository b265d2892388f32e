#pragma once

/// \file
/// What every store with tenants does, as tests. Write a fixture with
/// `std::shared_ptr<holdfast::store> make(std::shared_ptr<const holdfast::clock>)` that gives an
/// empty store with the realms `acme` and `globex`, and `static constexpr bool refuses_others`:
/// whether it is configured with these two only.

#include "contract/store_contract.hpp"

namespace holdfast::test {

template <class Fixture>
class RealmContract : public ::testing::Test {
 protected:
  void SetUp() override { store_ = fixture_.make(clock_); }

  [[nodiscard]] entry make(std::string realm, std::string key, std::string payload = "{}") const {
    entry made{.name = "n",
               .key = std::move(key),
               .as_of = clock_->now(),
               .expire_on = clock_->now() + std::chrono::hours(1)};
    made.payload = std::move(payload);
    made.payload_class = "test.payload";
    made.realm = std::move(realm);
    return made;
  }

  std::shared_ptr<hand_clock> clock_ = std::make_shared<hand_clock>();
  Fixture fixture_;
  std::shared_ptr<store> store_;
};

TYPED_TEST_SUITE_P(RealmContract);

TYPED_TEST_P(RealmContract, TheSameKeyIsAnotherEntryInEachRealm) {
  const auto ours = this->make("acme", "k", "ours");
  const auto theirs = this->make("globex", "k", "theirs");
  this->store_->put(ours);
  EXPECT_EQ(this->store_->find({"n", "globex"}, "k"), std::nullopt);
  this->store_->put(theirs);
  EXPECT_EQ(this->store_->find({"n", "acme"}, "k"), ours);
  EXPECT_EQ(this->store_->find({"n", "globex"}, "k"), theirs);
}

TYPED_TEST_P(RealmContract, MemoryKeepsTheRealmsApart) {
  const auto ours = this->make("acme", "k", "ours");
  this->store_->put(ours);
  (void)this->store_->find({"n", "acme"}, "k");
  const auto here = this->store_->find_in_memory({"n", "acme"}, "k");
  if (here.current || here.entry) {
    EXPECT_EQ(here.entry, ours);
  }
  EXPECT_EQ(this->store_->find_in_memory({"n", "globex"}, "k").entry, std::nullopt);
}

TYPED_TEST_P(RealmContract, OnePutMayHaveBoth) {
  std::vector<entry> mixed;
  for (int i = 0; i < 1200; ++i)
    mixed.push_back(
        this->make(i % 2 == 0 ? "acme" : "globex", "k" + std::to_string(i / 2), std::to_string(i)));
  this->store_->put(mixed);
  EXPECT_EQ(this->store_->count({"n", "acme"}), 600U);
  EXPECT_EQ(this->store_->count({"n", "globex"}), 600U);
  EXPECT_EQ(this->store_->find({"n", "acme"}, "k7").value().payload, "14");
  EXPECT_EQ(this->store_->find({"n", "globex"}, "k7").value().payload, "15");
}

TYPED_TEST_P(RealmContract, ListsAndCountsAreOneRealms) {
  this->store_->put(this->make("acme", "a"));
  this->store_->put(this->make("globex", "b"));
  this->store_->put(this->make("globex", "c"));
  const auto page = this->store_->find_all({"n", "globex"}, 10);
  ASSERT_EQ(page.entries.size(), 2U);
  EXPECT_EQ(page.entries[0].key, "b");
  EXPECT_EQ(page.entries[0].realm, "globex");
  EXPECT_EQ(page.entries[1].key, "c");
  EXPECT_EQ(this->store_->count({"n", "acme"}), 1U);
  EXPECT_EQ(this->store_->count({"n", "globex"}), 2U);
}

TYPED_TEST_P(RealmContract, NewerWinsInEachRealmAlone) {
  using namespace std::chrono_literals;
  auto older = this->make("globex", "k", "older");
  older.as_of -= 1s;
  this->store_->put(this->make("acme", "k", "newer"));
  this->store_->put(older);
  EXPECT_EQ(this->store_->find({"n", "globex"}, "k").value().payload, "older")
      << "acme's newer one is not globex's business";
}

TYPED_TEST_P(RealmContract, EraseTouchesOneRealm) {
  const auto ours = this->make("acme", "k");
  this->store_->put(ours);
  this->store_->put(this->make("globex", "k"));
  EXPECT_TRUE(this->store_->erase({"n", "acme"}, "k", ours.as_of));
  EXPECT_EQ(this->store_->find({"n", "acme"}, "k"), std::nullopt);
  EXPECT_TRUE(this->store_->find({"n", "globex"}, "k").has_value());
}

TYPED_TEST_P(RealmContract, ExpireCoversEveryRealmWithinItsLimit) {
  using namespace std::chrono_literals;
  for (int i = 0; i < 5; ++i) {
    this->store_->put(this->make("acme", std::to_string(i)));
    this->store_->put(this->make("globex", std::to_string(i)));
  }
  EXPECT_EQ(this->store_->expire(this->clock_->now() + 2h, 7), 7U);
  EXPECT_EQ(this->store_->expire(this->clock_->now() + 2h, 7), 3U);
  EXPECT_EQ(this->store_->count({"n", "acme"}) + this->store_->count({"n", "globex"}), 0U);
}

TYPED_TEST_P(RealmContract, OtherRealmsAreRefusedWhereTheyAreConfigured) {
  if (!TypeParam::refuses_others) {
    EXPECT_EQ(this->store_->find({"n", "initech"}, "k"), std::nullopt);
    return;
  }
  for (const std::string realm : {"initech", "", "ACME", "acme; DROP TABLE x", "acme_"}) {
    EXPECT_THROW(this->store_->put(this->make(realm, "k")), error) << realm;
    EXPECT_THROW((void)this->store_->find({"n", realm}, "k"), error) << realm;
    EXPECT_THROW((void)this->store_->find_all({"n", realm}, 1), error) << realm;
    EXPECT_THROW((void)this->store_->count({"n", realm}), error) << realm;
    EXPECT_THROW(this->store_->erase({"n", realm}, "k", this->clock_->now()), error) << realm;
  }
  const std::vector<entry> mixed{this->make("acme", "k"), this->make("initech", "k")};
  EXPECT_THROW(this->store_->put(mixed), error);
  EXPECT_EQ(this->store_->count({"n", "acme"}), 0U) << "nothing of it was written";
}

REGISTER_TYPED_TEST_SUITE_P(RealmContract, TheSameKeyIsAnotherEntryInEachRealm,
                            MemoryKeepsTheRealmsApart, OnePutMayHaveBoth,
                            ListsAndCountsAreOneRealms, NewerWinsInEachRealmAlone,
                            EraseTouchesOneRealm, ExpireCoversEveryRealmWithinItsLimit,
                            OtherRealmsAreRefusedWhereTheyAreConfigured);

}  // namespace holdfast::test
