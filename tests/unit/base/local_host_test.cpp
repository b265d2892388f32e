#include "base/local_host.hpp"

#include <gtest/gtest.h>

#include <string>

namespace {

using holdfast::detail::is_local_host;

TEST(LocalHost, IsThisMachine) {
  for (const auto* host :
       {"", "/run/postgresql", "@abstract", "localhost", "LocalHost", "127.0.0.1", "127.255.0.9",
        "::1", "0:0:0:0:0:0:0:1", "::ffff:127.0.0.1"})
    EXPECT_TRUE(is_local_host(host)) << host;
}

TEST(LocalHost, IsNothingElse) {
  // Names may lead anywhere. Addresses that resolvers complete or convert are not worth a rule of
  // their own: they get TLS.
  for (const auto* host : {"db.example.org",
                           "localhost.example.org",
                           "localhost.",
                           "my.localhost",
                           "127.0.0.1.nip.io",
                           "10.0.0.1",
                           "0.0.0.0",
                           "128.0.0.1",
                           "127.1",
                           "2130706433",
                           "0x7f.0.0.1",
                           "127.0.0.01",
                           "127.0.0.1 ",
                           "::",
                           "::2",
                           "fe80::1",
                           "::ffff:10.0.0.1",
                           "[::1]",
                           "::1%lo",
                           "localhost,db.example.org"})
    EXPECT_FALSE(is_local_host(host)) << host;
  EXPECT_FALSE(is_local_host(std::string(10'000, '1')));
  EXPECT_FALSE(is_local_host(std::string("127.0.0.1\0.example.org", 22)))
      << "a NUL does not end it";
}

}  // namespace
