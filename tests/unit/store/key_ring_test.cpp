#include <holdfast/store/sealed.hpp>

#include "support/failure_of.hpp"
#include "support/temporary_directory.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <new>
#include <type_traits>

namespace holdfast::test {
namespace {

const std::string ring_key_a = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
const std::string ring_key_b = "ICEiIyQlJicoKSorLC0uLzAxMjM0NTY3ODk6Ozw9Pj8=";
const std::string java_key = "AAECAwQFBgcICQoLDA0ODw==";  // 16 bytes

std::vector<std::string> ids(const sealing_ring& ring) {
  std::vector<std::string> all;
  for (const auto& [id, key] : ring.keys()) all.push_back(id);
  return all;
}

TEST(SealingKey, IsThe32BytesOfItsText) {
  const auto key = sealing_key::from_base64(ring_key_a);
  ASSERT_EQ(key.reveal().size(), 32U);
  for (std::size_t i = 0; i < 32; ++i) EXPECT_EQ(key.reveal()[i], static_cast<std::byte>(i));
  EXPECT_TRUE(key == sealing_key::from_bytes(key.reveal()));
  EXPECT_FALSE(key == sealing_key::from_base64(ring_key_b));
}

TEST(SealingKey, RefusesOthersWithoutRepeatingThem) {
  for (const std::string text : {"", "secret-secret-secret-secret-secret!", "c2VjcmV0",
                                 "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8",
                                 "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8gISI=",
                                 "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh9="}) {
    const auto refused = failure_of([&] { (void)sealing_key::from_base64(text); });
    EXPECT_EQ(refused.code(), errc::invalid_argument) << text;
    EXPECT_NE(refused.message().find("openssl rand -base64 32"), std::string::npos);
    EXPECT_TRUE(text.empty() || std::string(refused.what()).find(text) == std::string::npos);
  }
}

TEST(SealingKey, MovesAndIsNeverCopied) {
  static_assert(!std::is_copy_constructible_v<sealing_key> &&
                !std::is_copy_assignable_v<sealing_key>);
  static_assert(!std::is_copy_constructible_v<sealing_ring>);
  auto key = sealing_key::from_base64(ring_key_a);
  auto taken = std::move(key);
  EXPECT_EQ(taken.reveal().size(), 32U);
  EXPECT_TRUE(key.reveal().empty());  // NOLINT(bugprone-use-after-move): that is the question
  auto other = sealing_key::from_base64(ring_key_b);
  other = std::move(taken);
  EXPECT_TRUE(other == sealing_key::from_base64(ring_key_a));
}

TEST(SealingKey, IsWipedWhenItMovesAndWhenItGoes) {
  alignas(sealing_key) std::array<std::byte, sizeof(sealing_key)> place{};
  const auto holds_key = [&] {
    const std::array needle{std::byte{9}, std::byte{10}, std::byte{11}, std::byte{12}};
    // Read as others would: the compiler must not know what was there.
    std::array<std::byte, sizeof(sealing_key)> seen{};
    for (std::size_t i = 0; i < seen.size(); ++i)
      seen[i] = *const_cast<volatile std::byte*>(&place[i]);
    return std::search(seen.begin(), seen.end(), needle.begin(), needle.end()) != seen.end();
  };
  auto* key = new (place.data()) sealing_key(sealing_key::from_base64(ring_key_a));
  EXPECT_TRUE(holds_key());
  {
    const sealing_key moved(std::move(*key));
    EXPECT_FALSE(holds_key()) << "moved from";
  }
  *key = sealing_key::from_base64(ring_key_a);
  EXPECT_TRUE(holds_key());
  key->~sealing_key();
  EXPECT_FALSE(holds_key()) << "destroyed";
}

TEST(SealingRing, TheFirstIsTheCurrentOne) {
  const auto ring = sealing_ring::from_text("# made in May\nk2 : " + ring_key_b +
                                            "\r\n\n  k1:" + ring_key_a + "\n");
  EXPECT_EQ(ids(ring), (std::vector<std::string>{"k2", "k1"}));
  EXPECT_EQ(ids(sealing_ring::from_text("k1:" + ring_key_a + ",k2:" + ring_key_b)),
            (std::vector<std::string>{"k1", "k2"}))
      << "for the environment";
}

TEST(SealingRing, RefusesIdsThatCannotBe) {
  for (const std::string id : {"", " ", "a:b", "a)b", "a,b", "a b", "a\nb", "\xc3\xa9", "b64"}) {
    sealing_ring ring;
    EXPECT_EQ(failure_of([&] { ring.add(id, sealing_key::from_base64(ring_key_a)); }).code(),
              errc::invalid_argument)
        << id;
  }
  sealing_ring ring;
  ring.add(std::string(64, 'k'), sealing_key::from_base64(ring_key_a));
  EXPECT_EQ(failure_of([&] {
              ring.add(std::string(65, 'k'), sealing_key::from_base64(ring_key_b));
            }).code(),
            errc::invalid_argument);
}

TEST(SealingRing, RefusesTheSameTwice) {
  sealing_ring ring("k1", sealing_key::from_base64(ring_key_a));
  EXPECT_EQ(failure_of([&] { ring.add("k1", sealing_key::from_base64(ring_key_b)); }).code(),
            errc::duplicate);
  EXPECT_EQ(failure_of([&] { ring.add("k2", sealing_key::from_base64(ring_key_a)); }).code(),
            errc::duplicate);
  EXPECT_EQ(ring.keys().size(), 1U);
}

TEST(SealingRing, OnlyTheJavaKeyMayBeShort) {
  sealing_ring ring;
  EXPECT_EQ(failure_of([&] { ring.add("k1", sealing_key::from_base64(java_key)); }).code(),
            errc::invalid_argument);
  ring.add("aesgcm", sealing_key::from_base64(java_key));
  EXPECT_EQ(ids(ring), std::vector<std::string>{"aesgcm"});
}

TEST(SealingRing, IsBounded) {
  sealing_ring ring;
  std::array<std::byte, 32> bytes{};
  for (int i = 0; i < 64; ++i) {
    bytes[0] = static_cast<std::byte>(i);
    ring.add("k" + std::to_string(i), sealing_key::from_bytes(bytes));
  }
  bytes[0] = std::byte{200};
  EXPECT_EQ(failure_of([&] { ring.add("one more", sealing_key::from_bytes(bytes)); }).code(),
            errc::invalid_argument);
  EXPECT_EQ(failure_of([&] { ring.add("more", sealing_key::from_bytes(bytes)); }).code(),
            errc::too_large);
}

TEST(SealingRing, SaysWhatIsWrongWithATextButNotTheKey) {
  for (const std::string& text : {std::string(), std::string("# nothing\n"), ring_key_a,
                                  "k1:" + ring_key_a.substr(1), ring_key_a + ":k1"}) {
    const auto refused = failure_of([&] { (void)sealing_ring::from_text(text); });
    EXPECT_EQ(refused.code(), errc::invalid_argument);
    EXPECT_EQ(std::string(refused.what()).find(ring_key_a.substr(1, 30)), std::string::npos)
        << refused.what();
  }
  EXPECT_EQ(failure_of([] { (void)sealing_ring::from_text(std::string(100'000, '#')); }).code(),
            errc::too_large);
}

TEST(SealingRing, ComesFromAFileTheEnvironmentOrACallback) {
  const temporary_directory directory;
  const auto file = directory.path() / "keys";
  std::ofstream(file) << "k1:" << ring_key_a << "\n";
  std::filesystem::permissions(file, std::filesystem::perms(0644));
  const auto refused = failure_of([&] { (void)sealing_ring::from_file(file); });
  EXPECT_EQ(refused.code(), errc::permission);
  EXPECT_NE(std::string(refused.what()).find("run: chmod 600 "), std::string::npos)
      << refused.what();
  std::filesystem::permissions(file, std::filesystem::perms(0640));
  EXPECT_EQ(ids(sealing_ring::from_file(file)), std::vector<std::string>{"k1"});
  const auto missing =
      failure_of([&] { (void)sealing_ring::from_file(directory.path() / "none"); });
  EXPECT_EQ(missing.code(), errc::unavailable);
  EXPECT_NE(std::string(missing.what()).find("No such file"), std::string::npos) << missing.what();
  EXPECT_EQ(failure_of([&] { (void)sealing_ring::from_file(directory.path()); }).code(),
            errc::unavailable)
      << "a directory";

  ::setenv("HOLDFAST_TEST_KEYS", ("k1:" + ring_key_a + ",k2:" + ring_key_b).c_str(), 1);
  EXPECT_EQ(sealing_ring::from_environment("HOLDFAST_TEST_KEYS").keys().size(), 2U);
  ::unsetenv("HOLDFAST_TEST_KEYS");
  EXPECT_EQ(failure_of([] { (void)sealing_ring::from_environment("HOLDFAST_TEST_KEYS"); }).code(),
            errc::not_found);
  // The keys themselves, given for the name, are not repeated.
  for (const auto& keys : {"main:" + ring_key_a, ring_key_a}) {
    const auto e = failure_of([&] { (void)sealing_ring::from_environment(keys); });
    EXPECT_EQ(e.code(), errc::invalid_argument);
    EXPECT_EQ(std::string(e.what()).find(ring_key_a), std::string::npos) << e.what();
  }

  EXPECT_EQ(ids(sealing_ring::from_callback([] { return "vault-7:" + ring_key_a; })),
            std::vector<std::string>{"vault-7"});
  EXPECT_THROW((void)sealing_ring::from_callback(
                   []() -> std::string { throw std::runtime_error("the vault is shut"); }),
               std::runtime_error);
}

}  // namespace
}  // namespace holdfast::test
