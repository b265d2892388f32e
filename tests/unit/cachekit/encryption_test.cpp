#include <holdfast/cachekit/encryption.hpp>

#include "base/nonce_source.hpp"
#include "cachekit/sealing.hpp"
#include "unit/key/reserved_memory.hpp"
#include "unit/key/wire_support.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <latch>
#include <set>
#include <thread>

namespace {

using holdfast::errc;
using holdfast::detail::nonce;
using holdfast::detail::nonce_source;
using holdfast::detail::cachekit::seal_with_nonce;
using holdfast::key::aad_v3;
using holdfast::key::byte_string;
using holdfast::key::derive_key;
using holdfast::key::key_ring;
using holdfast::key::master_key;
using holdfast::key::value_cipher;
using nlohmann::json;
using wire::bytes_of;
using wire::from_hex;
using wire::to_hex;

json published(const std::string& group = "sealed") {
  return wire::vectors("cachekit_encryption", group);
}

std::string text(const json& vector, const char* field) {
  return vector.at(field).get<std::string>();
}
std::optional<std::string> original_type(const json& vector) {
  return vector.contains("original_type") ? std::optional(text(vector, "original_type"))
                                          : std::nullopt;
}
master_key master(const json& vector) { return master_key::from_hex(text(vector, "master")); }
master_key master(char digit) { return master_key::from_hex(std::string(64, digit)); }
json vector_named(const std::string& name) {
  for (const auto& vector : published()) {
    if (vector.at("name") == name) return vector;
  }
  throw std::runtime_error("no vector " + name);
}

// ---- published vectors

TEST(Encryption, DerivesThePublishedKeys) {
  for (const auto& vector : published()) {
    const auto key = derive_key(master(vector), text(vector, "tenant"));
    EXPECT_EQ(to_hex(key.reveal()), text(vector, "key")) << vector.at("name");
    EXPECT_EQ(to_hex(fingerprint(key)), text(vector, "fingerprint")) << vector.at("name");
  }
}

TEST(Encryption, BuildsThePublishedAssociatedData) {
  for (const auto& vector : published()) {
    const auto type = original_type(vector);
    EXPECT_EQ(to_hex(aad_v3(text(vector, "tenant"), text(vector, "cache_key"),
                            text(vector, "format"), vector.at("compressed").get<bool>(), type)),
              text(vector, "aad"))
        << vector.at("name");
  }
}

TEST(Encryption, OpensThePublishedValues) {
  for (const auto& vector : published()) {
    const value_cipher cipher(key_ring(master(vector)), text(vector, "tenant"));
    EXPECT_EQ(to_hex(cipher.open(from_hex(text(vector, "sealed")), text(vector, "cache_key"),
                                 text(vector, "format"), vector.at("compressed").get<bool>(),
                                 original_type(vector))),
              text(vector, "plaintext"))
        << vector.at("name");
    EXPECT_EQ(to_hex(cipher.key_fingerprint()), text(vector, "fingerprint"));
    EXPECT_EQ(cipher.tenant(), text(vector, "tenant"));
  }
}

TEST(Encryption, SealsThePublishedValuesWithTheirNonces) {
  for (const auto& vector : published()) {
    const auto sealed = from_hex(text(vector, "sealed"));
    nonce published_nonce{};
    std::copy_n(sealed.begin(), published_nonce.size(), published_nonce.begin());
    EXPECT_EQ(
        to_hex(seal_with_nonce(derive_key(master(vector), text(vector, "tenant")), published_nonce,
                               from_hex(text(vector, "plaintext")), from_hex(text(vector, "aad")))),
        text(vector, "sealed"))
        << vector.at("name");
  }
}

TEST(Encryption, RefusesThePublishedBadMasterKeys) {
  for (const auto& digits : published("refused_hex"))
    EXPECT_ERROR(errc::invalid_argument, master_key::from_hex(digits.get<std::string>())) << digits;
  for (const auto& hex : published("refused_bytes"))
    EXPECT_ERROR(errc::invalid_argument, master_key::from_bytes(from_hex(hex.get<std::string>())))
        << hex;
}

TEST(Encryption, AKeyRingOpensWhatItsOldKeysSealed) {
  const auto k1 = vector_named("encrypted_with_k1");
  const auto k2 = vector_named("encrypted_with_k2");
  const auto open = [](const value_cipher& cipher, const json& vector) {
    return to_hex(cipher.open(from_hex(text(vector, "sealed")), text(vector, "cache_key")));
  };
  const value_cipher both(key_ring(master(k2), {master(k1)}), "keyring-conformance");
  EXPECT_EQ(open(both, k1), text(k1, "plaintext"));
  EXPECT_EQ(open(both, k2), text(k2, "plaintext"));
  const value_cipher only_new(key_ring(master(k2)), "keyring-conformance");
  EXPECT_EQ(open(only_new, k2), text(k2, "plaintext"));
  EXPECT_ERROR(errc::tampered, open(only_new, k1));
}

// ---- keys

TEST(Encryption, MasterKeysComeFromEitherCaseOrFromBytes) {
  const auto lower = master_key::from_hex(std::string(62, '0') + "af");
  EXPECT_EQ(lower, master_key::from_hex(std::string(62, '0') + "AF"));
  EXPECT_EQ(lower, master_key::from_bytes(from_hex(std::string(62, '0') + "af")));
  EXPECT_FALSE(lower == master('0'));
  EXPECT_ERROR(errc::invalid_argument, master_key::from_hex(""));
  EXPECT_ERROR(errc::invalid_argument, master_key::from_bytes({}));
}

TEST(Encryption, ABadMasterKeyIsNotInTheMessage) {
  const auto thrown = wire::error_of(
      [] { static_cast<void>(master_key::from_hex("correct horse battery staple")); });
  ASSERT_TRUE(thrown);
  EXPECT_EQ(std::string(thrown->what()).find("horse"), std::string::npos);
}

template <class T>
concept printable = requires(std::ostream& out, const T& v) { out << v; };
static_assert(!printable<master_key> && !printable<holdfast::key::derived_key>,
              "a secret must not reach a log");
static_assert(!std::is_copy_constructible_v<value_cipher>, "two ciphers must not share nonces");
static_assert(std::is_nothrow_move_constructible_v<value_cipher>);

TEST(Encryption, TenantsAndDomainsHaveTheirOwnKeys) {
  const auto key = master('1');
  std::set<std::string> keys;
  for (const auto* tenant : {"a", "b", "default"}) {
    for (const auto* domain : {"encryption", "authentication", "cache_keys"})
      keys.insert(to_hex(derive_key(key, tenant, domain).reveal()));
  }
  EXPECT_EQ(keys.size(), 9U);
}

TEST(Encryption, ChecksTenantsAndDomains) {
  const auto key = master('1');
  EXPECT_NO_THROW(
      static_cast<void>(derive_key(key, std::string(1024, 't'), std::string(255, 'd'))));
  EXPECT_ERROR(errc::too_large, derive_key(key, std::string(1025, 't')));
  EXPECT_ERROR(errc::too_large, derive_key(key, "t", std::string(256, 'd')));
  EXPECT_ERROR(errc::invalid_argument, derive_key(key, ""));
  EXPECT_ERROR(errc::invalid_argument, derive_key(key, "t", ""));
  EXPECT_ERROR(errc::ill_formed_text, derive_key(key, "\xff"));
  EXPECT_ERROR(errc::ill_formed_text, derive_key(key, "t", "\xc0\x80"));
}

TEST(Encryption, AssociatedDataAreText) {
  EXPECT_ERROR(errc::ill_formed_text, aad_v3("t", "\xff", "msgpack", false));
  EXPECT_ERROR(errc::ill_formed_text, aad_v3("\xff", "k", "msgpack", false));
  EXPECT_ERROR(errc::ill_formed_text, aad_v3("t", "k", "\xff", false));
  EXPECT_ERROR(errc::ill_formed_text, aad_v3("t", "k", "msgpack", false, "\xff"));
  EXPECT_NE(aad_v3("ab", "c", "f", false), aad_v3("a", "bc", "f", false));
  EXPECT_NE(aad_v3("t", "k", "f", false), aad_v3("t", "k", "f", false, ""))
      << "an empty original type differs from none";
}

TEST(Encryption, AKeyRingHasOneCurrentKeyAndThreeOldOnes) {
  EXPECT_NO_THROW(key_ring(master('1'), {master('2'), master('3'), master('4')}));
  EXPECT_ERROR(errc::too_large,
               key_ring(master('1'), {master('2'), master('3'), master('4'), master('5')}));
  EXPECT_ERROR(errc::duplicate, key_ring(master('1'), {master('2'), master('1')}));
  EXPECT_ERROR(errc::duplicate, key_ring(master('1'), {master('2'), master('2')}));
}

// ---- seal and open

TEST(Encryption, RoundTripsAnySize) {
  const value_cipher cipher(key_ring(master('1')));
  EXPECT_EQ(cipher.tenant(), "default");
  for (const std::size_t size : {0U, 1U, 15U, 16U, 17U, 1'000'000U}) {
    const byte_string plaintext(size, std::byte{7});
    const auto sealed = cipher.seal(plaintext, "k");
    EXPECT_EQ(sealed.size(), size + 28);
    EXPECT_EQ(cipher.open(sealed, "k"), plaintext);
  }
  const auto typed = cipher.seal(bytes_of("v"), "k", "arrow", true, "frame");
  EXPECT_EQ(cipher.open(typed, "k", "arrow", true, "frame"), bytes_of("v"));
}

TEST(Encryption, AValueOpensOnlyWithItsAssociatedData) {
  const key_ring ring(master('1'));
  const value_cipher cipher(ring, "tenant");
  const auto sealed = cipher.seal(bytes_of("secret"), "key", "msgpack", true);
  EXPECT_EQ(cipher.open(sealed, "key", "msgpack", true), bytes_of("secret"));
  EXPECT_ERROR(errc::tampered, cipher.open(sealed, "other", "msgpack", true));
  EXPECT_ERROR(errc::tampered, cipher.open(sealed, "key", "orjson", true));
  EXPECT_ERROR(errc::tampered, cipher.open(sealed, "key", "msgpack", false));
  EXPECT_ERROR(errc::tampered, cipher.open(sealed, "key", "msgpack", true, "numpy"));
  EXPECT_ERROR(errc::tampered, value_cipher(ring, "other").open(sealed, "key", "msgpack", true));
  EXPECT_ERROR(errc::tampered,
               value_cipher(key_ring(master('2')), "tenant").open(sealed, "key", "msgpack", true));
}

TEST(Encryption, EveryChangedBitIsDetected) {
  const value_cipher cipher(key_ring(master('1'), {master('2')}));
  const auto sealed = cipher.seal(bytes_of("secret"), "key");
  for (std::size_t bit = 0; bit < sealed.size() * 8; ++bit) {
    auto changed = sealed;
    changed[bit / 8] ^= std::byte{1} << (bit % 8);
    EXPECT_ERROR(errc::tampered, cipher.open(changed, "key")) << bit;
  }
  EXPECT_ERROR(errc::tampered, cipher.open(std::span(sealed).first(sealed.size() - 1), "key"));
}

TEST(Encryption, RefusesWhatIsTooShortOrTooLarge) {
  const value_cipher cipher(key_ring(master('1')));
  for (std::size_t size = 0; size < 28; ++size)
    EXPECT_ERROR(errc::malformed, cipher.open(byte_string(size), "k")) << size;
  EXPECT_ERROR(errc::tampered, cipher.open(byte_string(28), "k"));
  const wire::reserved_memory memory(value_cipher::max_size + 29);
  EXPECT_ERROR(errc::too_large, cipher.seal(memory.bytes().first(value_cipher::max_size + 1), "k"));
  EXPECT_ERROR(errc::too_large, cipher.open(memory.bytes(), "k"));
}

TEST(Encryption, RefusesIllFormedCacheKeys) {
  const value_cipher cipher(key_ring(master('1')));
  EXPECT_ERROR(errc::ill_formed_text, cipher.seal({}, "\xff"));
  EXPECT_ERROR(errc::ill_formed_text, cipher.open(byte_string(28), "\xff"));
}

TEST(Encryption, RefusesFormatsThatTheProtocolDoesNotKnow) {
  const value_cipher cipher(key_ring(master('1')));
  for (const auto* format : {"", "json", "Msgpack", "msgpack ", "\xff"}) {
    EXPECT_ERROR(errc::invalid_argument, cipher.seal({}, "k", format)) << format;
    EXPECT_ERROR(errc::invalid_argument, cipher.open(byte_string(28), "k", format)) << format;
  }
}

// ---- nonces

nonce_source::instance_id fixed_instance() {
  return {std::byte{0xa}, std::byte{0xb}, std::byte{0xc}, std::byte{0xd}};
}

TEST(Encryption, ANonceIsTheInstanceAndACounter) {
  nonce_source nonces(&fixed_instance);
  EXPECT_EQ(to_hex(nonces.next()), "0a0b0c0d0000000000000000");
  EXPECT_EQ(to_hex(nonces.next()), "0a0b0c0d0000000000000001");
  nonce_source later(&fixed_instance, 0x01020304);
  EXPECT_EQ(to_hex(later.next()), "0a0b0c0d0000000001020304");
}

TEST(Encryption, NoncesAreNotReused) {
  nonce_source nonces(&fixed_instance, 0xfffffffe);
  EXPECT_EQ(to_hex(nonces.next()), "0a0b0c0d00000000fffffffe");
  EXPECT_EQ(to_hex(nonces.next()), "0a0b0c0d00000000ffffffff");
  for (int i = 0; i < 3; ++i) EXPECT_ERROR(errc::out_of_range, nonces.next());
}

TEST(Encryption, RenewedNoncesHaveAnotherInstance) {
  std::byte next{0};
  const auto counted = [&next] {
    nonce_source::instance_id id{};
    id[0] = next;
    next = static_cast<std::byte>(std::to_integer<int>(next) + 1);
    return id;
  };
  nonce_source nonces(counted, 0xffffffff, nonce_source::when_exhausted::renew);
  EXPECT_EQ(to_hex(nonces.next()), "0000000000000000ffffffff");
  EXPECT_EQ(to_hex(nonces.next()), "010000000000000000000000");
  EXPECT_EQ(to_hex(nonces.next()), "010000000000000000000001");
}

TEST(Encryption, CiphersCountUpAndDoNotShareAnInstance) {
  const key_ring ring(master('1'));
  const value_cipher cipher(ring);
  const value_cipher other_cipher(ring);
  const auto first = cipher.seal({}, "k");
  const auto second = cipher.seal({}, "k");
  const auto other = other_cipher.seal({}, "k");
  const auto instance = [](const byte_string& sealed) {
    return to_hex(std::span(sealed).first(8));
  };
  EXPECT_EQ(instance(first), instance(second));
  EXPECT_NE(instance(first), instance(other));
  EXPECT_EQ(to_hex(std::span(first).subspan(8, 4)), "00000000");
  EXPECT_EQ(to_hex(std::span(second).subspan(8, 4)), "00000001");
}

TEST(Encryption, ThreadsNeverShareANonce) {
  nonce_source nonces(&fixed_instance);
  constexpr std::size_t nonces_per_thread = 50'000;
  std::vector<std::vector<nonce>> drawn(4);  // by each thread
  {
    std::latch start(static_cast<std::ptrdiff_t>(drawn.size()));
    std::vector<std::jthread> threads;
    for (auto& own : drawn) {
      threads.emplace_back([&nonces, &own, &start] {
        own.reserve(nonces_per_thread);
        start.arrive_and_wait();
        for (std::size_t i = 0; i < nonces_per_thread; ++i) own.push_back(nonces.next());
      });
    }
  }
  std::set<nonce> all;
  for (const auto& own : drawn) all.insert(own.begin(), own.end());
  EXPECT_EQ(all.size(), drawn.size() * nonces_per_thread);
}

TEST(Encryption, ThreadsShareACipher) {
  const value_cipher cipher(key_ring(master('1')));
  std::atomic<int> opened = 0;
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&cipher, &opened] {
        for (int i = 0; i < 500; ++i)
          opened += cipher.open(cipher.seal(bytes_of("v"), "k"), "k") == bytes_of("v") ? 1 : 0;
      });
    }
  }
  EXPECT_EQ(opened, 2'000);
}

TEST(Encryption, AForkedChildHasNoncesOfItsOwn) {
  const value_cipher cipher(key_ring(master('1')));
  int channel[2];
  ASSERT_EQ(::pipe(channel), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const auto sealed = cipher.seal({}, "k");
    ::_exit(::write(channel[1], sealed.data(), 12) == 12 ? 0 : 1);
  }
  ASSERT_GT(child, 0);
  nonce of_child{};
  EXPECT_EQ(::read(channel[0], of_child.data(), of_child.size()), 12);
  int status = -1;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  ::close(channel[0]);
  ::close(channel[1]);
  const auto of_parent = cipher.seal({}, "k");
  EXPECT_NE(to_hex(std::span(of_child).first(8)), to_hex(std::span(of_parent).first(8)));
  EXPECT_EQ(to_hex(std::span(of_parent).subspan(8, 4)), "00000000");
}

}  // namespace
