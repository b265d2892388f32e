#include "bench/keys.hpp"

#include <holdfast/error.hpp>
#include <holdfast/key/batch.hpp>
#include <holdfast/key/cachekit.hpp>
#include <holdfast/key/failover.hpp>
#include <holdfast/key/interop.hpp>

#include <openssl/evp.h>
#include <sodium.h>

#include <array>
#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

namespace holdfast::bench {

namespace {

/// The floor of a CacheKit key: libsodium's BLAKE2b-256 over prepared bytes.
workload raw_blake2b(std::string bytes) {
  if (sodium_init() < 0)
    throw error(errc::unavailable, "libsodium cannot be initialised; reinstall it");
  return [bytes = std::move(bytes)](std::uint64_t iterations) {
    std::array<unsigned char, 32> digest{};
    for (std::uint64_t i = 0; i < iterations; ++i) {
      crypto_generichash(digest.data(), digest.size(),
                         reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(),
                         nullptr, 0);
      do_not_optimize(digest);
    }
  };
}

/// The floor of a failover key: MD5 over prepared bytes, with one context for all digests.
workload raw_md5(std::string bytes) {
  const std::shared_ptr<EVP_MD> md5(EVP_MD_fetch(nullptr, "MD5", nullptr), EVP_MD_free);
  const std::shared_ptr<EVP_MD_CTX> context(EVP_MD_CTX_new(), EVP_MD_CTX_free);
  if (md5 == nullptr || context == nullptr) {
    throw error(errc::unavailable, "this OpenSSL has no MD5; enable its default provider");
  }
  return [bytes = std::move(bytes), md5, context](std::uint64_t iterations) {
    std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
    unsigned int size = 0;
    for (std::uint64_t i = 0; i < iterations; ++i) {
      EVP_DigestInit_ex2(context.get(), md5.get(), nullptr);
      EVP_DigestUpdate(context.get(), bytes.data(), bytes.size());
      EVP_DigestFinal_ex(context.get(), digest.data(), &size);
      do_not_optimize(digest);
    }
  };
}

/// Makes the key of the same arguments in every iteration.
template <class Keys, class... A>
workload repeated(Keys keys, A... arguments) {
  return [keys = std::move(keys),
          arguments = std::tuple(std::move(arguments)...)](std::uint64_t iterations) {
    for (std::uint64_t i = 0; i < iterations; ++i) {
      do_not_optimize(arguments);
      std::apply([&](const auto&... values) { do_not_optimize(keys(values...)); }, arguments);
    }
  };
}

/// A CacheKit or interop key compared with its hash.
template <class Keys, class... A>
comparison compare_with_blake2b(std::string name, double bar, const Keys& keys,
                                const A&... arguments) {
  const std::vector<key::value> values{key::to_value(arguments)...};
  return {.name = std::move(name),
          .bar = bar,
          .ours = repeated(keys, arguments...),
          .floor = raw_blake2b(keys.explain(values).message_pack)};
}

/// A failover key compared with its hash.
template <class... A>
comparison compare_with_md5(std::string name, const key::point_info& point, const A&... arguments) {
  const key::failover_keys keys(point);
  return {.name = std::move(name),
          .bar = 1.2,
          .ours = repeated(keys, arguments...),
          .floor = raw_md5(std::string(keys.effective_name()) + ":" + keys.raw(arguments...))};
}

/// Small cases through `key::batch`: JSON Lines in, JSON Lines out.
comparison batch_rate() {
  constexpr int cases = 64;
  std::vector<std::string> lines;
  for (int i = 0; i < cases; ++i) {
    const std::string number = std::to_string(i);
    lines.push_back(R"({"id":"case-)" + number +
                    R"(","namespace":"users","operation":"get_user","args":[{"t":"int","v":")" +
                    number + R"("},{"t":"str","v":"alice"},{"t":"bool","v":true}]})");
  }
  const auto batch =
      std::make_shared<key::batch>(key::batch_options{.scheme = key::scheme::interop});
  return {.name = "batch.small",
          .bar_bound = bound::at_least,
          .ours =
              [lines = std::move(lines), batch,
               output = std::string()](std::uint64_t iterations) mutable {
                for (std::uint64_t i = 0; i < iterations; ++i) {
                  if (output.size() > (std::size_t{256} << 10)) output.clear();
                  batch->run(lines[i % cases], output);
                }
                do_not_optimize(output);
              },
          .fixed_rate = 200'000,
          .unit = "cases/s"};
}

std::map<std::string, int> map_of_ten() {
  std::map<std::string, int> items;
  for (int i = 0; i < 10; ++i) items.emplace("field_" + std::to_string(i), i * 100);
  return items;
}

}  // namespace

std::vector<comparison> key_comparisons() {
  using namespace std::string_view_literals;
  const key::cachekit_keys cachekit({.ns = "users", .module = "app.users", .qualname = "get_user"});
  const key::interop_keys interop("users", "get_user");
  const std::string text_10kb(std::size_t{10} << 10, 'x');
  const std::string text_64kb(std::size_t{64} << 10, 'x');

  std::vector<comparison> all;
  all.push_back(compare_with_blake2b("cachekit.small", 1.35, cachekit, 42, "alice"sv, true));
  all.push_back(compare_with_blake2b("cachekit.one_int", 1.35, cachekit, 42));
  all.push_back(compare_with_blake2b("cachekit.map10", 4, cachekit, map_of_ten()));
  all.push_back(compare_with_blake2b("cachekit.10kb", 1.1, cachekit, text_10kb));
  all.push_back(compare_with_blake2b("cachekit.64kb", 1.1, cachekit, text_64kb));
  all.push_back(compare_with_blake2b("interop.small", 1.35, interop, 42, "alice"sv, true));
  all.push_back(compare_with_md5("failover.text", {.name = "country-by-code"}, "FR"sv));
  all.push_back(compare_with_md5("failover.three_args",
                                 {.name = "country-by-code", .domain = "country"}, "active"sv, 42,
                                 "EU"sv));
  all.push_back(batch_rate());
  return all;
}

}  // namespace holdfast::bench
