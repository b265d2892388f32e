// Which type has which name, and which names may be decoded.

#include <holdfast/payload.hpp>
#include <holdfast/store.hpp>

#include "support/failure_of.hpp"

#include <gtest/gtest.h>

#include <list>
#include <map>
#include <string>
#include <vector>

namespace holdfast::test {
namespace {

struct country {};
struct person {};

TEST(PayloadAllowlist, EmptyAllowsNothing) {
  const payload_allowlist none;
  for (const char* name : {"", "a", "java.lang.String", "com.acme.X"}) {
    EXPECT_FALSE(none.allows(name)) << name;
    EXPECT_EQ(failure_of([&] { none.check(name); }).code(), errc::permission) << name;
  }
}

TEST(PayloadAllowlist, APackageAllowsWhatIsInItAndNothingBeside) {
  payload_allowlist list;
  list.allow("com.acme");
  for (const char* name : {"com.acme", "com.acme.X", "com.acme.sub.Y", "com.acme.X$Inner"})
    EXPECT_TRUE(list.allows(name)) << name;
  for (const char* name : {"com.acmeX", "com.acm", "com", "acme.X", "xcom.acme.Y", "[Lcom.acme.X;",
                           "", "com.acme\n", "COM.ACME.X"})
    EXPECT_FALSE(list.allows(name)) << name;
  list.allow_exactly("org.Exact");
  EXPECT_TRUE(list.allows("org.Exact"));
  EXPECT_FALSE(list.allows("org.Exact.Below"));
  EXPECT_EQ(list.names(), (std::vector<std::string>{"com.acme", "com.acme.*", "org.Exact"}));
}

TEST(PayloadAllowlist, NamesAreValidated) {
  payload_allowlist list;
  for (const char* bad : {"", "com.acme.", "com.acme.*", "*", "a b", "a\tb", "a\nb", "a\x7f"})
    EXPECT_EQ(failure_of([&] { list.allow(bad); }).code(), errc::invalid_argument) << bad;
  EXPECT_EQ(failure_of([&] { list.allow(std::string(257, 'a')); }).code(), errc::too_large);
  EXPECT_EQ(failure_of([&] { list.allow("a\xff"); }).code(), errc::ill_formed_text);
  EXPECT_TRUE(list.names().empty());
  list.allow(std::string(256, 'a'));
  list.allow("com.société.Pays");
}

TEST(PayloadAllowlist, TheRefusalNamesTheClassFitForALog) {
  const payload_allowlist none;
  const auto e = failure_of([&] { none.check("evil\x1b[2J\n" + std::string(300, 'x')); });
  EXPECT_NE(e.message().find("'evil?[2J?xxx"), std::string::npos) << e.what();
  EXPECT_LT(e.message().size(), 250U);
  EXPECT_NE(e.message().find("register it or allow it"), std::string::npos);
}

TEST(PayloadRegistry, ATypeHasOneNameThatIsWrittenAndMoreThatAreRead) {
  payload_registry types;
  types.add<country>("com.acme.Country", {"com.acme.old.Country"});
  types.add<person>("com.acme.Person");
  EXPECT_EQ(types.name_of<country>(), "com.acme.Country");
  const auto list = types.allowlist_of<country>();
  EXPECT_TRUE(list.allows("com.acme.Country"));
  EXPECT_TRUE(list.allows("com.acme.old.Country"));
  EXPECT_FALSE(list.allows("com.acme.Person")) << "each point has its own";
  EXPECT_FALSE(list.allows("com.acme.Country.Below"));
  EXPECT_TRUE(types.allowlist().allows("com.acme.Person"));
}

TEST(PayloadRegistry, ListsBringTheirElements) {
  payload_registry types;
  EXPECT_EQ(failure_of([&] { types.add_java_list<std::vector<country>>(); }).code(),
            errc::invalid_argument);
  EXPECT_TRUE(types.allowlist().names().empty()) << "as it was";
  types.add<country>("com.acme.Country");
  EXPECT_EQ(types.name_of<std::vector<country>>(), "com.acme.Country[]")
      << "named after its elements";
  EXPECT_TRUE(types.allowlist_of<std::vector<country>>().allows("com.acme.Country[]"));
  types.add_java_list<std::vector<country>>();
  EXPECT_EQ(types.name_of<std::vector<country>>(), "java.util.ArrayList");
  EXPECT_TRUE(
      types.allowlist_of<std::vector<country>>().allows("java.util.ImmutableCollections$ListN"));
  EXPECT_FALSE(types.allowlist_of<std::vector<country>>().allows("com.acme.Country"))
      << "one country is not a list";
  EXPECT_TRUE(types.allowlist().allows("com.acme.Country"));
  types.add<person>("com.acme.Person");
  types.add_java_list<std::vector<person>>();
  types.add<std::list<person>>("java.util.LinkedList");
  EXPECT_EQ(types.name_of<std::vector<person>>(), "java.util.ArrayList")
      << "Java forgets what a list holds, so lists share names";
}

TEST(PayloadRegistry, TextAndMapsAreNoLists) {
  payload_registry types;
  types.add<std::string>("java.lang.String");
  types.add<std::vector<std::byte>>("bytes");
  types.add<std::map<std::string, int>>("java.util.LinkedHashMap");
  EXPECT_EQ(types.name_of<std::vector<std::string>>(), "java.lang.String[]");
}

TEST(PayloadRegistry, NothingIsRegisteredTwice) {
  payload_registry types;
  types.add<country>("com.acme.Country");
  EXPECT_EQ(failure_of([&] { types.add<country>("com.acme.Land"); }).code(), errc::duplicate);
  EXPECT_EQ(failure_of([&] { types.add<person>("com.acme.Person", {"com.acme.Country"}); }).code(),
            errc::duplicate);
  EXPECT_EQ(failure_of([&] { types.add<std::vector<country>>("com.acme.Country"); }).code(),
            errc::duplicate);
  EXPECT_EQ(failure_of([&] { types.add<person>("a b"); }).code(), errc::invalid_argument);
  types.add<person>("com.acme.Person");
  EXPECT_EQ(types.allowlist().names(),
            (std::vector<std::string>{"com.acme.Country", "com.acme.Person"}));
}

TEST(PayloadRegistry, AnUnknownTypeSaysWhatToDo) {
  const payload_registry types;
  const auto e = failure_of([&] { (void)types.name_of<country>(); });
  EXPECT_EQ(e.code(), errc::not_found);
  EXPECT_NE(e.message().find("registry.add"), std::string::npos) << e.what();
  EXPECT_EQ(failure_of([&] { (void)types.allowlist_of<std::vector<country>>(); }).code(),
            errc::not_found);
}

TEST(PayloadRegistry, MoreCanBeAllowed) {
  payload_registry types;
  types.add<country>("com.acme.Country");
  types.allow("com.partner");
  EXPECT_TRUE(types.allowlist_of<country>().allows("com.partner.Land"));
  EXPECT_TRUE(types.allowlist().allows("com.partner.Land"));
  EXPECT_FALSE(types.allowlist_of<country>().allows("com.partnership.Land"));
}

}  // namespace
}  // namespace holdfast::test
