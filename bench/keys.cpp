#include "keys.hpp"

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

using work = std::function<void(std::uint64_t)>;

/// The least that CacheKit's hash can cost: libsodium's BLAKE2b-256 over bytes that are already there.
work raw_blake2b(std::string bytes) {
  if (sodium_init() < 0) throw error(errc::unavailable, "libsodium does not start; reinstall it");
  return [bytes = std::move(bytes)](std::uint64_t times) {
    std::array<unsigned char, 32> digest{};
    for (std::uint64_t i = 0; i < times; ++i) {
      crypto_generichash(digest.data(), digest.size(), reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(), nullptr, 0);
      keep(digest);
    }
  };
}

/// The least that a failover key can cost: a context and an algorithm that are kept, over bytes that are already there.
work raw_md5(std::string bytes) {
  const std::shared_ptr<EVP_MD> md5(EVP_MD_fetch(nullptr, "MD5", nullptr), EVP_MD_free);
  const std::shared_ptr<EVP_MD_CTX> context(EVP_MD_CTX_new(), EVP_MD_CTX_free);
  if (md5 == nullptr || context == nullptr) {
    throw error(errc::unavailable, "this OpenSSL has no MD5; enable its default provider");
  }
  return [bytes = std::move(bytes), md5, context](std::uint64_t times) {
    std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
    unsigned int size = 0;
    for (std::uint64_t i = 0; i < times; ++i) {
      EVP_DigestInit_ex2(context.get(), md5.get(), nullptr);
      EVP_DigestUpdate(context.get(), bytes.data(), bytes.size());
      EVP_DigestFinal_ex(context.get(), digest.data(), &size);
      keep(digest);
    }
  };
}

/// The same call, over and over.
template <class Keys, class... A>
work repeated(Keys keys, A... args) {
  return [keys = std::move(keys), args = std::tuple(std::move(args)...)](std::uint64_t times) {
    for (std::uint64_t i = 0; i < times; ++i) {
      keep(args);
      std::apply([&](const auto&... each) { keep(keys(each...)); }, args);
    }
  };
}

/// A cachekit or interop key against its hash.
template <class Keys, class... A>
contest hashed(std::string name, double bar, const Keys& keys, const A&... args) {
  const std::vector<key::value> values{key::to_value(args)...};
  contest made;
  made.name = std::move(name);
  made.bar = bar;
  made.ours = repeated(keys, args...);
  made.floor = raw_blake2b(keys.explain(values).message_pack);
  return made;
}

template <class... A>
contest failover(std::string name, const key::point_info& point, const A&... args) {
  const key::failover_keys keys(point);
  contest made;
  made.name = std::move(name);
  made.bar = 1.2;
  made.ours = repeated(keys, args...);
  made.floor = raw_md5(std::string(keys.effective_name()) + ":" + keys.raw(args...));
  return made;
}

/// Small cases through the batch: text in, text out.
contest batch_rate() {
  constexpr int cases = 64;
  std::vector<std::string> lines;
  for (int i = 0; i < cases; ++i) {
    const std::string n = std::to_string(i);
    lines.push_back(R"({"id":"case-)" + n + R"(","namespace":"users","operation":"get_user","args":[{"t":"int","v":")" + n +
                    R"("},{"t":"str","v":"alice"},{"t":"bool","v":true}]})");
  }
  contest made;
  made.name = "batch.small";
  made.bar = 1;
  made.side = bar_is::at_least;
  made.fixed_floor = 200'000;
  made.unit = "cases/s";
  const auto batch = std::make_shared<key::batch>(key::batch_options{.scheme = key::scheme::interop});
  made.ours = [lines = std::move(lines), batch, out = std::string()](std::uint64_t times) mutable {
    for (std::uint64_t i = 0; i < times; ++i) {
      if (out.size() > (std::size_t{256} << 10)) out.clear();
      batch->run(lines[i % cases], out);
    }
    keep(out);
  };
  return made;
}

std::map<std::string, int> map_of_ten() {
  std::map<std::string, int> items;
  for (int i = 0; i < 10; ++i) items.emplace("field_" + std::to_string(i), i * 100);
  return items;
}

}  // namespace

std::vector<contest> key_contests() {
  using namespace std::string_view_literals;
  const key::cachekit_keys cachekit({.ns = "users", .module = "app.users", .qualname = "get_user"});
  const key::interop_keys interop("users", "get_user");
  const std::string text_10kb(std::size_t{10} << 10, 'x');
  const std::string text_64kb(std::size_t{64} << 10, 'x');

  std::vector<contest> all;
  all.push_back(hashed("cachekit.small", 1.35, cachekit, 42, "alice"sv, true));
  all.push_back(hashed("cachekit.one_int", 1.35, cachekit, 42));
  all.push_back(hashed("cachekit.map10", 4, cachekit, map_of_ten()));
  all.push_back(hashed("cachekit.10kb", 1.1, cachekit, text_10kb));
  all.push_back(hashed("cachekit.64kb", 1.1, cachekit, text_64kb));
  all.push_back(hashed("interop.small", 1.35, interop, 42, "alice"sv, true));
  all.push_back(failover("failover.text", {.name = "country-by-code"}, "FR"sv));
  all.push_back(failover("failover.three_args", {.name = "country-by-code", .domain = "country"}, "active"sv, 42, "EU"sv));
  all.push_back(batch_rate());
  return all;
}

}  // namespace holdfast::bench
